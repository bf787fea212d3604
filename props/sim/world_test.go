package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

func TestMessagesAreNamedAfterTheActionThatMadeThem(t *testing.T) {
	r := newRun(t, barrierConfig(), then(elected(), // 3.0 is the fence request that the grant set off
		copyOf(3, 0),  // 4.0
		copyOf(4, 0),  // 5.0, a copy of the copy
		deliver(4, 0), // answered by 6.0
		copyOf(6, 0),  // 7.0
		deliver(6, 0), deliver(7, 0))...)
	r.holds()
	for i, want := range []struct{ msg, req model.Msg }{{model.Msg{Action: 4}, model.Msg{Action: 3}}, {model.Msg{Action: 5}, model.Msg{Action: 4}}, {model.Msg{Action: 7}, model.Msg{Action: 4}}} {
		if e := r.of(model.KindDuplicate)[i]; e.Msg != want.msg || e.Req != want.req || !e.Copy {
			t.Errorf("copy %d is %+v, want %+v", i+1, e, want)
		}
	}
	// A copied request is an operation of its own, and so is its answer.
	if e := r.last(model.KindHandle); e.Msg != (model.Msg{Action: 4}) || e.Req != e.Msg || !e.Copy || e.Peer != c1 {
		t.Errorf("the copy was handled as %+v", e)
	}
	returns := r.of(model.KindReturn)
	for i, want := range []model.Msg{{Action: 6}, {Action: 7}} {
		if e := returns[len(returns)-2+i]; e.Msg != want || e.Req != (model.Msg{Action: 4}) || !e.Copy {
			t.Errorf("answer %d is %+v", i+1, e)
		}
	}
	if r.find(model.Msg{Action: 3}) < 0 || r.find(model.Msg{Action: 5}) < 0 || r.nmsgs != 2 {
		t.Errorf("in flight are %v", r.msgs[:r.nmsgs])
	}
}

func TestOneActionMayMakeSeveralMessages(t *testing.T) {
	// Behind the barrier a tick renews and fences again.
	r := newRun(t, barrierConfig(), then(elected(), advance(2*sec), tick(c1))...)
	var names []model.Msg
	for _, e := range r.of(model.KindInvoke)[2:] {
		names = append(names, e.Req)
	}
	if want := []model.Msg{{Action: 5, N: 0}, {Action: 5, N: 1}}; !slices.Equal(names, want) {
		t.Errorf("the tick sent %v, want %v", names, want)
	}
}

func TestACopyOfAnAnswerIsTheSameAnswer(t *testing.T) {
	// The grant arrives twice: the second changes nothing.
	r := newRun(t, plainConfig(), tick(c1), deliver(1, 0), copyOf(2, 0), deliver(2, 0), deliver(3, 0))
	r.holds()
	if n := len(r.of(model.KindLead)); n != 1 || len(r.of(model.KindExtend)) != 0 {
		t.Errorf("C1 led %d times:\n%s", n, r.text())
	}
	if e := r.last(model.KindReturn); !e.Copy || e.Req != (model.Msg{Action: 1}) {
		t.Errorf("the copy returned %+v", e)
	}
}

