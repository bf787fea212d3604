package timeline

import (
	"fmt"
	"slices"
	"strings"

	"fencepost/model"
)

// moment is one line of the story: what happened at an instant, and how every
// lane stands after it.
type moment struct {
	at       int64
	until    int64 // at, or the last instant of those folded
	sent     int64 // when the message left from; at where that is the same instant
	text     string
	note     string // what a write carries, in short
	from, to model.Node
	stroke   stroke
	lanes    [model.MaxNodes]lane
	routine  routine
	who      model.Node // whose routine it is
	violated bool
	folded   bool // stands for several moments of routine
}

// stroke is how a message is drawn.
type stroke uint8

const (
	noStroke      stroke = iota
	strokeArrives        // at to
	strokeBoth           // and its answer back at from, in the same instant
	strokeRefused        // at to
	strokeLost           // on its way to to
	strokeSent           // to to, where it arrives later
	strokeNever          // to to, where it does not arrive while the run lasts
	strokeCut            // the link is cut: no message
)

// lane is how a node stands.
type lane struct {
	bar   bar
	mode  mode
	owner model.Owner // whose tenure the bar is; of a term, the node alone
	token uint64      // of the bar; at a storage, the last one that it let in
}

type bar uint8

const (
	noBar bar = iota
	barTenure
	barFencing
	barLeading
)

type mode uint8

const (
	running mode = iota
	asleep       // paused, suspended or frozen
	down
)

// routine is a kind of moment that is dull in numbers. A run of them is folded
// into one line that counts them.
type routine uint8

const (
	notRoutine routine = iota
	renewal
	answer          // to a renewal, which arrived later than it was handled
	repeatedAcquire // while it holds already
	refusedAcquire
	leaseQuery
	lostMessage
	wallJump
	clockTrue
	routines
)

var routineNouns = [routines]struct{ one, many string }{
	renewal:         {"renewal", "renewals"},
	answer:          {"answer", "answers"},
	repeatedAcquire: {"repeated acquire", "repeated acquires"},
	refusedAcquire:  {"refused acquire", "refused acquires"},
	leaseQuery:      {"query", "queries"},
	lostMessage:     {"lost message", "lost messages"},
	wallJump:        {"wall clock jump", "wall clock jumps"},
	clockTrue:       {"clock true again", "clocks true again"},
}

// foldFrom is how many moments of routine in a row are folded.
const foldFrom = 3

// trail is what became of a request.
type trail struct {
	request  int // the index of the event that sent it
	sent     int64
	arrived  int64
	handled  bool // the events show it being handled
	returned bool
	lost     bool
	again    bool // an acquire that got the token of the grant before
	code     model.Code
}

// story tells events as moments, with nothing folded or left out.
type story struct {
	names     *model.Names
	events    []model.Event
	trails    map[model.Msg]trail
	violation model.Violation
	violating int // the index of the event that broke it; -1 if none

	lanes   [model.MaxNodes]lane
	since   [model.MaxNodes]int64 // asleep or down since
	rates   [model.MaxNodes]int64 // of the clocks, in parts per million; 0: true so far
	moments []moment

	handled int  // the index of the event by which the last moment was a request handled; -1 if it was none
	open    bool // what follows from the last event belongs to the last moment
}

// tell makes the story of events: the moments to show, and the nodes that
// occur, in the order of their lanes.
func tell(events []model.Event, names *model.Names, o *Options) ([]moment, []model.Node) {
	if names == nil {
		names = &model.Names{}
	}
	s := story{names: names, events: events, handled: -1, trails: trailsOf(events), violation: o.Violation, violating: violating(events, o.Violation)}
	for i := range events {
		s.next(i)
	}
	return cutTo(fold(s.moments, names), o.MaxRows), lanesOf(events, names)
}

func trailsOf(events []model.Event) map[model.Msg]trail {
	trails := map[model.Msg]trail{}
	var granted uint64
	for i := range events {
		e := &events[i]
		if e.Req == (model.Msg{}) {
			continue
		}
		t, known := trails[e.Req]
		switch e.Kind {
		case model.KindInvoke:
			t = trail{request: i, sent: e.At}
		case model.KindDuplicate:
			// The copy of a request is a request of its own; that of an answer is not.
			if original, ok := trails[e.Req]; ok && events[original.request].Peer == e.Node {
				trails[e.Msg] = trail{request: original.request, sent: original.sent}
			}
			continue
		case model.KindHandle:
			t.handled, t.arrived, t.code = true, e.At, e.Code
			if e.Op == model.OpAcquire && e.Code == model.CodeGranted {
				t.again, granted = e.Token == granted, e.Token
			}
		case model.KindReturn:
			t.returned = true
		case model.KindLose:
			t.lost = true
		default:
			continue
		}
		if !known && e.Kind != model.KindInvoke {
			t.request, t.sent = i, e.At
		}
		trails[e.Req] = t
	}
	return trails
}

