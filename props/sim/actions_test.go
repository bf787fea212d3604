package sim

import (
	"fmt"
	"strings"
	"testing"

	"fencepost/impl/lease"
	"fencepost/model"
)

func traceText(tr *Trace) string {
	var b strings.Builder
	if _, err := tr.WriteTo(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// Each kind of action where it makes sense, and where it does not: there it is
// a counted no-op that leaves no mark on the World nor on the trace.
func TestEveryKindIsEffectiveOrACountedNoop(t *testing.T) {
	paused := []Action{on(Pause, c1)}
	down := []Action{on(Crash, c1)}
	working := then(elected(), on(WorkBegin, c1))
	var covered [kinds][2]bool
	for _, c := range []struct {
		cfg    Config
		before []Action
		do     Action
		want   bool
	}{
		{do: advance(1), want: true},
		{do: advance(0)},

		{do: tick(c1), want: true},
		{before: []Action{tick(c1)}, do: tick(c1)}, // the next attempt is not due
		{before: []Action{tick(c1), advance(sec)}, do: tick(c1), want: true},
		{before: paused, do: tick(c1)},
		{before: down, do: tick(c1)},
		{before: elected(), do: tick(c1)},
		{before: then(elected(), advance(2*sec)), do: tick(c1), want: true},
		{before: then(elected(), advance(10*sec)), do: tick(c1), want: true},

		{before: []Action{tick(c1)}, do: deliver(1, 0), want: true},
		{before: []Action{tick(c1)}, do: deliver(1, 1)},
		{before: []Action{tick(c1), deliver(1, 0)}, do: deliver(1, 0)}, // it has arrived
		{before: []Action{tick(c1), on(Pause, StoreNode)}, do: deliver(1, 0)},
		{before: []Action{tick(c1), on(Suspend, StoreNode)}, do: deliver(1, 0)},
		{before: []Action{tick(c1), on(Freeze, StoreNode)}, do: deliver(1, 0)},
		{before: []Action{tick(c1), on(Crash, StoreNode)}, do: deliver(1, 0), want: true}, // it is lost
		{before: []Action{tick(c1), cutLink(c1, StoreNode)}, do: deliver(1, 0)},
		{before: []Action{tick(c1), cutLink(StoreNode, c1)}, do: deliver(1, 0)},
		{before: []Action{tick(c1), cutLink(c2, StoreNode)}, do: deliver(1, 0), want: true},
		{before: []Action{tick(c1), on(Pause, c1)}, do: deliver(1, 0), want: true}, // the sender matters no more
		{before: []Action{tick(c1), on(Crash, c1)}, do: deliver(1, 0), want: true},
		{before: []Action{tick(c1), deliver(1, 0), on(Pause, c1)}, do: deliver(2, 0)},

		{before: []Action{tick(c1)}, do: drop(1, 0), want: true},
		{before: []Action{tick(c1), drop(1, 0)}, do: drop(1, 0)},
		{before: []Action{tick(c1), cutLink(c1, StoreNode)}, do: drop(1, 0), want: true},

		{before: []Action{tick(c1)}, do: copyOf(1, 0), want: true},
		{before: []Action{tick(c1), deliver(1, 0)}, do: copyOf(1, 0)},
		{cfg: Config{Messages: 1}, before: []Action{tick(c1)}, do: copyOf(1, 0)}, // no room

		{do: rawAcquire(r1, sec), want: true},
		{do: rawAcquire(c1, sec), want: true},
		{before: []Action{on(Pause, r1)}, do: rawAcquire(r1, sec)},
		{do: Action{Kind: Renew, Who: r1, Token: 1, TTL: sec}, want: true},
		{before: paused, do: Action{Kind: Renew, Who: c1, Token: 1, TTL: sec}},
		{do: Action{Kind: Release, Who: r1, Token: 1}, want: true},
		{before: down, do: Action{Kind: Release, Who: c1, Token: 1}},
		{do: on(Get, r1), want: true},
		{before: paused, do: on(Get, c1)},
		{do: Action{Kind: Write, Who: r1, Token: 1}, want: true},
		{before: paused, do: Action{Kind: Write, Who: c1, Token: 1}},
		{do: on(Read, r1), want: true},
		{before: paused, do: on(Read, c1)},
		{do: Action{Kind: Fence, Who: r1, Token: 1}, want: true},
		{before: paused, do: Action{Kind: Fence, Who: c1, Token: 1}},

		{before: elected(), do: put(c1, 1), want: true},
		{before: elected(), do: put(c2, 1)},
		{before: then(elected(), advance(10*sec-1)), do: put(c1, 1), want: true},
		{before: then(elected(), advance(10*sec)), do: put(c1, 1)},
		{before: then(elected(), on(Pause, c1)), do: put(c1, 1)},
		{cfg: barrierConfig(), before: elected(), do: put(c1, 1)}, // the barrier is pending
		{before: then(working, on(Resign, c1)), do: put(c1, 1)},   // stopping is not leading

		{before: elected(), do: on(WorkBegin, c1), want: true},
		{before: elected(), do: on(WorkBegin, c2)},
		{before: working, do: on(WorkBegin, c1)},
		{before: then(elected(), on(Freeze, c1)), do: on(WorkBegin, c1)},
		{before: then(elected(), advance(10*sec)), do: on(WorkBegin, c1), want: true}, // it notices that it is too late
		{before: working, do: on(WorkEnd, c1), want: true},
		{before: then(working, advance(20*sec)), do: on(WorkEnd, c1), want: true},
		{before: elected(), do: on(WorkEnd, c1)},
		{before: then(working, on(Crash, c1), on(Restart, c1)), do: on(WorkEnd, c1)}, // its work died with it
		{before: elected(), do: on(Resign, c1), want: true},
		{cfg: barrierConfig(), before: elected(), do: on(Resign, c1), want: true},
		{before: working, do: on(Resign, c1), want: true},
		{before: then(working, on(Resign, c1)), do: on(Resign, c1)},
		{do: on(Resign, c1)},
		{before: then(elected(), on(Suspend, c1)), do: on(Resign, c1)},

		{do: on(Pause, c1), want: true},
		{do: on(Pause, r1), want: true},
		{do: on(Pause, StorageNode), want: true},
		{before: paused, do: on(Pause, c1)},
		{before: paused, do: on(Freeze, c1)},
		{before: down, do: on(Pause, c1)},
		{do: on(Suspend, StoreNode), want: true},
		{before: paused, do: on(Suspend, c1)},
		{do: on(Freeze, c1), want: true},
		{before: down, do: on(Freeze, c1)},
		{before: paused, do: on(Resume, c1), want: true},
		{do: on(Resume, c1)},
		{before: paused, do: on(Resume, c2)},
		{before: then(paused, on(Crash, c1)), do: on(Resume, c1)},
		{do: on(Crash, c1), want: true},
		{before: paused, do: on(Crash, c1), want: true},
		{before: down, do: on(Crash, c1)},
		{do: on(Crash, r1)}, // a raw party has nothing to lose
		{do: on(Crash, StoreNode), want: true},
		{do: on(Crash, StorageNode), want: true},
		{before: down, do: on(Restart, c1), want: true},
		{do: on(Restart, c1)},
		{before: paused, do: on(Restart, c1)},

		{do: driftTo(c1, 900_000), want: true},
		{do: driftTo(c1, million)},
		{before: down, do: driftTo(c1, 900_000), want: true}, // its clock goes on
		{do: Action{Kind: Jump, Who: c1, D: -sec}, want: true},
		{do: Action{Kind: Jump, Who: c1}},
		{before: elected(), do: Action{Kind: Delete}, want: true},
		{do: Action{Kind: Delete}},
		{before: then(elected(), on(Crash, StoreNode)), do: Action{Kind: Delete}},
		{before: then(elected(), on(Pause, StoreNode)), do: Action{Kind: Delete}},
		{before: then(elected(), Action{Kind: Delete}), do: Action{Kind: Delete}},
		{before: then(elected(), advance(20*sec)), do: Action{Kind: Delete}, want: true}, // it lapsed, and is still there
		{do: cutLink(c1, StoreNode), want: true},
		{before: []Action{cutLink(c1, StoreNode)}, do: cutLink(StoreNode, c1)},
		{before: []Action{cutLink(c1, StoreNode)}, do: Action{Kind: Heal}, want: true},
		{do: Action{Kind: Heal}},
		{do: Action{Kind: Calm, D: sec}, want: true},
		{do: Action{Kind: Calm}, want: true}, // faults end, if no time passes
	} {
		name := fmt.Sprintf("%v after %v", c.do, c.before)
		cfg := plainConfig()
		cfg.Messages, cfg.Lease.Barrier = c.cfg.Messages, c.cfg.Lease.Barrier
		r := newRun(t, cfg, c.before...)
		before, events := r.World, len(r.trace.Events)
		if got := r.do(c.do); got != c.want {
			t.Errorf("%s: effective %v, want %v", name, got, c.want)
			continue
		}
		r.holds()
		covered[c.do.Kind][btoi(c.want)] = true
		effective, noop := before.counts.Effective[c.do.Kind], before.counts.Noop[c.do.Kind]
		if c.want {
			effective++
		} else {
			noop++
		}
		if r.counts.Effective[c.do.Kind] != effective || r.counts.Noop[c.do.Kind] != noop {
			t.Errorf("%s: counted %d effective and %d no-ops", name, r.counts.Effective[c.do.Kind], r.counts.Noop[c.do.Kind])
		}
		after := r.World
		before.counts, before.action, before.nextMsg = after.counts, after.action, after.nextMsg
		if same := after == before && len(r.trace.Events) == events; same == c.want {
			t.Errorf("%s: the World is as it was: %v\n%s", name, same, r.text())
		}
	}
	for k := KindNone + 1; k < kinds; k++ {
		if covered[k] != [2]bool{k != Calm, true} {
			t.Errorf("%v was not seen both as a no-op and effective: %v", k, covered[k])
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// What each raw request comes to at a store and storage that C1 holds.
func TestRawRequestsAreAnsweredByTheRules(t *testing.T) {
	c1Holder := model.Owner{Node: c1, Seq: 1}
	for _, c := range []struct {
		ask   Action
		code  model.Code
		owner model.Owner
	}{
		{rawAcquire(r1, sec), model.CodeHeld, model.Owner{Node: r1, Seq: 1}},
		{rawAcquire(r1, 0), model.CodeInvalid, model.Owner{Node: r1, Seq: 1}},
		{rawAcquire(r1, -sec), model.CodeInvalid, model.Owner{Node: r1, Seq: 1}},
		{Action{Kind: Acquire, Who: r1, As: c1Holder, TTL: sec}, model.CodeGranted, c1Holder},
		{Action{Kind: Renew, Who: r1, Token: 1, TTL: sec}, model.CodeLost, model.Owner{Node: r1, Seq: 1}},
		{Action{Kind: Renew, Who: r1, As: c1Holder, Token: 1, TTL: sec}, model.CodeGranted, c1Holder},
		{Action{Kind: Renew, Who: r1, As: c1Holder, Token: 2, TTL: sec}, model.CodeLost, c1Holder},
		{Action{Kind: Renew, Who: r1, As: c1Holder, Token: 0, TTL: sec}, model.CodeInvalid, c1Holder},
		{Action{Kind: Release, Who: r1, Token: 1}, model.CodeLost, model.Owner{Node: r1, Seq: 1}},
		{Action{Kind: Release, Who: r1, As: model.Owner{Node: c1, Seq: 2}, Token: 1}, model.CodeLost, model.Owner{Node: c1, Seq: 2}},
		{Action{Kind: Get, Who: r1}, model.CodeHeld, model.Owner{Node: r1, Seq: 1}},
		{Action{Kind: Write, Who: r1, Token: 1, Value: 5}, model.CodeLanded, model.Owner{Node: r1, Seq: 1}},
		{Action{Kind: Write, Who: r1, Token: 0, Value: 5}, model.CodeStale, model.Owner{Node: r1, Seq: 1}},
		{Action{Kind: Fence, Who: r1, Token: 1}, model.CodeFenced, model.Owner{Node: r1, Seq: 1}},
		{Action{Kind: Fence, Who: r1, Token: 0}, model.CodeStale, model.Owner{Node: r1, Seq: 1}},
		{Action{Kind: Read, Who: r1, Key: 2}, model.CodeValue, model.Owner{Node: r1, Seq: 1}},
	} {
		r := newRun(t, plainConfig(), then(elected(), c.ask, deliver(4, 0), deliver(5, 0))...)
		r.holds()
		h := r.last(model.KindHandle)
		if h.Code != c.code || h.Owner != c.owner || h.Peer != r1 || h.Op != rawOps[c.ask.Kind] || h.Asked != c.ask.Token || h.TTL != int64(c.ask.TTL) {
			t.Errorf("%v: %s", c.ask, Line(&h))
		}
		// The reply says the same, to the party itself, and changes no client.
		got := r.last(model.KindReturn)
		if got.Node != r1 || got.Peer != h.Node || got.Req != h.Req || model.AnswerOf(&got) != model.AnswerOf(&h) || got.Value != h.Value {
			t.Errorf("%v: answered %+v, returned %+v", c.ask, h, got)
		}
		if !r.leads(0) {
			t.Errorf("%v deposed C1", c.ask)
		}
	}
}

func TestPutSendsTheTokenOfTheTermAndTheNetworkIsTheGap(t *testing.T) {
	r := newRun(t, plainConfig(), then(elected(), put(c1, 7))...)
	if e := r.last(model.KindInvoke); e.Op != model.OpWrite || e.Peer != StorageNode || e.Asked != 1 || e.Value != 7 || e.Owner != (model.Owner{Node: c1, Seq: 1}) {
		t.Errorf("put sent %+v", e)
	}
	// It lands although C1's term has ended and C2 leads: nobody has told the storage.
	for _, a := range []Action{advance(10 * sec), tick(c2), deliver(6, 0), deliver(7, 0), deliver(4, 0)} {
		if !r.do(a) {
			t.Fatalf("%v did nothing", a)
		}
	}
	if !r.leads(1) || r.Value(0) != 7 || r.last(model.KindHandle).Code != model.CodeLanded {
		t.Errorf("the write did not land:\n%s", r.text())
	}
	r.holds()
}

func TestResignIsAnEventOnlyWhereATermWasGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    Config
		before []Action
		want   int
		reason model.Reason
	}{
		"a leader":                   {plainConfig(), elected(), 1, model.ReasonResigned},
		"one behind the barrier":     {barrierConfig(), elected(), 1, model.ReasonResigned},
		"one who lapsed unnoticed":   {plainConfig(), then(elected(), advance(10*sec)), 0, model.ReasonLapsed},
		"one who campaigns":          {plainConfig(), []Action{tick(c1)}, 0, model.ReasonNone},
		"one whose fencing ran out":  {barrierConfig(), then(elected(), advance(10*sec)), 0, model.ReasonLapsed},
		"one who resigned before it": {plainConfig(), then(elected(), on(Resign, c1)), 1, model.ReasonResigned},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, c.cfg, then(c.before, on(Resign, c1))...)
			r.holds()
			if n := len(r.of(model.KindResign)); n != c.want {
				t.Errorf("%d resignations, want %d:\n%s", n, c.want, r.text())
			}
			if c.reason == model.ReasonNone {
				return
			}
			if e := r.last(model.KindStepDown); len(r.of(model.KindStepDown)) != 1 || e.Reason != c.reason {
				t.Errorf("step-down %v, want one: %v\n%s", e.Reason, c.reason, r.text())
			}
		})
	}
}

