package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

func calmOf(d, delay, every time.Duration) Action {
	return Action{Kind: Calm, D: d, Delay: delay, Every: every}
}

func TestCalmEndsEveryFault(t *testing.T) {
	r := newRun(t, plainConfig(), then(elected(), on(WorkBegin, c1), on(Resign, c1),
		on(Crash, StoreNode), on(Crash, c2), on(Freeze, StorageNode), on(Suspend, r1), on(Pause, r2),
		driftTo(c1, 900_000), driftTo(StoreNode, 1_100_000), cutLink(c1, StoreNode), calmOf(0, sec, sec))...)
	r.holds()
	for n := range r.nodes {
		if nd := &r.nodes[n]; !nd.up() || nd.rate != million {
			t.Errorf("%s is still %+v", names[n].Name, nd)
		}
	}
	if r.cuts != [model.MaxNodes]uint16{} {
		t.Error("a link is still cut")
	}
	if st, acting := r.Client(0); st.Working || acting || st.Phase != lease.Campaigning {
		t.Errorf("C1 still works: %+v", st)
	}
	// All of it before the calm begins, in which nothing of the kind may happen.
	began := false
	for _, e := range r.trace.Events {
		switch e.Kind {
		case model.KindCalm:
			began = true
		case model.KindResume, model.KindRestart, model.KindDrift, model.KindHeal, model.KindWorkDone:
			if began {
				t.Errorf("in the calm: %s", Line(&e))
			}
		}
	}
}

// Messages take 1 s and ticks are 2 s apart: both campaign at 0, C1's request
// arrives first at 1 s, and the grant at 2 s.
func TestCalmIsFairAndEndsWithALeader(t *testing.T) {
	r := newRun(t, plainConfig(), calmOf(time.Minute, sec, 2*sec))
	r.holds()
	if e := r.last(model.KindLead); r.Now() != 2*sec || e.At != int64(2*sec) || e.Node != c1 || !r.leads(0) {
		t.Errorf("at %v:\n%s", r.Now(), r.text())
	}
	if e := r.last(model.KindCalmEnd); e.At != int64(2*sec) {
		t.Errorf("the calm ended at %v", time.Duration(e.At))
	}
	// With a leader already there it lasts until the messages of before have landed.
	r = newRun(t, plainConfig(), then(elected(), calmOf(time.Minute, sec, 2*sec))...)
	r.holds()
	if r.Now() != sec {
		t.Errorf("with a leader the calm lasted %v", r.Now())
	}
	// And no longer than it may.
	r = newRun(t, plainConfig(), calmOf(1500*time.Millisecond, sec, 2*sec))
	r.holds()
	if r.Now() != 1500*time.Millisecond {
		t.Errorf("a calm of 1.5 s lasted %v", r.Now())
	}
}

// Both campaign at 0 and again at 1 s, where their first requests arrive: what
// is due comes before whoever has yet to ask.
func TestInCalmAMessageComesBeforeATick(t *testing.T) {
	r := newRun(t, plainConfig(), calmOf(1500*time.Millisecond, sec, sec))
	r.holds()
	var got []model.Kind
	for _, e := range r.trace.Events {
		if e.At == int64(sec) {
			got = append(got, e.Kind)
		}
	}
	want := []model.Kind{model.KindHandle, model.KindHandle, model.KindInvoke, model.KindInvoke}
	if !slices.Equal(got, want) {
		t.Errorf("at 1 s came %v, want %v", got, want)
	}
}

func TestCalmDeliversWhatWasOnItsWay(t *testing.T) {
	r := newRun(t, plainConfig(), Action{Kind: Write, Who: r1, Token: 1, Value: 7}, advance(30*sec), calmOf(time.Minute, sec, sec))
	r.holds()
	if e := r.of(model.KindHandle)[0]; e.Op != model.OpWrite || e.At != int64(31*sec) {
		t.Errorf("the write arrived as %s", Line(&e))
	}
}

// silent is a candidate that never campaigns.
type silent struct{ Client }

func (silent) Tick(*ClientState, Clocks) lease.Requests { return lease.Requests{} }

func TestCalmWithoutALeaderBreaksAvailability(t *testing.T) {
	subject := Builtin()
	subject.Client = silent{}
	// 1 s for messages of before, the TTL of 4 s, and 2*1 + 1 + 1 + 2*1.
	for _, c := range []struct {
		d    time.Duration
		want bool
	}{{11 * sec, false}, {11*sec + 1, true}} {
		r := newRunOf(t, plainConfig(), subject, rawAcquire(r1, 4*sec), drop(1, 0), calmOf(c.d, sec, sec))
		if got := r.Violated() == model.SetOf(model.Availability); got != c.want {
			t.Errorf("calm of %v: violated %v", c.d, r.Violated())
		}
		if v := r.First(); c.want && (v.Want != int64(11*sec) || v.At != int64(c.d) || v.Action != 3) {
			t.Errorf("violation %+v", v)
		}
	}
}