// trail is what became of the request that event i is about. Of one that has
// no name nothing is known.
func (s *story) trail(i int) trail {
	e := &s.events[i]
	if t, ok := s.trails[e.Req]; ok {
		return t
	}
	return trail{request: i, sent: e.At, arrived: e.At, handled: true, code: e.Code}
}

// violating finds the event that broke v: the one of its instant and action
// that its invariant is about; failing that the last before it.
func violating(events []model.Event, v model.Violation) int {
	if v.Invariant == model.NoInvariant || len(events) == 0 {
		return -1
	}
	found, about := -1, false
	for i := range events {
		e := &events[i]
		if e.At != v.At || e.Action != v.Action {
			continue
		}
		if isAbout := breaks(e, v); isAbout || !about {
			found, about = i, isAbout
			if about {
				break
			}
		}
	}
	if found >= 0 {
		return found
	}
	for i := range events {
		if events[i].At <= v.At {
			found = i
		}
	}
	return max(found, 0)
}

// breaks reports whether e is the kind of event that v is about.
func breaks(e *model.Event, v model.Violation) bool {
	switch v.Invariant {
	case model.TokenMonotonicity:
		return e.Kind == model.KindHandle && e.Code == model.CodeGranted && e.Token == v.Token
	case model.StorageSafety, model.Barrier, model.Attribution:
		return e.Kind == model.KindHandle && (e.Code == model.CodeLanded || e.Code == model.CodeFenced) && e.Asked == v.Token
	case model.BeliefSafety, model.Continuity:
		return e.Kind == model.KindLead && e.Node == v.Node
	case model.BeliefOwnership:
		switch e.Kind {
		case model.KindLead:
			return e.Node == v.Node
		case model.KindLapse, model.KindDelete:
			return true
		case model.KindHandle:
			return e.Code == model.CodeGranted || e.Code == model.CodeReleased
		case model.KindRestart:
			return e.Node != v.Node
		}
	case model.Durability:
		return e.Kind == model.KindHandle && e.Code == model.CodeValue
	case model.Lockstep:
		return e.Kind == model.KindHandle && e.Node == v.Node
	case model.Linearizability: // without a node, nobody knows which answer
		return v.Node != 0 && e.Kind == model.KindHandle && e.Node == v.Node
	}
	return false
}

// lanesOf are the nodes that occur: store, storage, clients, raw parties.
func lanesOf(events []model.Event, names *model.Names) []model.Node {
	var occurs [model.MaxNodes]bool
	for i := range events {
		occurs[events[i].Node], occurs[events[i].Peer] = true, true
	}
	var nodes []model.Node
	for n := range occurs {
		if n > 0 && occurs[n] {
			nodes = append(nodes, model.Node(n))
		}
	}
	slices.SortStableFunc(nodes, func(a, b model.Node) int {
		return int(laneOrder(names[a].Role)) - int(laneOrder(names[b].Role))
	})
	return nodes
}

// laneOrder puts a node without a role last.
func laneOrder(r model.Role) model.Role { return r - 1 }

// next tells event i: as a moment of its own, as the end of the last one, or
// not at all.
func (s *story) next(i int) {
	e := &s.events[i]
	m, shown := s.moment(i)
	clause := s.clause(e)
	s.apply(e)
	m.lanes, m.violated = s.lanes, i == s.violating
	switch {
	case s.open && clause != "" && s.sameStep(i):
		s.join(e, clause, m.violated)
	case e.Kind == model.KindReturn && s.handled >= 0 && s.events[s.handled].Req == e.Req && s.events[s.handled].At == e.At && !m.violated:
		// The answer came at once: what follows from it is told there.
		s.open = true
	case shown || m.violated:
		s.moments = append(s.moments, m)
		s.handled, s.open = -1, false
		switch {
		case m.violated: // and ends there
		case e.Kind == model.KindHandle:
			s.handled = i
		case e.Kind == model.KindReturn || e.Kind == model.KindResign || e.Kind == model.KindWorkDone:
			s.open = true
		}
	default:
		s.open = false
	}
}