func TestWhyATermEnded(t *testing.T) {
	lost := then(elected(), advance(2*sec), tick(c1), Action{Kind: Delete}, deliver(5, 0)) // the renewal is refused in 7.0
	for name, c := range map[string]struct {
		cfg     Config
		actions []Action
		want    model.Reason
	}{
		"the deadline passed":                          {plainConfig(), then(elected(), advance(10*sec)), model.ReasonLapsed},
		"a renewal was refused":                        {plainConfig(), then(lost, deliver(7, 0)), model.ReasonRefused},
		"a renewal was refused behind the barrier":     {barrierConfig(), then(lost, deliver(7, 0)), model.ReasonRefused},
		"the refusal came after the deadline":          {barrierConfig(), then(lost, advance(8*sec), deliver(7, 0)), model.ReasonLapsed},
		"a tick after the deadline behind the barrier": {barrierConfig(), then(elected(), advance(10*sec), tick(c1)), model.ReasonLapsed},
		"a resignation":                                {plainConfig(), then(elected(), on(Resign, c1)), model.ReasonResigned},
		"the fence was refused":                        {barrierConfig(), then(elected(), Action{Kind: Fence, Who: r1, Token: 2}, deliver(4, 0), deliver(3, 0), deliver(6, 0)), model.ReasonRefused},
	} {
		r := newRun(t, c.cfg, c.actions...)
		r.holds()
		if e := r.last(model.KindStepDown); len(r.of(model.KindStepDown)) != 1 || e.Reason != c.want || e.Token != 1 {
			t.Errorf("%s: want one step-down, %v\n%s", name, c.want, r.text())
		}
	}
}

