package sim

import (
	"testing"
	"time"

	"fencepost/model"
)

// What the three clocks of C1 read ten seconds of true time after the
// beginning, whatever happened to it on the way.
func TestClocks(t *testing.T) {
	type reads struct{ boot, mono, wall time.Duration }
	jump := func(d time.Duration) Action { return Action{Kind: Jump, Who: c1, D: d} }
	rated := func(d time.Duration, n model.Node, ppm int32) Action {
		a := advance(d)
		a.Rates[n] = ppm
		return a
	}
	for _, c := range []struct {
		name    string
		offset  time.Duration
		actions []Action
		want    reads
	}{
		{"true time", 0, []Action{advance(10 * sec)}, reads{10 * sec, 10 * sec, 10 * sec}},
		{"an offset moves all alike", 42 * sec, []Action{advance(10 * sec)}, reads{52 * sec, 52 * sec, 52 * sec}},
		{"an offset may be behind", -42 * sec, []Action{advance(10 * sec)}, reads{-32 * sec, -32 * sec, -32 * sec}},
		{"a pause stops none", 0, []Action{on(Pause, c1), advance(10 * sec)}, reads{10 * sec, 10 * sec, 10 * sec}},
		{"a suspend stops the monotonic clock", 0, []Action{on(Suspend, c1), advance(10 * sec)}, reads{10 * sec, 0, 10 * sec}},
		{"only while it lasts", 0, []Action{advance(2 * sec), on(Suspend, c1), advance(5 * sec), on(Resume, c1), advance(3 * sec)}, reads{10 * sec, 5 * sec, 10 * sec}},
		{"a freeze stops all", 0, []Action{on(Freeze, c1), advance(10 * sec)}, reads{0, 0, 0}},
		{"only while it lasts, too", 0, []Action{on(Freeze, c1), advance(4 * sec), on(Resume, c1), advance(6 * sec)}, reads{6 * sec, 6 * sec, 6 * sec}},
		{"others stop for nobody", 0, []Action{on(Freeze, c2), on(Suspend, StoreNode), advance(10 * sec)}, reads{10 * sec, 10 * sec, 10 * sec}},
		{"a jump moves the wall clock alone", 0, []Action{advance(4 * sec), jump(-3 * sec), advance(6 * sec), jump(sec)}, reads{10 * sec, 10 * sec, 8 * sec}},
		{"a drift moves all", 0, []Action{driftTo(c1, 900_000), advance(10 * sec)}, reads{9 * sec, 9 * sec, 9 * sec}},
		{"a drift counts from now on", 0, []Action{advance(5 * sec), driftTo(c1, 1_200_000), advance(5 * sec)}, reads{11 * sec, 11 * sec, 11 * sec}},
		{"a rate may hold for one advance", 0, []Action{rated(5*sec, c1, 500_000), advance(5 * sec)}, reads{7500 * time.Millisecond, 7500 * time.Millisecond, 7500 * time.Millisecond}},
		{"and only for its node", 0, []Action{rated(10*sec, c2, 500_000)}, reads{10 * sec, 10 * sec, 10 * sec}},
		{"a rate of one advance goes before the drift", 0, []Action{driftTo(c1, 900_000), rated(10*sec, c1, million)}, reads{10 * sec, 10 * sec, 10 * sec}},
		{"no rate moves a frozen clock", 0, []Action{on(Freeze, c1), rated(10*sec, c1, 2*million)}, reads{0, 0, 0}},
		{"a crash stops none", 0, []Action{advance(4 * sec), on(Crash, c1), advance(6 * sec)}, reads{10 * sec, 10 * sec, 10 * sec}},
		{"a restart starts boot and monotonic anew", 7 * sec, []Action{on(Suspend, c1), advance(4 * sec), on(Crash, c1), advance(2 * sec), on(Restart, c1), advance(4 * sec)}, reads{4 * sec, 4 * sec, 17 * sec}},
		{"a crash ends a freeze", 0, []Action{on(Freeze, c1), advance(4 * sec), on(Crash, c1), advance(6 * sec)}, reads{6 * sec, 6 * sec, 6 * sec}},
		{"a drift outlives a restart", 0, []Action{driftTo(c1, 500_000), on(Crash, c1), on(Restart, c1), advance(10 * sec)}, reads{5 * sec, 5 * sec, 5 * sec}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := plainConfig()
			cfg.Offsets[c1] = c.offset
			r := newRun(t, cfg, c.actions...)
			if r.Now() != 10*sec {
				t.Fatalf("%v of true time passed, the table says 10 s", r.Now())
			}
			got := r.nodes[c1].clocks()
			if got != (Clocks{Boot: c.want.boot, Mono: c.want.mono, Wall: c.want.wall}) {
				t.Errorf("clocks read %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestFractionsOfANanosecondAddUp(t *testing.T) {
	r := newRun(t, plainConfig(), driftTo(c1, 333_333))
	for range 1_000_000 {
		r.elapse(1, &[model.MaxNodes]int32{})
	}
	if got := r.nodes[c1].clocks().Boot; got != 333_333 {
		t.Errorf("a million times 1 ns at 333333 ppm count %d ns, want 333333", got)
	}
}

// end is an event inside an advance, at its instant of true time.
type end struct {
	at   time.Duration
	kind model.Kind
	node model.Node
}

// The instants at which a belief ends and a tenure lapses, reckoned by hand.
// TTL 10 s, window 8 s; C1 is elected at 0 unless the case says otherwise.
func TestEndsAreEventsAtTheirExactInstants(t *testing.T) {
	down, lapse := model.KindStepDown, model.KindLapse
	late := []Action{tick(c1), advance(sec), deliver(1, 0), deliver(3, 0)} // handled 1 s after the send
	for _, c := range []struct {
		name    string
		actions []Action
		want    []end
	}{
		{"true clocks", then(elected(), advance(20*sec)), []end{{8 * sec, down, c1}, {10 * sec, lapse, StoreNode}}},
		{"an advance that ends just before", then(elected(), advance(8*sec-1)), nil},
		{"an advance that ends on it", then(elected(), advance(8*sec)), []end{{8 * sec, down, c1}}},
		{"advances that meet there", then(elected(), advance(8*sec-1), advance(1), advance(1)), []end{{8 * sec, down, c1}}},
		{"the countdown runs from the send, the TTL from the handling", then(late, advance(20*sec)), []end{{8 * sec, down, c1}, {11 * sec, lapse, StoreNode}}},
		{"a slow client", then(elected(), driftTo(c1, 800_000), advance(20*sec)), []end{{10 * sec, down, c1}, {10 * sec, lapse, StoreNode}}},
		{"a fast client", then(elected(), driftTo(c1, 1_250_000), advance(20*sec)), []end{{6400 * time.Millisecond, down, c1}, {10 * sec, lapse, StoreNode}}},
		// 8 s at 7/10 are 80/7 s = 11.428571428571... s: the first whole ns after it.
		{"an instant between two nanoseconds", then(elected(), driftTo(c1, 700_000), advance(20*sec)), []end{{10 * sec, lapse, StoreNode}, {11_428_571_429, down, c1}}},
		// The fraction that is left of 1 ns at 7/10 counts: 1 ns + (8e9 - 0.7) / 0.7.
		{"not rounded twice", then(elected(), driftTo(c1, 700_000), advance(1), advance(20*sec)), []end{{10 * sec, lapse, StoreNode}, {11_428_571_429, down, c1}}},
		{"a fast store", then(elected(), driftTo(StoreNode, 1_250_000), advance(20*sec)), []end{{8 * sec, down, c1}, {8 * sec, lapse, StoreNode}}},
		{"a drift in between", then(elected(), advance(4*sec), driftTo(c1, 500_000), advance(20*sec)), []end{{10 * sec, lapse, StoreNode}, {12 * sec, down, c1}}},
		{"a pause moves neither", then(elected(), on(Pause, c1), on(Pause, StoreNode), advance(20*sec)), []end{{8 * sec, down, c1}, {10 * sec, lapse, StoreNode}}},
		{"a suspend moves neither", then(elected(), on(Suspend, c1), on(Suspend, StoreNode), advance(20*sec)), []end{{8 * sec, down, c1}, {10 * sec, lapse, StoreNode}}},
		{"a frozen client believes on", then(elected(), on(Freeze, c1), advance(20*sec), on(Resume, c1), advance(8*sec)), []end{{10 * sec, lapse, StoreNode}, {28 * sec, down, c1}}},
		{"a frozen store holds on", then(elected(), on(Freeze, StoreNode), advance(20*sec), on(Resume, StoreNode), advance(10*sec)), []end{{8 * sec, down, c1}, {30 * sec, lapse, StoreNode}}},
		{"a crashed store does not lapse", then(elected(), on(Crash, StoreNode), advance(20*sec)), []end{{8 * sec, down, c1}}},
		{"a restarted store begins the TTL anew", then(elected(), advance(4*sec), on(Crash, StoreNode), advance(2*sec), on(Restart, StoreNode), advance(20*sec)),
			[]end{{8 * sec, down, c1}, {16 * sec, lapse, StoreNode}}},
		{"a restart brings a lapse back that nobody was told of", then(elected(), advance(12*sec), on(Crash, StoreNode), on(Restart, StoreNode), advance(20*sec)),
			[]end{{8 * sec, down, c1}, {10 * sec, lapse, StoreNode}, {22 * sec, lapse, StoreNode}}},
		{"a crashed client believes nothing", then(elected(), on(Crash, c1), advance(20*sec)), []end{{10 * sec, lapse, StoreNode}}},
		{"a deleted lease does not lapse", then(elected(), Action{Kind: Delete}, advance(20*sec)), []end{{8 * sec, down, c1}}},
		{"a renewal moves both", then(elected(), advance(3*sec), tick(c1), deliver(5, 0), deliver(6, 0), advance(20*sec)), []end{{11 * sec, down, c1}, {13 * sec, lapse, StoreNode}}},
		{"a renewal whose answer is lost moves the lapse alone", then(elected(), advance(3*sec), tick(c1), deliver(5, 0), drop(6, 0), advance(20*sec)),
			[]end{{8 * sec, down, c1}, {13 * sec, lapse, StoreNode}}},
		{"work goes on no longer than the term", then(elected(), on(WorkBegin, c1), on(Resign, c1), advance(20*sec)), []end{{8 * sec, down, c1}, {10 * sec, lapse, StoreNode}}},
		{"a wall clock moves nothing", then(elected(), Action{Kind: Jump, Who: c1, D: -60 * sec}, Action{Kind: Jump, Who: StoreNode, D: 60 * sec}, advance(20*sec)),
			[]end{{8 * sec, down, c1}, {10 * sec, lapse, StoreNode}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t, driftConfig(), c.actions...)
			var got []end
			for _, e := range r.trace.Events {
				if e.Kind == down || e.Kind == lapse {
					got = append(got, end{time.Duration(e.At), e.Kind, e.Node})
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("ends %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("end %d is %v, want %v", i+1, got[i], c.want[i])
				}
			}
			r.holds() // where the client is slower than the bound, as waived
		})
	}
}

func TestOffsetsChangeNothing(t *testing.T) {
	s := generated(t, Raw(), 7, 150)
	s.Config.Offsets = [model.MaxNodes]time.Duration{}
	var without Trace
	s.Run(Builtin(), Options{Trace: &without})
	for n := range s.Config.Offsets {
		if names[n].Name != "" {
			s.Config.Offsets[n] = time.Duration(n) * 11 * sec
		}
	}
	var with Trace
	s.Run(Builtin(), Options{Trace: &with})
	for i := range with.Events {
		with.Events[i].Local, without.Events[i].Local = 0, 0 // what the clocks read
	}
	if traceText(&with) != traceText(&without) || len(with.Events) < 100 {
		t.Errorf("with offsets\n%s\nwithout\n%s", traceText(&with), traceText(&without))
	}
}

func TestBeliefEndsFirstOnATie(t *testing.T) {
	// No drift and no margin: window and TTL are the same 10 s.
	r := newRun(t, plainConfig(), then(elected(), advance(10*sec))...)
	r.holds()
	ends := r.trace.Events[len(r.trace.Events)-2:]
	if ends[0].Kind != model.KindStepDown || ends[1].Kind != model.KindLapse || ends[0].At != int64(10*sec) || ends[1].At != int64(10*sec) {
		t.Errorf("the end is\n%s", r.text())
	}
	// C2 may be granted and lead at this very instant.
	for _, a := range []Action{tick(c2), deliver(5, 0), deliver(6, 0)} {
		r.do(a)
	}
	r.holds()
	if e := r.last(model.KindLead); e.Node != c2 || e.At != int64(10*sec) || e.Token != 2 {
		t.Errorf("C2 does not lead at 10 s:\n%s", r.text())
	}
}

func TestBeliefIsOpenAtItsEnd(t *testing.T) {
	r := newRun(t, driftConfig(), then(elected(), advance(8*sec-1))...)
	st, acting := r.Client(0)
	if !acting || st.Deadline != 8*sec || !r.clients[0].IsLeader(8*sec-1) {
		t.Errorf("C1 does not lead 1 ns before its deadline %v", st.Deadline)
	}
	r.do(advance(1))
	if _, acting := r.Client(0); acting || r.clients[0].IsLeader(8*sec) {
		t.Error("C1 leads at its deadline")
	}
	if _, held := r.Record(); !held {
		t.Error("the tenure ended with the belief")
	}
	r.do(advance(2*sec - 1))
	if _, held := r.Record(); !held {
		t.Error("the tenure ended 1 ns early")
	}
	r.do(advance(1))
	if rec, held := r.Record(); held || rec.Token != 1 {
		t.Errorf("the tenure is held at its expiry, token %d", rec.Token)
	}
}

// The clock of C1 runs at ppm from its request at 1 s on: slow is the observer's
// verdict over just this countdown, whatever happened before.
func TestSlowIsJudgedOverTheCountdown(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after int64
		store         int64
		want          bool
	}{
		{"at the bound", million, 800_000, million, false},
		{"below the bound", million, 799_999, million, true},
		{"slow before, true in the countdown", 100_000, million, million, false},
		{"fast before, slow in the countdown", 2 * million, 700_000, million, true},
		{"against a fast store", million, million, 1_250_001, true},
		{"against a fast store, at the bound", million, million, 1_250_000, false},
		{"against a slow store", million, 700_000, 800_000, false},
	} {
		for _, offset := range []time.Duration{0, -8 * sec, -8*sec - time.Duration(c.before)*1000} {
			cfg := driftConfig()
			cfg.Offsets[c1] = offset // with the last its deadline reads zero
			r := newRun(t, cfg, driftTo(c1, c.before), advance(sec), driftTo(c1, c.after), driftTo(StoreNode, c.store),
				tick(c1), deliver(5, 0), deliver(6, 0), advance(5*sec))
			if !r.leads(0) {
				t.Fatalf("%s: C1 does not lead:\n%s", c.name, r.text())
			}
			if got := r.slow() == 1<<c1; got != c.want {
				t.Errorf("%s, offset %v: slow %v, want %v", c.name, offset, got, c.want)
			}
		}
	}
}
