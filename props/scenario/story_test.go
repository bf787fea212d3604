package scenario_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/model"
	"fencepost/props/mutant"
	"fencepost/props/scenario"
	"fencepost/props/sim"
	"fencepost/testdata"

	"github.com/google/go-cmp/cmp"
)

const folder = "../../testdata/schedules"

var update = flag.Bool("update", false, "rewrite the files of the stories in the form that the program writes")

func load(t *testing.T) []*sim.Schedule {
	t.Helper()
	all, err := scenario.Load(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func named(t *testing.T, all []*sim.Schedule, name string) *sim.Schedule {
	t.Helper()
	i := slices.IndexFunc(all, func(s *sim.Schedule) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %s", name)
	}
	return all[i]
}

// TestScenarios runs every file of the folder, whoever put it there: a
// counterexample to a real subject is red until it is fixed.
func TestScenarios(t *testing.T) {
	for _, s := range load(t) {
		t.Run(s.Name, func(t *testing.T) {
			subject, err := mutant.Subject(s.Subject)
			if err != nil {
				t.Fatal(err)
			}
			if err := scenario.Check(s, subject); err != nil {
				t.Error(err)
			}
		})
	}
}

// story is what one named scenario tells, put down by hand.
type story struct {
	name string
	// first is the invariant that breaks before any other, and when. Where it
	// is belief-implies-ownership a file may expect the two leaders that follow.
	first model.Invariant
	at    time.Duration
	// facts are all that happened, as facts tells it, also after a violation.
	facts []string
	// x is the value under x at the end, and leaders those who lead then.
	x       int64
	leaders string
	// idle are the actions that do nothing here: they are the other subject's.
	idle []int32
}

func TestStories(t *testing.T) {
	all := load(t)
	for _, want := range stories {
		t.Run(want.name, func(t *testing.T) {
			s := named(t, all, want.name)
			subject, err := mutant.Subject(s.Subject)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, s, subject)
			got.name = want.name
			if r := s.Run(subject, sim.Options{Monitor: true}); r.Violated != 0 {
				got.first, got.at = r.First.Invariant, time.Duration(r.First.At)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(story{})); diff != "" {
				t.Errorf("the story as it should be (-) and as it is told (+):\n%s", diff)
			}
		})
	}
}

// play applies every action of s, whatever breaks, and tells what happened.
func play(t *testing.T, s *sim.Schedule, subject sim.Subject) (got story) {
	t.Helper()
	var trace sim.Trace
	w, err := sim.NewWorld(s.Config, subject, sim.Options{Trace: &trace})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Actions {
		if !w.Apply(&s.Actions[i]) {
			got.idle = append(got.idle, s.Actions[i].ID)
		}
	}
	got.facts, got.x = facts(trace.Events), w.Value(0)
	var leaders []string
	for i := range s.Config.Clients {
		if _, acting := w.Client(i); acting {
			leaders = append(leaders, sim.Names().Of(sim.ClientNode(i)))
		}
	}
	got.leaders = strings.Join(leaders, " ")
	return got
}

// facts are the beliefs that begin and end, the refusals and lapses, and what
// storage did: the part of a trace that a story is about.
func facts(events []model.Event) (out []string) {
	calm := false
	for i := range events {
		e := &events[i]
		at, who, peer := time.Duration(e.At), sim.Names().Of(e.Node), sim.Names().Of(e.Peer)
		tell := func(format string, args ...any) {
			out = append(out, at.String()+" "+fmt.Sprintf(format, args...))
		}
		holder, rest := sim.Names().Owner(e.Holder), time.Duration(e.Remaining)
		switch e.Kind {
		case model.KindCalm, model.KindCalmEnd:
			calm = e.Kind == model.KindCalm
		case model.KindLead:
			tell("%s leads under %d", who, e.Token)
		case model.KindStepDown:
			tell("%s steps down", who)
		case model.KindLapse:
			tell("the lease of %s lapses", holder)
		case model.KindDelete:
			tell("the lease is deleted")
		case model.KindHandle:
			switch {
			case e.Op == model.OpAcquire && e.Code == model.CodeHeld:
				if !calm { // there it is told again and again
					tell("%s is refused: %s holds for %v", peer, holder, rest)
				}
			case e.Op == model.OpGet && e.Code == model.CodeHeld:
				tell("%s hears that %s holds for %v", peer, holder, rest)
			case e.Op == model.OpRenew && e.Code != model.CodeGranted:
				tell("the renewal of %s is refused: %v", peer, e.Code)
			case e.Op == model.OpRelease && e.Code != model.CodeReleased:
				tell("the release of %s is refused: %v", peer, e.Code)
			case e.Code == model.CodeReleased:
				tell("%s releases %d", peer, e.Asked)
			case e.Code == model.CodeFenced:
				tell("%s fences %d", peer, e.Asked)
			case e.Code == model.CodeLanded:
				tell("x=%d of %s lands under %d", e.Value, peer, e.Asked)
			case e.Code == model.CodeStale:
				tell("x=%d of %s is refused: %d < %d", e.Value, peer, e.Asked, e.Token)
			case e.Code == model.CodeValue:
				tell("%s reads x=%d", peer, e.Value)
			}
		}
	}
	return out
}

func TestAMutantFileHasTheActionsOfItsTwin(t *testing.T) {
	pairs, all := 0, load(t)
	for _, m := range all {
		name, ok := strings.CutSuffix(m.Name, "-mutant")
		if !ok {
			continue
		}
		pairs++
		s := named(t, all, name)
		if s.Subject != sim.SubjectBuiltin || s.Expect != model.NoInvariant || !strings.HasPrefix(m.Subject, "mutant:") || m.Expect == model.NoInvariant {
			t.Errorf("%s: builtin that expects none and a mutant that expects more make a pair", name)
		}
		if m.Config != s.Config {
			t.Errorf("%s: the configurations differ", name)
		}
		if diff := cmp.Diff(silent(s), silent(m)); diff != "" {
			t.Errorf("%s: the actions differ:\n%s", name, diff)
		}
	}
	if pairs < 15 {
		t.Errorf("there are only %d pairs", pairs)
	}
}

// silent are the actions of s without their notes.
func silent(s *sim.Schedule) []sim.Action {
	out := slices.Clone(s.Actions)
	for i := range out {
		out[i].Note = ""
	}
	return out
}

func TestStoryFilesAreAsTheProgramWritesThem(t *testing.T) {
	all := load(t)
	for _, want := range stories {
		path := folder + "/" + want.name + ".json"
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		s := named(t, all, want.name)
		if s.Shows == "" || !slices.ContainsFunc(s.Actions, func(a sim.Action) bool { return a.Note != "" }) {
			t.Errorf("%s does not say what it shows", path)
		}
		written, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, written, 0o644); err != nil {
				t.Error(err)
			}
			continue
		}
		if diff := cmp.Diff(string(written), string(text)); diff != "" {
			t.Errorf("%s as it would be written (-) and as it is (+):\n%s", path, diff)
		}
	}
}