func TestMessagesWaitAreLostOrArrive(t *testing.T) {
	for name, c := range map[string]struct {
		before []Action // 1.0 is C1's request; the last action delivers it
		after  []Action // lets it arrive all the same
		lost   model.Reason
	}{
		"it arrives":               {before: []Action{tick(c1), deliver(1, 0)}},
		"the link is cut":          {before: []Action{tick(c1), cutLink(StoreNode, c1), deliver(1, 0)}, after: []Action{{Kind: Heal}, deliver(1, 0)}},
		"the receiver is paused":   {before: []Action{tick(c1), on(Pause, StoreNode), deliver(1, 0)}, after: []Action{on(Resume, StoreNode), deliver(1, 0)}},
		"the receiver is frozen":   {before: []Action{tick(c1), on(Freeze, StoreNode), deliver(1, 0)}, after: []Action{on(Resume, StoreNode), deliver(1, 0)}},
		"the receiver is down":     {before: []Action{tick(c1), on(Crash, StoreNode), deliver(1, 0)}, lost: model.ReasonDown},
		"the receiver was down":    {before: []Action{tick(c1), on(Crash, StoreNode), on(Restart, StoreNode), deliver(1, 0)}},
		"down behind a cut link":   {before: []Action{tick(c1), on(Crash, StoreNode), cutLink(c1, StoreNode), deliver(1, 0)}, after: []Action{{Kind: Heal}, on(Restart, StoreNode), deliver(1, 0)}},
		"the network drops it":     {before: []Action{tick(c1), drop(1, 0)}, lost: model.ReasonDropped},
		"the sender is gone":       {before: []Action{tick(c1), on(Crash, c1), deliver(1, 0)}},
		"another request arrives":  {before: []Action{tick(c1), tick(c2), deliver(2, 0), deliver(1, 0)}},
		"an hour later it arrives": {before: []Action{tick(c1), advance(maxAdvance), deliver(1, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, plainConfig(), c.before...)
			r.holds()
			arrived := func() bool {
				return slices.ContainsFunc(r.of(model.KindHandle), func(e model.Event) bool { return e.Msg == model.Msg{Action: 1} })
			}
			if c.lost != model.ReasonNone {
				e := r.last(model.KindLose)
				if arrived() || e.Reason != c.lost || e.Msg != (model.Msg{Action: 1}) || e.Node != StoreNode || e.Peer != c1 || e.Op != model.OpAcquire {
					t.Errorf("want it lost: %v\n%s", c.lost, r.text())
				}
				return
			}
			if arrived() != (c.after == nil) || len(r.of(model.KindLose)) != 0 {
				t.Errorf("arrived %v\n%s", arrived(), r.text())
			}
			for _, a := range c.after {
				r.do(a)
			}
			if !arrived() {
				t.Errorf("it never arrives\n%s", r.text())
			}
		})
	}
}

func TestASendBeyondTheBoundIsALoss(t *testing.T) {
	cfg := plainConfig()
	cfg.Messages = 2
	r := newRun(t, cfg, on(Get, r1), on(Get, r1), on(Get, r2))
	if e := r.last(model.KindLose); e.Reason != model.ReasonOverflow || e.Msg != (model.Msg{Action: 3}) || e.Peer != r2 {
		t.Errorf("the third of two is %+v", e)
	}
	if len(r.of(model.KindInvoke)) != 3 || r.nmsgs != 2 {
		t.Errorf("sent %d, in flight %d", len(r.of(model.KindInvoke)), r.nmsgs)
	}
	// The answer takes the room of its request.
	if r.do(deliver(1, 0)); r.nmsgs != 2 || len(r.of(model.KindLose)) != 1 {
		t.Errorf("the answer was lost:\n%s", r.text())
	}
	cfg.Messages = 0
	r = newRun(t, cfg)
	for range MaxMessages + 1 {
		r.do(on(Get, r1))
	}
	if r.nmsgs != MaxMessages || len(r.of(model.KindLose)) != 1 {
		t.Errorf("in flight %d, lost %d", r.nmsgs, len(r.of(model.KindLose)))
	}
}

