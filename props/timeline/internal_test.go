package timeline

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/model"
	"fencepost/props/sim"
)

func TestWrapBreaksBetweenWordsWhereItCan(t *testing.T) {
	for _, c := range []struct {
		text      string
		n, indent int
		want      string
	}{
		{"", 10, 0, ""},
		{"  one   two ", 10, 0, "one two"},
		{"one two three", 7, 0, "one two|three"},
		{"one two three", 7, 2, "one two|three"},
		{"one two three", 6, 0, "one|two|three"},
		{"a abcdefghij z", 4, 0, "a|abcd|efgh|ij z"},
		{"abcdefghij z", 5, 2, "abcde|fgh|ij|z"},
		{"abcd efgh", 4, 0, "abcd|efgh"},
		{"节点一 x", 4, 0, "节点|一 x"},
	} {
		if got := strings.Join(wrap(c.text, c.n, c.indent), "|"); got != c.want {
			t.Errorf("wrap(%q, %d) is %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestDurationsAreShort(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"}, {1, "1ns"}, {1500, "2µs"}, {4 * time.Millisecond, "4ms"}, {4500 * time.Microsecond, "4.5ms"}, {5 * time.Second, "5s"},
		{4761904762, "4.762s"}, {-42 * time.Second, "-42s"}, {2 * time.Minute, "2m"}, {90 * time.Minute, "1h30m"}, {3 * time.Hour, "3h"},
		{100 * time.Second, "1m40s"}, {math.MaxInt64, "2562047h47m16.854775807s"}, // which rounding leaves alone
	} {
		if got := duration(int64(c.d)); got != c.want {
			t.Errorf("%d ns is %q, want %q", c.d, got, c.want)
		}
	}
	for ns, want := range map[int64]string{1234567: "1.23ms", 12077000000: "12.1s", 247500000: "248ms"} {
		if got := roughly(ns); got != want {
			t.Errorf("roughly %d ns is %q, want %q", ns, got, want)
		}
	}
}

func TestTimesHaveTheDecimalsThatTellThemApart(t *testing.T) {
	const s, ms = int64(time.Second), int64(time.Millisecond)
	for _, c := range []struct {
		at   []int64
		want string
	}{
		{[]int64{0, 5 * s, 11 * s}, "0s 5s 11s"},
		{[]int64{0, 4500 * ms}, "0.0s 4.5s"},
		{[]int64{0, 4762*ms + 3}, "0.000s 4.762s"},
		{[]int64{5*s - 1, 5 * s}, "4.999999999s 5.000000000s"},
		{[]int64{5*s - 1000, 5 * s}, "4.999999s 5.000000s"},
		{[]int64{-1500 * ms, 0}, "-1.5s 0.0s"},
		// No room: the decimals that fit.
		{[]int64{400 * 86400 * s, 400*86400*s + 1}, "34560000s 34560000s"},
		{[]int64{math.MinInt64, math.MaxInt64}, "-9223372036s 9223372036s"},
	} {
		var moments []moment
		for _, at := range c.at {
			moments = append(moments, moment{at: at})
		}
		k := clockFor(moments, 12)
		var got []string
		for _, at := range c.at {
			got = append(got, k.format(at))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v are %q, want %q", c.at, got, c.want)
		}
	}
}

func TestRunsOfRoutineAreFoldedAndCounted(t *testing.T) {
	dull := func(r routine, who model.Node) moment { return moment{routine: r, who: who} }
	star := moment{text: "*"}
	broken := moment{text: "!", routine: renewal, violated: true}
	for _, c := range []struct {
		moments []moment
		want    string
	}{
		{nil, ""},
		{[]moment{star, dull(renewal, 3), dull(renewal, 3), star}, "*|||*"},
		{[]moment{star, dull(renewal, 3), dull(renewal, 3), dull(refusedAcquire, 4), star}, "*|2 renewals of C1, 1 refused acquire of C2|*"},
		{[]moment{dull(refusedAcquire, 3), dull(refusedAcquire, 4), dull(refusedAcquire, 3)}, "3 refused acquires"},
		{[]moment{dull(renewal, 3), dull(renewal, 3), broken, dull(renewal, 3)}, "||!|"},
	} {
		var got []string
		for _, m := range fold(c.moments, sim.Names()) {
			got = append(got, m.text)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("folded is %q, want %q", got, c.want)
		}
	}
}

func TestMaxRowsKeepsTheViolation(t *testing.T) {
	texts := func(n, broken, rows int) string {
		var moments []moment
		for i := range n {
			moments = append(moments, moment{text: string(rune('a' + i)), violated: i == broken})
		}
		var got []string
		for _, m := range cutTo(moments, rows) {
			got = append(got, m.text)
		}
		return strings.Join(got, "|")
	}
	for _, c := range []struct {
		n, broken, rows int
		want            string
	}{
		{4, -1, 0, "a|b|c|d"},
		{4, -1, 4, "a|b|c|d"},
		{4, -1, 2, "2 earlier moments left out|c|d"},
		{10, 5, 4, "3 earlier moments left out|d|e|f|g|3 later moments left out"},
		{10, 0, 4, "a|b|c|d|6 later moments left out"},
		{10, 9, 1, "9 earlier moments left out|j"},
		{10, 0, 1, "a|9 later moments left out"},
	} {
		if got := texts(c.n, c.broken, c.rows); got != c.want {
			t.Errorf("%d moments, %d violated, cut to %d: %q, want %q", c.n, c.broken, c.rows, got, c.want)
		}
	}
}

func TestTheEventThatBrokeItIsFound(t *testing.T) {
	events := []model.Event{
		{At: 1, Action: 1, Kind: model.KindInvoke},
		{At: 2, Action: 2, Kind: model.KindHandle, Op: model.OpAcquire, Code: model.CodeGranted, Token: 8},
		{At: 2, Action: 2, Kind: model.KindLead, Node: 3},
		{At: 2, Action: 2, Kind: model.KindHandle, Op: model.OpWrite, Code: model.CodeLanded, Asked: 7},
		{At: 2, Action: 2, Kind: model.KindHandle, Op: model.OpRead, Code: model.CodeValue},
		{At: 2, Action: 2, Kind: model.KindLapse},
		{At: 2, Action: 2, Kind: model.KindHandle, Node: 1, Code: model.CodeFree},
		{At: 2, Action: 2, Kind: model.KindInvoke},
		{At: 4, Action: 4, Kind: model.KindHeal},
	}
	for v, want := range map[model.Violation]int{
		{}: -1,
		{Invariant: model.TokenMonotonicity, At: 2, Action: 2, Token: 8}: 1,
		{Invariant: model.BeliefSafety, At: 2, Action: 2, Node: 3}:       2,
		{Invariant: model.Continuity, At: 2, Action: 2, Node: 3}:         2,
		{Invariant: model.StorageSafety, At: 2, Action: 2, Token: 7}:     3,
		{Invariant: model.Barrier, At: 2, Action: 2, Token: 7}:           3,
		{Invariant: model.Attribution, At: 2, Action: 2, Token: 7}:       3,
		{Invariant: model.Durability, At: 2, Action: 2}:                  4,
		{Invariant: model.BeliefOwnership, At: 2, Action: 2, Node: 4}:    1,
		{Invariant: model.Lockstep, At: 2, Action: 2, Node: 1}:           6,
		{Invariant: model.Linearizability, At: 2, Action: 2}:             7,
		{Invariant: model.Linearizability, At: 2, Action: 2, Node: 1}:    6,
		{Invariant: model.Availability, At: 3, Action: 9}:                7, // nothing happened then: the last before
		{Invariant: model.Availability, At: -1, Action: 9}:               0,
		{Invariant: model.Availability, At: 99, Action: 9}:               8,
	} {
		if got := violating(events, v); got != want {
			t.Errorf("%v at %d is event %d, want %d", v.Invariant, v.At, got, want)
		}
	}
}

// TestStoryLeavesOutNoTerm ties the moments to the events by counts that need
// none of the story's own rules.
func TestStoryLeavesOutNoTerm(t *testing.T) {
	leads := 0
	for seed := range uint64(200) {
		src := rand.NewPCG(seed, 3)
		profile := sim.Raw()
		var trace sim.Trace
		w, err := sim.NewWorld(sim.RandomConfig(src), sim.Builtin(), sim.Options{Trace: &trace})
		if err != nil {
			t.Fatal(err)
		}
		sim.Generate(src, &profile, &w, 120, nil)

		var want, got struct{ leads, ends, lapses, landed, stale, crashes int }
		var leading [model.MaxNodes]uint64
		for _, e := range trace.Events {
			switch {
			case e.Kind == model.KindLead:
				want.leads++
				leading[e.Node] = e.Token
			case e.Kind == model.KindStepDown:
				want.ends++
				leading[e.Node] = 0
			case e.Kind == model.KindLapse:
				want.lapses++
			case e.Kind == model.KindHandle && e.Op == model.OpWrite && e.Code == model.CodeLanded:
				want.landed++
			case e.Kind == model.KindHandle && e.Code == model.CodeStale:
				want.stale++
			case e.Kind == model.KindCrash:
				want.crashes++
				leading[e.Node] = 0
			}
		}
		leads += want.leads
		moments, _ := tell(trace.Events, sim.Names(), &Options{})
		for _, m := range moments {
			if strings.Contains(m.text, "ends the tenure of") || strings.Contains(m.text, ", the tenure of") || strings.Contains(m.text, "though") {
				t.Fatalf("seed %d: %q, but the built-in store takes nobody's lease away", seed, m.text)
			}
			for clause := range strings.SplitSeq(m.text, ", ") {
				switch {
				case strings.Contains(clause, "leads for ") && !strings.HasSuffix(clause, " more"), strings.Contains(clause, " leads under "):
					got.leads++
				case strings.HasPrefix(clause, "steps down"), strings.HasPrefix(clause, "gives up"), strings.Contains(clause, " steps down from "),
					strings.Contains(clause, " gives up from "), strings.Contains(clause, "'s term under "), strings.Contains(clause, " never led under "):
					got.ends++
				}
			}
			for what, n := range map[string]*int{" lapses": &got.lapses, ": lands": &got.landed, " was seen": &got.stale, " crashes": &got.crashes} {
				*n += strings.Count(m.text, what)
			}
		}
		if got != want {
			t.Fatalf("seed %d: the story has %+v, the events have %+v", seed, got, want)
		}
		if len(moments) == 0 {
			continue
		}
		for n, token := range leading {
			l := moments[len(moments)-1].lanes[n]
			if sim.Names()[n].Role == model.RoleClient && (l.bar == barLeading) != (token != 0) || token != 0 && l.token != token {
				t.Fatalf("seed %d: in the end lane %d is %+v, but the node leads under %d", seed, n, l, token)
			}
		}
	}
	if leads < 200 {
		t.Errorf("only %d terms in all: nothing was checked", leads)
	}
}

// A live run does not see into the store: the requests and their answers are
// all there is, and names are its own.
func TestALiveTraceWithoutTheStoresSideIsTold(t *testing.T) {
	names := model.Names{1: {Name: "etcd", Role: model.RoleStore}, 2: {Name: "node-a", Role: model.RoleClient}, 3: {Name: "node-b"}}
	const ms = int64(time.Millisecond)
	owner := model.Owner{Node: 2, Seq: 1}
	events := []model.Event{
		{At: 0, Kind: model.KindInvoke, Node: 2, Peer: 1, Op: model.OpAcquire, Req: model.Msg{Action: 1}, Owner: owner, TTL: 1000 * ms},
		{At: 2 * ms, Kind: model.KindReturn, Node: 2, Peer: 1, Op: model.OpAcquire, Req: model.Msg{Action: 1}, Owner: owner, Code: model.CodeGranted, Token: 1 << 40, Remaining: 1000 * ms, TTL: 1000 * ms},
		{At: 2 * ms, Kind: model.KindLead, Node: 2, Owner: owner, Token: 1 << 40, TTL: 900 * ms},
		{At: 5 * ms, Kind: model.KindReturn, Node: 3, Peer: 1, Op: model.OpAcquire, Code: model.CodeHeld, Holder: owner, Token: 1 << 40},
		{At: 9 * ms, Kind: model.KindHandle, Node: 1, Peer: 3, Op: model.OpGet, Code: model.CodeFree},
		{At: 9 * ms, Kind: model.KindLose, Node: 1, Peer: 3, Op: model.OpGet, Reason: model.ReasonDropped},
		{At: 9 * ms, Kind: 99, Node: 3},
	}
	moments, nodes := tell(events, &names, &Options{})
	if !slices.Equal(nodes, []model.Node{1, 2, 3}) {
		t.Errorf("lanes are %v", nodes)
	}
	var got []string
	for _, m := range moments {
		got = append(got, m.text)
	}
	want := []string{
		"node-a acquires: granted 1099511627776 for 1s, leads for 900ms",
		"node-b asks who holds: nobody",
		"node-b's get is lost",
	}
	if len(got) != 4 || !slices.Equal(got[:3], want) {
		t.Errorf("told is %q, want %q and a kind that nobody knows", got, want)
	}
	var b strings.Builder
	if err := Render(&b, events, nil, Options{}); err != nil || !strings.Contains(b.String(), "node 2 acquires") {
		t.Errorf("without names: %v\n%s", err, b.String())
	}
}

// Whether a lapse that nobody was told of was on record shows only later.
func TestARestartAfterALapseLeavesTheTenureOpen(t *testing.T) {
	a := model.Owner{Node: 3, Seq: 1}
	grant := model.Event{Kind: model.KindHandle, Node: 1, Peer: 3, Op: model.OpAcquire, Code: model.CodeGranted, Owner: a, Holder: a, Token: 7, Remaining: 5}
	lapse := model.Event{At: 5, Action: 2, Kind: model.KindLapse, Node: 1, Holder: a, Token: 7}
	crash := model.Event{At: 6, Action: 3, Kind: model.KindCrash, Node: 1}
	back := model.Event{At: 7, Action: 4, Kind: model.KindRestart, Node: 1, Holder: a, Token: 7}
	for want, events := range map[string][]model.Event{
		"store restarts: C1 holds 7":          {grant, crash, back},
		"store restarts: C1 may hold 7 again": {grant, lapse, crash, back},
	} {
		moments, _ := tell(events, sim.Names(), &Options{})
		if got := moments[len(moments)-1].text; got != want {
			t.Errorf("told as %q, want %q", got, want)
		}
	}
}

func TestWhatAnotherNodeDoesIsToldApart(t *testing.T) {
	renewal := model.Event{At: 1, Action: 1, Kind: model.KindHandle, Node: 1, Peer: 3, Op: model.OpRenew, Code: model.CodeGranted, Req: model.Msg{Action: 1}, Owner: model.Owner{Node: 3}, Token: 7, Asked: 7, Remaining: 5}
	answer := renewal
	answer.Kind, answer.Node, answer.Peer = model.KindReturn, 3, 1
	for _, end := range []model.Event{
		{At: 1, Action: 1, Kind: model.KindStepDown, Node: 4, Token: 6, Reason: model.ReasonRefused}, // another node
		{At: 2, Action: 1, Kind: model.KindStepDown, Node: 3, Token: 7, Reason: model.ReasonRefused}, // another instant
		{At: 1, Action: 2, Kind: model.KindStepDown, Node: 3, Token: 7, Reason: model.ReasonRefused}, // another action
	} {
		moments, _ := tell([]model.Event{renewal, answer, end}, sim.Names(), &Options{})
		if len(moments) != 2 || moments[0].text != "C1 renews 7 for 5ns" || !strings.Contains(moments[1].text, "steps down from") {
			t.Errorf("%+v is told as %+v", end, moments)
		}
	}
}