func TestTheEmbeddedScenariosAreThoseOfTheFolder(t *testing.T) {
	embedded, err := scenario.Load(testdata.Schedules)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(load(t), embedded); diff != "" {
		t.Error(diff)
	}
}

// TestOffsetsChangeNothing compares the run with that of the same schedule on
// clocks that all read zero at the beginning, whoever is ahead or behind.
func TestOffsetsChangeNothing(t *testing.T) {
	const ahead = 42 * time.Second
	s := named(t, load(t), "offset")
	if got := s.Config.Offsets[sim.StoreNode]; got != ahead {
		t.Errorf("the store is %v ahead, not %v", got, ahead)
	}
	events := func(n model.Node, offset time.Duration) []model.Event {
		var tr sim.Trace
		s.Config.Offsets = [model.MaxNodes]time.Duration{}
		s.Config.Offsets[n] = offset
		s.Run(sim.Builtin(), sim.Options{Trace: &tr})
		return tr.Events
	}
	for _, n := range []model.Node{sim.StoreNode, sim.ClientNode(0), sim.ClientNode(1)} {
		for _, offset := range []time.Duration{ahead, -ahead} {
			want, got := events(0, 0), events(n, offset)
			read := 0
			for i := range min(len(want), len(got)) {
				if got[i].Node == n && got[i].Local-want[i].Local == int64(offset) {
					want[i].Local, read = got[i].Local, read+1
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s is off by %v: but for the readings of its clock, all should be as with 0 (-), and not (+)\n%s", sim.Names().Of(n), offset, diff)
			}
			if read == 0 {
				t.Errorf("%s is off by %v, and nobody read its clock", sim.Names().Of(n), offset)
			}
		}
	}
}

var clock = regexp.MustCompile(`^([0-9.]+) s[:,]`)

// TestNotesTellTheTime: a note that begins with an instant tells the one at
// which its action begins or is over.
func TestNotesTellTheTime(t *testing.T) {
	all, told := load(t), 0
	for _, st := range stories {
		s := named(t, all, st.name)
		subject, err := mutant.Subject(s.Subject)
		if err != nil {
			t.Fatal(err)
		}
		w, err := sim.NewWorld(s.Config, subject, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Actions {
			a := &s.Actions[i]
			before := w.Now()
			w.Apply(a)
			m := clock.FindStringSubmatch(a.Note)
			if m == nil {
				continue
			}
			told++
			if d, err := time.ParseDuration(m[1] + "s"); err != nil || d != before && d != w.Now() {
				t.Errorf("%s: action %d is at %v to %v, and not as noted: %s", st.name, a.ID, before, w.Now(), a.Note)
			}
		}
	}
	if told < 3*len(stories) {
		t.Errorf("only %d notes of %d stories tell the time", told, len(stories))
	}
}