func TestAStoreRestartsFromDurableState(t *testing.T) {
	crash := []Action{on(Crash, StoreNode), on(Restart, StoreNode)}
	withDelay := plainConfig()
	withDelay.Lease.LockDelay = 4 * sec
	for name, c := range map[string]struct {
		cfg    Config
		before []Action
		holder model.Owner
		remain time.Duration // of the tenure or the lock delay, at the restart
		code   model.Code    // of a get right after it
	}{
		"a running tenure":      {plainConfig(), then(elected(), advance(7*sec)), model.Owner{Node: c1, Seq: 1}, 10 * sec, model.CodeHeld},
		"an untold lapse":       {plainConfig(), then(elected(), advance(12*sec)), model.Owner{Node: c1, Seq: 1}, 10 * sec, model.CodeHeld},
		"a told lapse":          {plainConfig(), then(elected(), advance(12*sec), on(Get, r1), deliver(5, 0)), model.Owner{}, 0, model.CodeFree},
		"a told lapse, delayed": {withDelay, then(elected(), advance(13*sec), on(Get, r1), deliver(5, 0)), model.Owner{}, 4 * sec, model.CodeDelayed},
		"a released lease":      {withDelay, then(elected(), on(Resign, c1), deliver(4, 0)), model.Owner{}, 0, model.CodeFree},
		"a deleted lease":       {withDelay, then(elected(), Action{Kind: Delete}), model.Owner{}, 0, model.CodeFree},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, c.cfg, append(c.before, crash...)...)
			if e := r.last(model.KindRestart); e.Holder != c.holder || e.Token != 1 || e.Node != StoreNode {
				t.Errorf("restarted with %+v", e)
			}
			r.do(on(Get, r1))
			r.do(deliver(r.id, 0))
			if e := r.last(model.KindHandle); e.Code != c.code || e.Holder != c.holder || e.Remaining != int64(c.remain) || e.Local != 0 || e.Token != 1 {
				t.Errorf("then it answers %s", Line(&e))
			}
			r.holds()
		})
	}
}

func TestAClientRestartsAsANewIncarnation(t *testing.T) {
	r := newRun(t, plainConfig(), then(elected(), advance(3*sec), on(Crash, c1))...)
	if _, acting := r.Client(0); acting {
		t.Error("a crashed client leads")
	}
	r.do(on(Restart, c1))
	st, _ := r.Client(0)
	if st.Holder != (lease.Holder{Node: "C1", Seq: 1, Nonce: 1}) || st.Phase != lease.Campaigning || st.Token != 0 {
		t.Errorf("C1 came back as %+v", st)
	}
	// Its own lease bars it like any other's, and no answer of before revives the term.
	r.do(tick(c1))
	r.do(deliver(6, 0))
	r.do(deliver(7, 0))
	if e := r.last(model.KindHandle); e.Code != model.CodeHeld || e.Owner != (model.Owner{Node: c1, Boot: 1, Seq: 1}) || r.leads(0) {
		t.Errorf("the new C1 got %s", Line(&e))
	}
	r.holds()

	r = newRun(t, plainConfig(), tick(c1), deliver(1, 0), on(Crash, c1), on(Restart, c1), deliver(2, 0))
	r.holds()
	if r.leads(0) || len(r.of(model.KindReturn)) != 1 {
		t.Errorf("the grant to the process before made C1 lead:\n%s", r.text())
	}
}

func TestAStorageRestartKeepsValuesAndTheHighestToken(t *testing.T) {
	r := newRun(t, plainConfig(), Action{Kind: Write, Who: r1, Token: 5, Key: 3, Value: 9}, deliver(1, 0), on(Crash, StorageNode), on(Restart, StorageNode),
		Action{Kind: Write, Who: r1, Token: 4, Key: 3, Value: 1}, deliver(5, 0))
	r.holds()
	if e := r.last(model.KindRestart); e.Token != 5 {
		t.Errorf("restarted with %+v", e)
	}
	if e := r.last(model.KindHandle); e.Code != model.CodeStale || e.Token != 5 || r.Value(3) != 9 {
		t.Errorf("then %s, value %d", Line(&e), r.Value(3))
	}
}

func TestCompareAndSwapAsksTheLeaseItself(t *testing.T) {
	cfg := plainConfig()
	cfg.Storage = StorageCompareAndSwap
	write := func(token uint64) Action { return Action{Kind: Write, Who: r1, Token: token, Value: 7} }
	for name, c := range map[string]struct {
		before []Action
		token  uint64
		code   model.Code
	}{
		"the holder's token":             {elected(), 1, model.CodeLanded},
		"a higher one":                   {elected(), 2, model.CodeStale},
		"none":                           {elected(), 0, model.CodeStale},
		"nobody ever held":               {nil, 1, model.CodeStale},
		"after the release":              {then(elected(), on(Resign, c1), deliver(4, 0)), 1, model.CodeStale},
		"after the deletion":             {then(elected(), Action{Kind: Delete}), 1, model.CodeStale},
		"after a lapse that nobody used": {then(elected(), advance(20*sec)), 1, model.CodeLanded},
		"after the next grant, before its first write":   {then(elected(), advance(10*sec), tick(c2), deliver(5, 0)), 1, model.CodeStale},
		"after the next grant, the token of this holder": {then(elected(), advance(10*sec), tick(c2), deliver(5, 0)), 2, model.CodeLanded},
	} {
		r := newRun(t, cfg, append(c.before, write(c.token))...)
		r.do(deliver(r.id, 0))
		r.holds()
		if e := r.last(model.KindHandle); e.Code != c.code {
			t.Errorf("%s: %v, want %v", name, e.Code, c.code)
		}
	}
}