// join tells what a client made of the last moment as its end.
func (s *story) join(e *model.Event, clause string, violated bool) {
	last := &s.moments[len(s.moments)-1]
	last.text += ", " + clause
	last.lanes = s.lanes
	if (last.stroke == strokeArrives || last.stroke == strokeRefused) && last.from == e.Node {
		last.stroke = strokeBoth
	}
	if e.Kind != model.KindExtend {
		last.routine = notRoutine
	}
	if violated {
		last.violated, s.open = true, false
	}
}

// sameStep reports whether event i is of the same step of the same node as the
// one before.
func (s *story) sameStep(i int) bool {
	e, before := &s.events[i], &s.events[i-1]
	return e.Node == before.Node && e.At == before.At && e.Action == before.Action
}

// followed reports whether a client made something of event i, as the next
// event says.
func (s *story) followed(i int) bool {
	return i+1 < len(s.events) && s.sameStep(i+1) && s.clause(&s.events[i+1]) != ""
}

// apply moves the lanes on.
func (s *story) apply(e *model.Event) {
	l := &s.lanes[e.Node]
	switch e.Kind {
	case model.KindHandle:
		switch e.Code {
		case model.CodeGranted:
			l.bar, l.owner, l.token = barTenure, s.tenureOf(e), e.Token
		case model.CodeReleased:
			l.end()
		case model.CodeFenced, model.CodeLanded:
			l.token = e.Asked
		}
	case model.KindLapse, model.KindDelete:
		l.end()
	case model.KindLead:
		l.bar, l.owner, l.token = barLeading, model.Owner{Node: e.Node}, e.Token
	case model.KindFencing:
		l.bar, l.owner, l.token = barFencing, model.Owner{Node: e.Node}, e.Token
	case model.KindStepDown:
		l.end()
	case model.KindPause, model.KindSuspend, model.KindFreeze:
		l.mode, s.since[e.Node] = asleep, e.At
	case model.KindResume:
		l.mode = running
	case model.KindCrash:
		if l.bar != barTenure { // which is durable
			l.end()
		}
		l.mode, s.since[e.Node] = down, e.At
	case model.KindRestart:
		l.mode = running
		switch s.names[e.Node].Role {
		case model.RoleStore:
			l.end()
			if e.Holder != (model.Owner{}) {
				l.bar, l.owner, l.token = barTenure, e.Holder, e.Token
			}
		case model.RoleStorage:
			l.token = e.Token
		}
	}
}

func (l *lane) end() { l.bar, l.owner, l.token = noBar, nobody, 0 }

// fold replaces runs of routine by one moment each.
func fold(moments []moment, names *model.Names) []moment {
	var out []moment
	for i := 0; i < len(moments); {
		j := i
		for j < len(moments) && moments[j].routine != notRoutine && !moments[j].violated {
			j++
		}
		switch {
		case j-i >= foldFrom:
			out = append(out, folded(moments[i:j], count(moments[i:j], names)))
		case j > i:
			out = append(out, moments[i:j]...)
		default:
			out = append(out, moments[i])
			j++
		}
		i = j
	}
	return out
}

// folded is one moment for several.
func folded(moments []moment, text string) moment {
	first, last := &moments[0], &moments[len(moments)-1]
	return moment{at: first.at, until: last.at, sent: first.at, lanes: last.lanes, folded: true, text: text}
}

// count says what moments of routine were.
func count(moments []moment, names *model.Names) string {
	var n [routines]int
	var who [routines]model.Node
	for i := range moments {
		r := moments[i].routine
		if n[r] == 0 {
			who[r] = moments[i].who
		} else if who[r] != moments[i].who {
			who[r] = 0
		}
		n[r]++
	}
	var parts []string
	for r, k := range n {
		if k == 0 {
			continue
		}
		noun := routineNouns[r].many
		if k == 1 {
			noun = routineNouns[r].one
		}
		part := fmt.Sprintf("%d %s", k, noun)
		if who[r] != 0 {
			part += " of " + nameOf(names, who[r])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// cutTo keeps at most n moments: those that end with the violation and a
// quarter more after it, or the last ones. What is left out is counted.
func cutTo(moments []moment, n int) []moment {
	if n <= 0 || len(moments) <= n {
		return moments
	}
	end := len(moments)
	if v := slices.IndexFunc(moments, func(m moment) bool { return m.violated }); v >= 0 {
		end = min(end, v+1+n/4)
	}
	start := max(end-n, 0)
	end = max(end, start+n)
	var out []moment
	if start > 0 {
		out = append(out, folded(moments[:start], fmt.Sprintf("%d earlier moments left out", start)))
	}
	out = append(out, moments[start:end]...)
	if end < len(moments) {
		out = append(out, folded(moments[end:], fmt.Sprintf("%d later moments left out", len(moments)-end)))
	}
	return out
}
