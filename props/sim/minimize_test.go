package sim

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// Wrong rules, small enough to know the shortest way to their failure by hand.

// unfenced takes every write.
type unfenced struct{ Storage }

func (unfenced) Handle(s *StorageState, _ *lease.Record, req StorageRequest) (model.Code, int64) {
	s.Highest = max(s.Highest, req.Token)
	return s.Apply(req, true)
}

// fromTheReply counts its window from the arrival of a grant.
type fromTheReply struct{ Client }

func (f fromTheReply) Receive(c *ClientState, now Clocks, rep lease.Reply) lease.Requests {
	rep.Sent = now.Boot
	return f.Client.Receive(c, now, rep)
}

// reissuing gives the token of a released lease again.
type reissuing struct{ Store }

func (r reissuing) Handle(s *StoreState, now Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	rep := r.Store.Handle(s, now, lockDelay, req)
	if rep.Code == lease.CodeReleased {
		s.Token--
	}
	return rep
}

// adopting takes a grant under a new token for a renewal.
type adopting struct{ Client }

func (r adopting) Receive(c *ClientState, now Clocks, rep lease.Reply) lease.Requests {
	if st := c.State(); st.Phase == lease.Leading && rep.Code == lease.CodeGranted && rep.Holder == st.Holder && rep.Token > st.Token {
		st.Token = rep.Token
		c.SetState(st)
	}
	return r.Client.Receive(c, now, rep)
}

func adoptingSubject() Subject {
	return Subject{Name: "mutant:adopting", Store: Store{}, Client: adopting{}, Storage: Storage{}}
}
func unfencedSubject() Subject {
	return Subject{Name: "mutant:unfenced", Store: Store{}, Client: Client{}, Storage: unfenced{}}
}
func fromTheReplySubject() Subject {
	return Subject{Name: "mutant:from-the-reply", Store: Store{}, Client: fromTheReply{}, Storage: Storage{}}
}
func reissuingSubject() Subject {
	return Subject{Name: "mutant:reissuing", Store: reissuing{}, Client: Client{}, Storage: Storage{}}
}

// failing draws schedules until one fails on subject in the invariant v.
func failing(t testing.TB, subject Subject, v model.Invariant, p Profile, seed uint64) *Schedule {
	t.Helper()
	for try := range uint64(20_000) {
		src := rand.NewPCG(seed, try)
		cfg := RandomConfig(src)
		w, err := NewWorld(cfg, subject, Options{Monitor: true, Only: model.SetOf(v)})
		if err != nil {
			t.Fatal(err)
		}
		s := &Schedule{Name: p.Name, Subject: subject.Name, Expect: v, Config: cfg, Actions: Generate(src, &p, &w, 120, nil)}
		if _, fails := FailsOn(subject, v)(s); fails {
			return s
		}
	}
	t.Fatalf("no schedule breaks %v on %s", v, subject.Name)
	return nil
}

// invented are the kinds of actions that minimising may come to by itself.
var invented = map[Kind]bool{Tick: true, Advance: true, Deliver: true, Drop: true, Duplicate: true, Resign: true, Crash: true, Restart: true, Write: true}

// checkMinimal checks all that a minimised schedule promises.
func checkMinimal(t *testing.T, was, s *Schedule, subject Subject, v model.Invariant) {
	t.Helper()
	fails := FailsOn(subject, v)
	if err := s.Validate(); err != nil {
		t.Fatalf("the minimised schedule is not valid: %v", err)
	}
	if applied, ok := fails(s); !ok || applied != len(s.Actions) {
		t.Fatalf("it does not fail any more in %v, or before its end: %v after %d of %d actions\n%s", v, ok, applied, len(s.Actions), write(t, s))
	}
	if len(s.Actions) > len(was.Actions) {
		t.Errorf("%d actions became %d", len(was.Actions), len(s.Actions))
	}
	for i := range s.Actions {
		less := *s
		if less.Actions = slices.Delete(slices.Clone(s.Actions), i, i+1); func() bool { _, ok := fails(&less); return ok }() {
			t.Errorf("%d %v can be deleted from\n%s", s.Actions[i].ID, s.Actions[i], write(t, s))
		}
		if s.Actions[i].ID != int32(i+1) {
			t.Errorf("action %d has id %d", i+1, s.Actions[i].ID)
		}
	}
	for _, a := range s.Actions {
		if !invented[a.Kind] && !slices.ContainsFunc(was.Actions, func(b Action) bool { return a.Kind == b.Kind }) {
			t.Errorf("it has a %v, which the schedule as given had not:\n%s", a, write(t, s))
		}
		if (a.Kind == Crash || a.Kind == Restart) && names[a.Who].Role != model.RoleClient && !slices.ContainsFunc(was.Actions, func(b Action) bool { return a.Kind == b.Kind && a.Who == b.Who }) {
			t.Errorf("%v comes from nowhere", a)
		}
	}
	if r := s.Run(subject, Options{Monitor: true}); func() int64 { e, all := r.Counts.Actions(); return all - e }() != 0 {
		t.Errorf("it has no-ops:\n%s", write(t, s))
	}
}

func TestMinimizeKeepsTheFailureAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		subject Subject
		v       model.Invariant
		profile Profile
		atMost  int // actions
	}{
		{unfencedSubject(), model.StorageSafety, Chaos(), 14},
		{unfencedSubject(), model.StorageSafety, Raw(), 11},
		{fromTheReplySubject(), model.BeliefOwnership, Chaos(), 9},
		{reissuingSubject(), model.TokenMonotonicity, Chaos(), 9},
		{reissuingSubject(), model.TokenMonotonicity, Raw(), 9},
	} {
		t.Run(c.subject.Name+"/"+c.profile.Name, func(t *testing.T) {
			var lengths []int
			for seed := range uint64(10) {
				was := failing(t, c.subject, c.v, c.profile, seed)
				kept := *was
				kept.Actions = slices.Clone(was.Actions)
				s := Minimize(was, FailsOn(c.subject, c.v))
				checkMinimal(t, was, s, c.subject, c.v)
				if !reflect.DeepEqual(was, &kept) {
					t.Fatal("the input was changed")
				}
				if again := Minimize(was, FailsOn(c.subject, c.v)); !reflect.DeepEqual(again, s) {
					t.Errorf("a second time it comes to\n%s\nnot\n%s", write(t, again), write(t, s))
				}
				if len(s.Actions) > c.atMost {
					t.Errorf("seed %d: %d actions, want %d at most\n%s", seed, len(s.Actions), c.atMost, write(t, s))
				}
				lengths = append(lengths, len(s.Actions))
			}
			t.Logf("actions: %v", lengths)
		})
	}
}

// noisy spreads actions that play no part through a schedule.
func noisy(actions []Action) []Action {
	var out []Action
	noise := []Action{on(Get, r1), advance(time.Millisecond), {Kind: Jump, Who: c2, D: sec}, on(Pause, StorageNode), on(Resume, StorageNode), on(Read, r2),
		cutLink(c2, StorageNode), {Kind: Heal}, advance(2 * time.Millisecond)}
	ids := make(map[int32]int32)
	for i, a := range actions {
		for k := range 3 {
			n := noise[(3*i+k)%len(noise)]
			n.ID = int32(len(out) + 1)
			out = append(out, n)
		}
		a.ID = int32(len(out) + 1)
		ids[int32(i+1)] = a.ID
		if a.Msg.Action != 0 {
			a.Msg.Action = ids[a.Msg.Action]
		}
		out = append(out, a)
	}
	return out
}