func TestAssigningAWorldIsASnapshot(t *testing.T) {
	for seed := range uint64(20) {
		s := scrambled(seed, 300)
		// The whole run, and the same continued from a snapshot of its middle.
		var whole, second Trace
		w := newWorld(newSetup(s.Config, Builtin(), Options{Monitor: true, Lockstep: true, Trace: &whole}))
		for i := range s.Actions[:150] {
			w.Apply(&s.Actions[i])
		}
		saved, at := w, len(whole.Events)
		for i := range s.Actions[150:] {
			w.Apply(&s.Actions[150+i])
		}
		// Something else happens in between, in a World that is then thrown away.
		other := saved
		other.setup = newSetup(s.Config, Builtin(), Options{Trace: &Trace{}})
		for _, a := range []Action{tick(c1), deliver(1, 0), on(Crash, StoreNode), on(Crash, c1), on(Restart, c1), advance(maxAdvance)} {
			a.ID = 1 << 20
			other.Apply(&a)
		}
		saved.setup = newSetup(s.Config, Builtin(), Options{Monitor: true, Lockstep: true, Trace: &second})
		for i := range s.Actions[150:] {
			saved.Apply(&s.Actions[150+i])
		}
		if !slices.Equal(second.Events, whole.Events[at:]) {
			t.Fatalf("seed %d: from the snapshot\n%s\nin one go\n%s", seed, traceText(&second), traceText(&Trace{whole.Events[at:]}))
		}
		saved.setup = w.setup
		if saved != w {
			t.Fatalf("seed %d: the Worlds differ in the end", seed)
		}
	}
}

func TestDeletingNoopsChangesNothing(t *testing.T) {
	deleted, kept := 0, 0
	for seed := range uint64(150) {
		s := scrambled(seed, 200)
		if seed%2 == 0 { // half of what made sense once
			s = generated(t, Raw(), seed, 200)
			r := rand.New(rand.NewPCG(seed, 2))
			s.Actions = slices.DeleteFunc(s.Actions, func(Action) bool { return r.IntN(2) == 0 })
		}
		var before, after Trace
		w := newWorld(newSetup(s.Config, Builtin(), Options{Trace: &before}))
		var effective []Action
		for i := range s.Actions {
			if w.Apply(&s.Actions[i]) {
				effective = append(effective, s.Actions[i])
			}
		}
		deleted, kept = deleted+len(s.Actions)-len(effective), kept+len(effective)
		w2 := newWorld(newSetup(s.Config, Builtin(), Options{Trace: &after}))
		for i := range effective {
			if !w2.Apply(&effective[i]) {
				t.Errorf("seed %d: %d %v does nothing without the no-ops before it", seed, effective[i].ID, effective[i])
			}
		}
		if !slices.Equal(before.Events, after.Events) {
			t.Fatalf("seed %d: with its no-ops\n%s\nwithout\n%s", seed, traceText(&before), traceText(&after))
		}
	}
	if deleted < 5000 || kept < 5000 {
		t.Errorf("only %d no-ops deleted, %d actions kept", deleted, kept)
	}
}

func TestResetBeginsAnew(t *testing.T) {
	w, err := NewWorld(plainConfig(), Builtin(), Options{Monitor: true, Lockstep: true})
	if err != nil {
		t.Fatal(err)
	}
	fresh := w
	for _, a := range number(then(elected(), put(c1, 3), deliver(4, 0))) {
		w.Apply(&a)
	}
	if w == fresh {
		t.Fatal("nothing happened")
	}
	if w.Reset(); w != fresh {
		t.Error("a reset World is not as new")
	}
}