func TestAResignedLeaderReleasesWhenItsWorkHasStopped(t *testing.T) {
	r := newRun(t, plainConfig(), then(elected(), on(WorkBegin, c1), on(Resign, c1))...)
	if !r.leads(0) || len(r.of(model.KindStepDown)) != 0 || r.nmsgs != 0 {
		t.Errorf("C1 stepped down or released while its work went on:\n%s", r.text())
	}
	r.do(on(WorkEnd, c1))
	if e := r.last(model.KindInvoke); r.leads(0) || e.Op != model.OpRelease || e.Asked != 1 {
		t.Errorf("the work ended, but no release:\n%s", r.text())
	}
	r.holds()
	if st, _ := r.Client(0); st.Phase != lease.Campaigning || st.Holder.Seq != 2 {
		t.Errorf("C1 is %v as %v", st.Phase, st.Holder)
	}
}

func TestActionsThatFitNoWorldAreRefused(t *testing.T) {
	for _, c := range []struct {
		a     Action
		field string
	}{
		{Action{ID: 1}, "do"},
		{Action{ID: 1, Kind: kinds}, "do"},
		{Action{Kind: Heal}, "id"},
		{Action{ID: -1, Kind: Heal}, "id"},
		{Action{ID: 1, Kind: Tick}, "who"},
		{Action{ID: 1, Kind: Tick, Who: c3}, "who"}, // there are two
		{Action{ID: 1, Kind: Tick, Who: r1}, "who"},
		{Action{ID: 1, Kind: Tick, Who: 200}, "who"},
		{Action{ID: 1, Kind: Resign, Who: StoreNode}, "who"},
		{Action{ID: 1, Kind: Acquire, Who: StoreNode}, "who"},
		{Action{ID: 1, Kind: Write, Who: StorageNode}, "who"},
		{Action{ID: 1, Kind: Pause, Who: 9}, "who"},
		{Action{ID: 1, Kind: Cut, Who: c1}, "peer"},
		{Action{ID: 1, Kind: Cut, Who: c1, Peer: c1}, "peer"},
		{Action{ID: 1, Kind: Cut, Who: c1, Peer: 200}, "peer"},
		{Action{ID: 1, Kind: Acquire, Who: r1, As: model.Owner{Node: StoreNode, Seq: 1}}, "as"},
		{Action{ID: 1, Kind: Acquire, Who: r1, As: model.Owner{Node: 200, Seq: 1}}, "as"},
		{Action{ID: 1, Kind: Acquire, Who: r1, As: model.Owner{Node: c1}}, "as"},
		{Action{ID: 1, Kind: Acquire, Who: r1, As: model.Owner{Seq: 1}}, "as"},
		{Action{ID: 1, Kind: Deliver}, "msg"},
		{Action{ID: 1, Kind: Drop, Msg: model.Msg{Action: 1, N: -1}}, "msg"},
		{Action{ID: 1, Kind: Read, Who: r1, Key: model.Keys}, "key"},
		{Action{ID: 1, Kind: Write, Who: r1, Token: maxToken + 1}, "token"},
		{Action{ID: 1, Kind: Advance, D: -1}, "d"},
		{Action{ID: 1, Kind: Advance, D: maxAdvance + 1}, "d"},
		{Action{ID: 1, Kind: Jump, Who: c1, D: -maxAdvance - 1}, "d"},
		{Action{ID: 1, Kind: Acquire, Who: r1, TTL: maxAdvance + 1}, "ttl"},
		{Action{ID: 1, Kind: Calm, D: sec, Delay: -1}, "delay"},
		{Action{ID: 1, Kind: Calm, D: sec, Every: -1}, "every"},
		{Action{ID: 1, Kind: Calm, D: maxAdvance}, "every"}, // 3.6 million ticks
		{Action{ID: 1, Kind: Drift, Who: c1}, "ppm"},
		{Action{ID: 1, Kind: Drift, Who: c1, Rate: 2*million + 1}, "ppm"},
		{Action{ID: 1, Kind: Advance, D: 1, Rates: [model.MaxNodes]int32{c1: -1}}, "rates.C1"},
		{Action{ID: 1, Kind: Advance, D: 1, Rates: [model.MaxNodes]int32{c3: million}}, "rates.C3"},
		{Action{ID: 1, Kind: Advance, D: 1, Rates: [model.MaxNodes]int32{0: million}}, "rates.nobody"},
	} {
		s := Schedule{Config: plainConfig(), Actions: []Action{c.a}}
		err := s.Validate()
		if fe, ok := err.(*FieldError); !ok || fe.Field != "actions[0]."+c.field {
			t.Errorf("%+v: error %v, want one about %s", c.a, err, c.field)
		}
	}
	twice := Schedule{Config: plainConfig(), Actions: []Action{{ID: 1, Kind: Heal}, {ID: 1, Kind: Heal}}}
	if err := twice.Validate(); err == nil || !strings.Contains(err.Error(), "actions[1].id") {
		t.Errorf("one id twice: %v", err)
	}
	many := Schedule{Config: plainConfig(), Actions: make([]Action, MaxActions+1)}
	if err := many.Validate(); err == nil || !strings.Contains(err.Error(), "actions:") {
		t.Errorf("too many actions: %v", err)
	}
}