// The shortest failures, reckoned by hand.
func TestMinimizeFindsTheShortestFailure(t *testing.T) {
	for _, c := range []struct {
		name    string
		subject Subject
		v       model.Invariant
		actions []Action
		want    int
	}{
		// Two elections of three actions each, the time between them, two writes
		// sent and both landing: 11. But it takes no leaders to write: raw
		// parties do it in 4.
		{"a zombie write", unfencedSubject(), model.StorageSafety,
			then(elected(), put(c1, 1), advance(10*sec), tick(c2), deliver(6, 0), deliver(7, 0), put(c2, 2), deliver(9, 0), deliver(4, 0)), 4},
		// The same, by way of copies and a release.
		{"a zombie write in a roundabout way", unfencedSubject(), model.StorageSafety,
			[]Action{tick(c1), copyOf(1, 0), deliver(2, 0), deliver(3, 0), put(c1, 1), on(Resign, c1), deliver(6, 0),
				tick(c2), deliver(8, 0), deliver(9, 0), put(c2, 2), copyOf(11, 0), deliver(12, 0), deliver(5, 0)}, 4},
		// Two writes and their arrival.
		{"a raw zombie write", unfencedSubject(), model.StorageSafety,
			[]Action{{Kind: Write, Who: r1, Token: 2, Value: 2}, {Kind: Write, Who: r1, Token: 1, Value: 1}, deliver(1, 0), deliver(2, 0)}, 4},
		// A grant, and its arrival after the lapse.
		{"a countdown from the reply", fromTheReplySubject(), model.BeliefOwnership,
			[]Action{tick(c1), deliver(1, 0), advance(3 * sec), deliver(2, 0), advance(8 * sec)}, 4},
		// A request and its copy, the grant of one led under, the lease deleted,
		// the other granted under the next token, and that grant adopted. The
		// second request was sent after the retry interval: it takes an action
		// more than a copy.
		{"a token adopted", adoptingSubject(), model.Continuity,
			[]Action{tick(c1), advance(2 * sec), tick(c1), deliver(3, 0), deliver(4, 0), {Kind: Delete}, deliver(1, 0), deliver(7, 0)}, 7},
		// Three actions to lead, two to give up, and two to be granted once more.
		{"a token issued twice", reissuingSubject(), model.TokenMonotonicity,
			then(elected(), on(Resign, c1), deliver(4, 0), tick(c2), deliver(6, 0)), 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := &Schedule{Name: c.name, Subject: c.subject.Name, Expect: c.v, Config: plainConfig(), Actions: noisy(c.actions)}
			was.Config.Offsets[c1], was.Config.FirstToken, was.Config.Clients, was.Config.Lease.LockDelay = sec, 33, 4, 0
			for i := range was.Actions {
				if was.Actions[i].Token != 0 {
					was.Actions[i].Token += 32
				}
			}
			if err := was.Validate(); err != nil {
				t.Fatal(err)
			}
			s := Minimize(was, FailsOn(c.subject, c.v))
			checkMinimal(t, was, s, c.subject, c.v)
			if len(s.Actions) != c.want {
				t.Errorf("%d actions, want %d\n%s", len(s.Actions), c.want, write(t, s))
			}
			if s.Config.Offsets != ([model.MaxNodes]time.Duration{}) || s.Config.FirstToken != 0 || s.Config.Clients > 2 {
				t.Errorf("its set-up is not plain: %+v", s.Config)
			}
		})
	}
}

func TestAScheduleThatDoesNotFailIsReturnedAsItIs(t *testing.T) {
	s := generated(t, Chaos(), 3, 60)
	if got := Minimize(s, FailsOn(Builtin(), model.BeliefSafety)); got != s {
		t.Errorf("got another schedule: %s", write(t, got))
	}
}

func TestMinimizeLetsAMessageArriveInsteadOfACalm(t *testing.T) {
	was := &Schedule{Config: plainConfig(), Actions: number(then(elected(), put(c1, 1), advance(10*sec), tick(c2), deliver(6, 0), deliver(7, 0), put(c2, 2), deliver(9, 0), calmOf(10*sec, sec, sec)))}
	s := Minimize(was, FailsOn(unfencedSubject(), model.StorageSafety))
	checkMinimal(t, was, s, unfencedSubject(), model.StorageSafety)
	if last := s.Actions[len(s.Actions)-1]; len(s.Actions) != 4 || last.Kind != Deliver || last.Msg != (model.Msg{Action: 1}) {
		t.Errorf("minimised to %v", s.Actions)
	}
}

func TestMinimizeLeavesItsInputAlone(t *testing.T) {
	s := &Schedule{Config: plainConfig(), Actions: number([]Action{{Kind: Write, Who: r1, Token: 2}, {Kind: Write, Who: r1, Token: 1}, deliver(1, 0), deliver(2, 0)})}
	for i := range s.Actions {
		s.Actions[i].ID *= 10
		s.Actions[i].Msg.Action *= 10
	}
	was := slices.Clone(s.Actions)
	short := Minimize(s, FailsOn(unfencedSubject(), model.StorageSafety))
	if len(short.Actions) != 4 || short.Actions[3].ID != 4 {
		t.Errorf("minimised to %v", short.Actions)
	}
	if !slices.Equal(s.Actions, was) {
		t.Errorf("the input became %v", s.Actions)
	}
}

