package scenario_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/mutant"
	"fencepost/props/scenario"
	"fencepost/props/sim"
)

// overdue is a lease that lapses under a leader whose clock keeps its promise,
// if the subject's leader overstays its window: nobody else asks for it.
func overdue() *sim.Schedule {
	return &sim.Schedule{Name: "overdue", Subject: sim.SubjectBuiltin,
		Config: sim.Config{Clients: 1, Lease: lease.Config{TTL: 5 * time.Second, SafetyMargin: time.Second}},
		Actions: []sim.Action{
			{ID: 1, Kind: sim.Tick, Who: sim.ClientNode(0)},
			{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
			{ID: 3, Kind: sim.Advance, D: time.Second},
			{ID: 4, Kind: sim.Deliver, Msg: model.Msg{Action: 2}},
			{ID: 5, Kind: sim.Advance, D: 4 * time.Second},
		}}
}

// lingers leads on for ever. In [overdue] that breaks belief-implies-ownership
// at 5 s, and nothing else.
type lingers struct{ sim.Client }

func (lingers) Acting(c *sim.ClientState, _ sim.Clocks) bool {
	return c.State().Phase == lease.Leading
}
func (lingers) Ends(*sim.ClientState, sim.Clocks, bool) time.Duration { return sim.Forever }

func lingering() sim.Subject {
	s := sim.Builtin()
	s.Name, s.Client = "lingering", lingers{}
	return s
}

func unmet(t *testing.T, err error) *scenario.UnmetError {
	t.Helper()
	var e *scenario.UnmetError
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want an UnmetError", err)
	}
	return e
}

func TestWhatExpectsNoneIsRedWhenItFails(t *testing.T) {
	s := overdue()
	if err := scenario.Check(s, sim.Builtin()); err != nil {
		t.Fatal(err)
	}
	err := scenario.Check(s, lingering())
	e := unmet(t, err)
	if e.Schedule != "overdue" || e.Subject != "lingering" || e.Expect != model.NoInvariant || e.Violated != model.SetOf(model.BeliefOwnership) ||
		e.First.Action != 5 || e.First.At != int64(5*time.Second) || e.Held != 0 {
		t.Errorf("error says %+v", *e)
	}
	const want = "scenario overdue on lingering: nothing may be violated, but belief-implies-ownership is, by action 5 at 5s: " +
		"C1 acts as leader under token 1, but nobody holds the lease in the store; the last token is 1"
	if err.Error() != want {
		t.Errorf("error reads\n%s\nwant\n%s", err, want)
	}
}

func TestWhatExpectsAnInvariantIsRedWhenItHolds(t *testing.T) {
	s := overdue()
	s.Expect = model.BeliefOwnership
	if err := scenario.Check(s, lingering()); err != nil {
		t.Error(err)
	}
	err := scenario.Check(s, sim.Builtin())
	if e := unmet(t, err); e.Expect != model.BeliefOwnership || e.Violated != 0 {
		t.Errorf("error says %+v", *e)
	}
	if want := "belief-implies-ownership must be violated, but all holds"; !strings.Contains(err.Error(), want) {
		t.Errorf("error reads\n%s\nwhich lacks\n%s", err, want)
	}
}

func TestOnlyTheExpectedInvariantCounts(t *testing.T) {
	s := overdue()
	s.Expect = model.BeliefSafety
	if e := unmet(t, scenario.Check(s, lingering())); e.Violated != 0 {
		t.Errorf("%v broke although %v alone was to be judged", e.Violated, s.Expect)
	}
	// A run that was judged otherwise says what broke instead.
	err := scenario.Met(s, "lingering", s.Run(lingering(), sim.Options{Monitor: true}))
	if want := "belief-safety must be violated, but belief-implies-ownership is, by action 5 at 5s: "; !strings.Contains(err.Error(), want) {
		t.Errorf("error reads\n%s\nwhich lacks\n%s", err, want)
	}
}

func TestAnInvariantBrokenTogetherWithAnotherCounts(t *testing.T) {
	s := overdue()
	s.Expect = model.BeliefSafety
	r := sim.Result{Violated: model.SetOf(model.Continuity, model.BeliefSafety), First: model.Violation{Invariant: model.Continuity}}
	if err := scenario.Met(s, "any", r); err != nil {
		t.Error(err)
	}
}