func TestConfigurationsThatFitNoWorldAreRefused(t *testing.T) {
	for field, edit := range map[string]func(*Config){
		"config.clients":             func(c *Config) { c.Clients = 0 },
		"config.clients ":            func(c *Config) { c.Clients = MaxClients + 1 },
		"config.storage":             func(c *Config) { c.Storage = "paper" },
		"config.messages":            func(c *Config) { c.Messages = MaxMessages + 1 },
		"config.messages ":           func(c *Config) { c.Messages = -1 },
		"config.firstToken":          func(c *Config) { c.FirstToken = maxToken + 1 },
		"config.offsets.C1":          func(c *Config) { c.Offsets[c1] = maxOffset + 1 },
		"config.offsets.C1 ":         func(c *Config) { c.Offsets[c1] = -maxOffset - 1 },
		"config.offsets.nobody":      func(c *Config) { c.Offsets[9] = 1 },
		"config.lease.ttl":           func(c *Config) { c.Lease.TTL = 0 },
		"config.lease.maxDriftRate":  func(c *Config) { c.Lease.MaxDriftRate = 1 },
		"config.lease.retryInterval": func(c *Config) { c.Lease.RetryInterval = -1 },
	} {
		cfg := plainConfig()
		edit(&cfg)
		_, err := NewWorld(cfg, Builtin(), Options{})
		if fe, ok := err.(*FieldError); !ok || fe.Field != strings.TrimSpace(field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}