func TestFailsOnWantsTheFirstViolationToBeTheOne(t *testing.T) {
	s := failing(t, fromTheReplySubject(), model.BeliefOwnership, Chaos(), 1)
	// Whoever stays too long breaks ownership before safety, which needs another leader.
	if _, fails := FailsOn(fromTheReplySubject(), model.BeliefSafety)(s); fails {
		t.Error("belief safety is said to break first")
	}
	if _, fails := FailsOn(fromTheReplySubject(), model.StorageSafety)(s); fails {
		t.Error("storage safety is said to break")
	}
	if applied, fails := FailsOn(fromTheReplySubject(), model.BeliefOwnership)(s); !fails || applied > len(s.Actions) {
		t.Errorf("fails %v after %d actions", fails, applied)
	}
}

// In the name of a live client and under its token anything can be broken, and
// no implementation is to blame for it.
func TestNobodyComesToPoseAsALiveClientByMinimising(t *testing.T) {
	as := model.Owner{Node: c1, Seq: 1}
	honest := &Schedule{Config: plainConfig(), Actions: number([]Action{tick(c1), deliver(1, 0), advance(3 * sec), deliver(2, 0), advance(8 * sec)})}
	posing := &Schedule{Config: plainConfig(), Actions: number(then(elected(), Action{Kind: Release, Who: r1, As: as, Token: 1}, deliver(4, 0)))}
	for what, fails := range map[string]func() Fails{
		"FailsOn": func() Fails { return FailsOn(fromTheReplySubject(), model.BeliefOwnership) },
		"FailsBy": func() Fails {
			return FailsBy(func(s *Schedule) Result { return s.Run(fromTheReplySubject(), Options{Monitor: true}) }, model.BeliefOwnership)
		},
	} {
		ask := func(f Fails, s *Schedule) bool { _, ok := f(s); return ok }
		f := fails()
		if !ask(f, honest) || ask(f, posing) || !ask(f, honest) {
			t.Errorf("%s: after an honest schedule one that poses counts too, or the honest one does not", what)
		}
		if f = fails(); !ask(f, posing) || !ask(f, honest) {
			t.Errorf("%s: a schedule that is about posing does not fail", what)
		}
	}
}

func TestPosingIsCountedWhereTheStoreHandlesIt(t *testing.T) {
	as := func(n model.Node, seq uint32, a Action) Action { a.As = model.Owner{Node: n, Seq: seq}; return a }
	renew, release := Action{Kind: Renew, Who: r1, Token: 1, TTL: sec}, Action{Kind: Release, Who: r1, Token: 1}
	for name, c := range map[string]struct {
		actions []Action
		want    int64
	}{
		"renews as the leader":                       {then(elected(), as(c1, 1, renew), deliver(4, 0)), 1},
		"releases as the leader":                     {then(elected(), as(c1, 1, release), deliver(4, 0)), 1},
		"and a copy":                                 {then(elected(), as(c1, 1, release), copyOf(4, 0), deliver(4, 0), deliver(5, 0)), 2},
		"acquires as the leader":                     {then(elected(), as(c1, 1, rawAcquire(r1, sec)), deliver(4, 0)), 1},
		"releases before the answer came":            {[]Action{tick(c1), deliver(1, 0), as(c1, 1, release), deliver(3, 0)}, 1},
		"a client's own raw request":                 {then(elected(), Action{Kind: Release, Who: c1, Token: 1}, deliver(4, 0)), 1},
		"not yet handled":                            {then(elected(), as(c1, 1, release)), 0},
		"under another token":                        {then(elected(), Action{Kind: Release, Who: r1, As: model.Owner{Node: c1, Seq: 1}, Token: 2}, deliver(4, 0)), 0},
		"as another incarnation":                     {then(elected(), as(c1, 2, release), deliver(4, 0)), 0},
		"as a raw party":                             {then(elected(), as(r2, 1, release), deliver(4, 0)), 0},
		"as a client that there is not":              {then(elected(), as(c3, 1, release), deliver(4, 0)), 0},
		"as a client that crashed":                   {then(elected(), on(Crash, c1), as(c1, 1, release), deliver(5, 0)), 0},
		"the client's own, of which nobody says all": {then(elected(), on(Resign, c1), deliver(4, 0)), 0},
	} {
		r := newRun(t, plainConfig(), c.actions...)
		if got := r.Counts().Impersonated; got != c.want {
			t.Errorf("%s: counted %d, want %d\n%s", name, got, c.want, r.text())
		}
	}
}