func TestWhatIsWaivedMustBreak(t *testing.T) {
	s := overdue()
	s.Waives = model.SetOf(model.BeliefSafety)
	err := scenario.Check(s, sim.Builtin())
	if e := unmet(t, err); e.Held != s.Waives || e.Violated != 0 {
		t.Errorf("error says %+v", *e)
	}
	const want = "scenario overdue on builtin: the file waives belief-safety, which did not break: promise it again, or let the clocks leave their bound"
	if err.Error() != want {
		t.Errorf("error reads\n%s\nwant\n%s", err, want)
	}
	// The clock of C1 now breaks its promise: what was a violation is waived.
	s.Waives = model.SetOf(model.BeliefOwnership)
	s.Actions = append([]sim.Action{{ID: 9, Kind: sim.Drift, Who: sim.ClientNode(0), Rate: 500_000}}, s.Actions...)
	if err := scenario.Check(s, sim.Builtin()); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotWaivedMustNotBreakUnseen(t *testing.T) {
	s := overdue()
	s.Actions = append([]sim.Action{{ID: 9, Kind: sim.Drift, Who: sim.ClientNode(0), Rate: 500_000}}, s.Actions...)
	err := scenario.Check(s, sim.Builtin())
	if e := unmet(t, err); e.Undeclared != model.SetOf(model.BeliefOwnership) {
		t.Errorf("error says %+v", *e)
	}
	const want = `scenario overdue on builtin: belief-implies-ownership broke where it is not promised, which the file must say under "waives"`
	if err.Error() != want {
		t.Errorf("error reads\n%s\nwant\n%s", err, want)
	}
}

func TestEveryInvariantIsJudgedUnlessOneIsExpected(t *testing.T) {
	want := scenario.Judged(&sim.Schedule{Subject: sim.SubjectBuiltin})
	if got := scenario.Judged(&sim.Schedule{Subject: "mutant:unfenced"}); got != want&^model.SetOf(model.Lockstep) {
		t.Errorf("a planted bug is judged by %v", got)
	}
	for v := range model.Invariants() {
		if !want.Has(v) {
			t.Errorf("%v is not judged", v)
		}
		waives := model.SetOf(model.Durability)
		if got := scenario.Judged(&sim.Schedule{Expect: v, Waives: waives}); got != model.SetOf(v)|waives {
			t.Errorf("expecting %v and waiving %v judges %v", v, waives, got)
		}
	}
}

func TestAScheduleThatCannotRunIsNotRun(t *testing.T) {
	s := overdue()
	s.Actions[4].ID = 1
	var fe *sim.FieldError
	if err := scenario.Check(s, sim.Builtin()); !errors.As(err, &fe) || fe.Field != "actions[4].id" {
		t.Errorf("error is %v, want one about actions[4].id", err)
	}
}

const minimal = `{"version": 1, "name": "NAME", "subject": "builtin", "expect": "none", "config": {"clients": 1, "lease": {"ttl": "5s"}}, "actions": []}`

func file(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(strings.Replace(minimal, "NAME", name, 1))}
}

func TestLoadSortsByName(t *testing.T) {
	all, err := scenario.Load(fstest.MapFS{
		"1.json": file("c"), "2.json": file("a"), "3.json": file("b"), "4.json": file("a"),
		"README.md": {Data: []byte("not a schedule")}, "deeper/5.json": file("d"), "folder.json/6.txt": {Data: []byte("neither")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "a a b c d" {
		t.Errorf("loaded %s, want a a b c d", got)
	}
}

func TestLoadNamesFileLineAndField(t *testing.T) {
	_, err := scenario.Load(fstest.MapFS{"ok.json": file("ok"), "torn.json": {Data: []byte(strings.Replace(minimal, `"actions"`, "\n\"acts\"", 1))}})
	var fe *sim.FieldError
	if !errors.As(err, &fe) || fe.File != "torn.json" || fe.Line != 2 || fe.Field != "acts" {
		t.Errorf("error is %v, want one about the field acts in line 2 of torn.json", err)
	}
}

func TestLoadReportsWhatItCannotRead(t *testing.T) {
	missing, err := fs.Sub(fstest.MapFS{}, "nowhere")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Load(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want ErrNotExist", err)
	}
	if _, err := scenario.Load(unreadable{fstest.MapFS{"a.json": file("a")}}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error is %v, want ErrPermission", err)
	}
}

// unreadable lists its files and opens none of them.
type unreadable struct{ fstest.MapFS }

func (u unreadable) Open(name string) (fs.File, error) {
	if name == "." {
		return u.MapFS.Open(name)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

var _ = mutant.Subject