func TestLockstepComparesWhatCanBeSeenWithoutAsking(t *testing.T) {
	for name, c := range map[string]struct {
		subject Subject
		actions []Action
		node    model.Node
	}{
		"a store that forgets its tenure": {Subject{Store: forgetful{}, Client: Client{}, Storage: Storage{}}, then(elected(), on(Crash, StoreNode), on(Restart, StoreNode)), StoreNode},
		"a storage that forgets a value": {Subject{Store: Store{}, Client: Client{}, Storage: forgetfulStorage{}},
			then(elected(), put(c1, 7), deliver(4, 0), on(Crash, StorageNode), on(Restart, StorageNode)), StorageNode},
	} {
		r := newRunOf(t, plainConfig(), c.subject)
		r.setup.opts.Monitor = false
		for _, a := range c.actions {
			if r.Violated() != 0 {
				t.Errorf("%s: %v too early", name, r.First())
			}
			r.do(a)
		}
		m := r.Mismatch()
		if !r.Violated().Has(model.Lockstep) || r.First().Node != c.node || m.Event.Node != c.node || m.Got == m.Want {
			t.Errorf("%s: violated %v, mismatch %+v", name, r.Violated(), m)
		}
	}
}

type forgetful struct{ Store }

func (forgetful) Restart(s *StoreState, _ Clocks) { s.Record = s.Record.Delete() }

type forgetfulStorage struct{ Storage }

func (forgetfulStorage) Restart(s *StorageState) { s.Values = [model.Keys]int64{} }

// opaque is a store whose state is its own, as a user's or a cluster's is.
type opaque struct{ state *StoreState }

func (o opaque) Handle(_ *StoreState, now Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	return Store{}.Handle(o.state, now, lockDelay, req)
}
func (o opaque) Restart(_ *StoreState, now Clocks) { Store{}.Restart(o.state, now) }
func (o opaque) Delete(*StoreState) bool           { return Store{}.Delete(o.state) }
func (o opaque) Tenure(_ *StoreState, now Clocks) (lease.Holder, lease.Token, time.Duration, bool) {
	return Store{}.Tenure(o.state, now)
}

// The World knows the store by its interface alone: with one it cannot look
// into everything is the same, to the byte.
func TestAnOpaqueStoreGivesTheSameTrace(t *testing.T) {
	subject := Builtin()
	for seed := range uint64(60) {
		run := func(subject Subject) *Trace {
			src := rand.NewPCG(seed, 6)
			cfg, p, trace := RandomConfig(src), Raw(), &Trace{}
			p.Weights[Delete] = 20
			w, err := NewWorld(cfg, subject, Options{Monitor: true, Trace: trace})
			if err != nil {
				t.Fatal(err)
			}
			Generate(src, &p, &w, 120, nil)
			if w.Violated() != 0 {
				t.Fatalf("seed %d: %s", seed, w.First().Describe(Names()))
			}
			return trace
		}
		first := lease.Token(max(RandomConfig(rand.NewPCG(seed, 6)).FirstToken, 1))
		state := &StoreState{}
		state.Token = first - 1
		subject.Store = opaque{state}
		if a, b := run(Builtin()), run(subject); !slices.Equal(a.Events, b.Events) {
			t.Fatalf("seed %d: built in\n%s\nopaque\n%s", seed, traceText(a), traceText(b))
		}
	}
}

func TestNamesAreTheCallersOwn(t *testing.T) {
	Names()[c1].Name = "mine"
	if got := Names().Of(c1); got != "C1" {
		t.Errorf("C1 is called %q by everybody", got)
	}
}

func TestUnknownActionsReadAsTheirNumbers(t *testing.T) {
	for want, k := range map[string]Kind{"kind(29)": kinds, "kind(255)": 255} {
		if got := (Action{Kind: k}).String(); k.String() != want || got != want {
			t.Errorf("got %q and %q, want %q", k, got, want)
		}
	}
}