func TestRenumberKeepsTheMessagesOfTheActions(t *testing.T) {
	s := Schedule{Config: plainConfig(), Actions: []Action{{ID: 40, Kind: Tick, Who: c1}, {ID: 7, Kind: Deliver, Msg: model.Msg{Action: 40, N: 0}},
		{ID: 50, Kind: Deliver, Msg: model.Msg{Action: 7, N: 1}}, {ID: 60, Kind: Drop, Msg: model.Msg{Action: 41}}}}
	s.Renumber()
	want := []Action{{ID: 1, Kind: Tick, Who: c1}, {ID: 2, Kind: Deliver, Msg: model.Msg{Action: 1, N: 0}},
		{ID: 3, Kind: Deliver, Msg: model.Msg{Action: 2, N: 1}}, {ID: 4, Kind: Drop, Msg: model.Msg{Action: 1<<31 - 1}}}
	if !slices.Equal(s.Actions, want) {
		t.Errorf("renumbered to %v", s.Actions)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// Each of these is one way that no deletion finds. Only what is wanted fails.
func TestMinimizeTrades(t *testing.T) {
	even, slow := advance(2*sec), advance(2*sec)
	slow.Rates[c1] = 750_000
	for _, c := range []struct {
		name      string
		pass      func(*minimizer) bool
		was, want []Action
	}{
		{"a request answered twice for an answer copied", (*minimizer).answer,
			[]Action{tick(c1), copyOf(1, 0), deliver(2, 0), deliver(3, 0), deliver(1, 0), on(Resign, c1), deliver(5, 0)},
			[]Action{tick(c1), deliver(1, 0), copyOf(2, 0), deliver(2, 0), on(Resign, c1), deliver(3, 0)}},
		{"a resignation for a lapse", (*minimizer).lapse,
			[]Action{tick(c1), on(Resign, c1), tick(c2), deliver(2, 0), deliver(4, 0), deliver(3, 0)},
			[]Action{tick(c1), even, tick(c2), deliver(3, 0)}},
		{"a resignation for a lapse that takes two steps", (*minimizer).lapse,
			[]Action{tick(c1), on(Resign, c1), tick(c2), deliver(2, 0), deliver(4, 0), deliver(3, 0)},
			[]Action{tick(c1), even, even, tick(c2), deliver(4, 0)}},
		{"what arrives twice for a lapse", (*minimizer).lapse,
			[]Action{put(c1, 1), copyOf(1, 0), deliver(1, 0), deliver(3, 0), tick(c2), deliver(2, 0)},
			[]Action{put(c1, 1), even, tick(c2), deliver(1, 0)}},
		{"what comes last for time, all at one rate", (*minimizer).end,
			[]Action{tick(c2), even, tick(c1), deliver(3, 0), tick(c2), deliver(5, 0)},
			[]Action{slow, tick(c1), deliver(2, 0), slow}},
		{"what comes last for time, some of it before a message arrives", (*minimizer).end,
			[]Action{tick(c1), deliver(1, 0), deliver(2, 0), even, tick(c2), deliver(5, 0), deliver(6, 0)},
			[]Action{tick(c1), even, deliver(1, 0), deliver(3, 0), even}},
	} {
		t.Run(c.name, func(t *testing.T) {
			number(c.was)
			number(c.want)
			same := func(s *Schedule) (int, bool) {
				plain := Schedule{Actions: slices.Clone(s.Actions)}
				plain.Renumber()
				return len(s.Actions), slices.Equal(plain.Actions, c.want)
			}
			m := minimizer{best: Schedule{Config: plainConfig(), Actions: c.was}, stuff: []Action{even, slow}, fails: same}
			if _, done := same(&m.best); done || !c.pass(&m) {
				t.Fatalf("it is left at %v", m.best.Actions)
			}
			if _, done := same(&m.best); !done {
				t.Errorf("it comes to %v", m.best.Actions)
			}
		})
	}
}

// Clients ask when what they send arrives, not before.
func TestMinimizeLetsClientsAskNoSoonerThanNeeded(t *testing.T) {
	want := number([]Action{advance(sec), tick(c1), deliver(2, 0)})
	m := minimizer{best: Schedule{Config: plainConfig(), Actions: number([]Action{tick(c1), advance(sec), deliver(1, 0)})}}
	m.fails = func(s *Schedule) (int, bool) {
		plain := Schedule{Actions: slices.Clone(s.Actions)}
		plain.Renumber()
		return len(s.Actions), slices.Equal(plain.Actions, want)
	}
	if m.prompt() {
		t.Error("it is said to be shorter")
	}
	if _, done := m.fails(&m.best); !done {
		t.Errorf("it comes to %v", m.best.Actions)
	}
}
