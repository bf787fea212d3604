package judge_test

import (
	"strings"
	"testing"
	"time"

	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

func TestTheHistoryPromisesWhatTheStoreDoes(t *testing.T) {
	cfg := sim.Config{FirstToken: 1}
	cfg.Lease.LockDelay = 3
	p := model.Promise{Tokens: model.TokensRising, Granularity: 10, MinTTL: 100, Late: 1000, RenewAfterLapse: true}
	m := judge.Meta(nil, &cfg, p)
	if m.Tokens != linearizability.TokensRising || !m.RenewAfterLapse || m.LockDelay != 3 || m.First != 1 || m.Drift != 0 || m.Early != 0 {
		t.Errorf("meta %+v", m)
	}
	for name, c := range map[string]struct {
		kind  model.Kind
		rate  int64
		least int64 // that a tenure of the store may outlive its TTL by, in true time
		most  int64
	}{
		"true":  {model.KindNone, 0, 1110, 1110},
		"slow":  {model.KindDrift, 500_000, 2221, 2221}, // half the rate: twice as long, and its readings are whole ns
		"still": {model.KindFreeze, 0, linearizability.Unbounded >> 33, linearizability.Unbounded},
	} {
		m := judge.Meta([]model.Event{{Kind: c.kind, Node: sim.StoreNode, Value: c.rate}}, &cfg, p)
		if m.Late < c.least || m.Late > c.most {
			t.Errorf("%s: late %d, want %d to %d", name, m.Late, c.least, c.most)
		}
	}
}

func TestTheBuiltInStoreIsNeverLate(t *testing.T) {
	cfg := sim.Config{}
	if m := judge.Meta(nil, &cfg, model.Promise{}); m.Late != 0 || m.Early != 0 {
		t.Errorf("late %d, early %d", m.Late, m.Early)
	}
}

func TestALongPromiseNeverOverflows(t *testing.T) {
	cfg := sim.Config{}
	p := model.Promise{Late: int64(24 * time.Hour)}
	m := judge.Meta([]model.Event{{Kind: model.KindFreeze, Node: sim.StoreNode}}, &cfg, p)
	if m.Late != linearizability.Unbounded {
		t.Errorf("late %d on a clock that stands still", m.Late)
	}
}

func TestAViolatedHistoryNamesTheAnswer(t *testing.T) {
	skipped, err := mutant.Subject("mutant:lock-delay-skipped")
	if err != nil {
		t.Fatal(err)
	}
	cfg := sim.Config{Clients: 1}
	cfg.Lease.TTL, cfg.Lease.LockDelay = 10*time.Second, 5*time.Second
	s := &sim.Schedule{Config: cfg, Actions: []sim.Action{
		{ID: 1, Kind: sim.Acquire, Who: sim.RawNode(0), TTL: time.Second},
		{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
		{ID: 3, Kind: sim.Advance, D: 2 * time.Second},
		{ID: 4, Kind: sim.Acquire, Who: sim.RawNode(1), TTL: time.Second},
		{ID: 5, Kind: sim.Deliver, Msg: model.Msg{Action: 4}},
		{ID: 6, Kind: sim.Advance, D: time.Second},
	}}
	r := judge.Run(s, skipped, judge.All&^model.SetOf(model.Lockstep))
	if want := (model.Violation{Invariant: model.Linearizability, At: int64(2 * time.Second), Action: 5, Node: sim.StoreNode}); r.First != want {
		t.Errorf("first violation %+v, want %+v", r.First, want)
	}
	why := judge.Explain(judge.Trace(s, skipped, judge.All&^model.SetOf(model.Lockstep)).Events, &cfg, model.Promise{})
	if !strings.Contains(why, "R2#1") {
		t.Errorf("explained as %q", why)
	}
	if why := judge.Explain(judge.Trace(s, sim.Builtin(), judge.All).Events, &cfg, model.Promise{}); why != "" {
		t.Errorf("what is right is explained as %q", why)
	}
}

// A grant for less or more than was asked for lapses when it says.
func TestAGrantCountsForWhatItSays(t *testing.T) {
	const sec = int64(time.Second)
	cfg := sim.Config{Clients: 1}
	owner := func(n model.Node) model.Owner { return model.Owner{Node: n, Seq: 1} }
	acquired := func(n model.Node, at, ttl, remaining int64, token uint64) []model.Event {
		e := model.Event{At: at, Kind: model.KindInvoke, Node: n, Peer: sim.StoreNode, Op: model.OpAcquire, Owner: owner(n), TTL: ttl, Req: model.Msg{Action: int32(token)}}
		h := e
		h.Kind, h.Node, h.Peer, h.Code, h.Token, h.Holder, h.Remaining = model.KindHandle, sim.StoreNode, n, model.CodeGranted, token, owner(n), remaining
		return []model.Event{e, h}
	}
	for _, c := range []struct {
		asked, at int64 // at is of the next grant, after one of 15 s
		want      linearizability.Result
	}{
		{20 * sec, 15 * sec, linearizability.Holds}, {20 * sec, 15*sec - 1, linearizability.Violated},
		{10 * sec, 15 * sec, linearizability.Holds}, {10 * sec, 15*sec - 1, linearizability.Violated},
	} {
		events := append(acquired(sim.RawNode(0), 0, c.asked, 15*sec, 1), acquired(sim.RawNode(1), c.at, sec, sec, 2)...)
		if got := judge.Linearize(events, &cfg, model.Promise{}); got != c.want {
			t.Errorf("the next grant after %v: %v, want %v", time.Duration(c.at), got, c.want)
		}
	}
}