func TestAfterAResignationSomebodyLeadsSoon(t *testing.T) {
	r := newRun(t, plainConfig(), calmOf(time.Minute, sec, sec), on(Resign, c1), calmOf(time.Minute, sec, sec))
	r.holds()
	if !r.leads(1) || r.last(model.KindLead).Token != 2 {
		t.Errorf("C2 does not lead:\n%s", r.text())
	}
	// The release lands 1 s into the calm; then 2*1 + 1 + 1 + 2*1 at the most.
	released, led := int64(0), r.last(model.KindLead).At
	for _, e := range r.of(model.KindHandle) {
		if e.Code == model.CodeReleased {
			released = e.At
		}
	}
	if released == 0 || led-released > int64(6*sec) {
		t.Errorf("released at %v, led at %v", time.Duration(released), time.Duration(led))
	}
}

// restless is another incarnation at each attempt, so that no answer ever finds
// the one that asked if a round trip takes longer than a retry.
type restless struct{ Client }

func (r restless) Tick(c *ClientState, now Clocks) lease.Requests {
	if s := c.State(); s.Phase == lease.Campaigning && now.Boot >= s.NextSend {
		s.Holder = s.Holder.Next()
		c.SetState(s)
	}
	return r.Client.Tick(c, now)
}

func TestWhoNeverKnowsItsOwnGrantIsNotExcused(t *testing.T) {
	cfg := plainConfig()
	cfg.Lease.RetryInterval = sec / 2
	subject := Builtin()
	subject.Client = restless{}
	// 1 s for messages of before, of which there are none, and 2*1 + 0.5 + 0.5 + 2*1.
	r := newRunOf(t, cfg, subject, calmOf(time.Hour, sec, sec/2))
	if v := r.First(); v.Invariant != model.Availability || v.Want != int64(6*sec) {
		t.Errorf("first violation %+v", v)
	}
	newRun(t, cfg, calmOf(time.Hour, sec, sec/2)).holds()
}

// Two clients that ask five times a second fill a network whose messages take a
// second: 2 * (1 + 10) requests and answers are under way. What got lost for
// want of room would be laid at the candidates' door. Behind the barrier a
// fence is under way besides, and its answer.
func TestACalmHasRoomForWhatCorrectCandidatesSend(t *testing.T) {
	for _, c := range []struct {
		retry   time.Duration
		barrier bool
		want    bool
	}{
		{sec / 10, false, false}, {sec / 6, false, false}, {sec / 5, false, true},
		{sec / 4, true, false}, {sec * 3 / 10, true, true},
	} {
		cfg := plainConfig()
		cfg.Lease.RetryInterval, cfg.Lease.Barrier = c.retry, c.barrier
		s := Schedule{Config: cfg, Actions: number([]Action{calmOf(time.Minute, sec, sec/10)})}
		var fe *FieldError
		if err := s.Validate(); (err == nil) != c.want || !c.want && (!errors.As(err, &fe) || fe.Field != "actions[0].delay") {
			t.Errorf("a retry each %v, barrier %v: %v", c.retry, c.barrier, err)
		}
	}
}

// To lose a message is a fault, of which there are none in a calm, however few
// the run allows in flight. Afterwards it loses them again.
func TestNothingIsLostForWantOfRoomInACalm(t *testing.T) {
	cfg := barrierConfig()
	cfg.Messages = 1
	r := newRun(t, cfg, tick(c1), tick(c2), calmOf(time.Hour, sec/10, sec/2), Action{Kind: Resign, Who: c1}, tick(c2), tick(c2))
	r.holds()
	var lost []int32
	for _, e := range r.of(model.KindLose) {
		if e.Reason != model.ReasonOverflow {
			t.Errorf("lost otherwise: %+v", e)
		}
		lost = append(lost, e.Action)
	}
	if led := r.of(model.KindLead); len(led) != 1 || led[0].Action != 3 || len(lost) == 0 || slices.Contains(lost, 3) {
		t.Errorf("led %+v; messages lost in the actions %v, and 3 is the calm", led, lost)
	}
}

func TestGeneratedCalmsAreAnyThatLeaveARenewalItsTime(t *testing.T) {
	src := rand.NewPCG(1, 8)
	delays, ticks := map[time.Duration]bool{}, map[time.Duration]bool{}
	var close int
	for range 2000 {
		cfg := RandomConfig(src)
		r := rng(src.Uint64())
		a := calmFor(&cfg, &r)
		if err := cfg.check(&a); err != nil {
			t.Fatal(err)
		}
		w := cfg.Lease.SafeWindow()
		if 4*a.Delay+a.Every >= w || a.Every < time.Millisecond || !cfg.roomy(a.Delay, a.Every) {
			t.Errorf("delay %v and ticks each %v in a window of %v, %+v", a.Delay, a.Every, w, cfg)
		}
		delays[1000*a.Delay/w], ticks[1000*a.Every/w] = true, true
		close += btoi(4*a.Delay+a.Every > w*9/10)
	}
	if len(delays) < 50 || len(ticks) < 16 || close < 50 {
		t.Errorf("%d delays, %d ticks, %d near the limit", len(delays), len(ticks), close)
	}
}
