package lease

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// tenSeconds has a window of 10s - 10s*0.05 - 500ms = 9s, and renews after 3s.
var tenSeconds = Config{TTL: 10 * sec, MaxDriftRate: 0.05, SafetyMargin: 500 * ms, RetryInterval: sec}

func newClient(t testing.TB, cfg Config, now time.Duration) *Client {
	t.Helper()
	c, err := NewClient(cfg, alice, now)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func granted(req Request, token Token, ttl time.Duration) Reply {
	rep := req.To(CodeGranted)
	rep.Token, rep.TTL, rep.Current = token, ttl, req.Holder
	return rep
}

// leader is alice leading under token 7 since 0 s, till 9 s.
func leader(t testing.TB, cfg Config) *Client {
	t.Helper()
	c := newClient(t, cfg, 0)
	c.Receive(0, granted(c.Tick(0).Store, 7, 10*sec))
	if !c.IsLeader(0) {
		t.Fatalf("does not lead: %+v", c.State())
	}
	return c
}

// ended reports what is wrong with a client whose term under token 7 is over
// for good.
func ended(c *Client, now time.Duration) string {
	s := c.State()
	switch {
	case c.IsLeader(now) || c.Acting(now):
		return "still believes"
	case s.Phase != Campaigning || s.Token != 0:
		return "not campaigning"
	case s.Holder != alice2:
		return "campaigns as " + s.Holder.String() + ", not as a new incarnation"
	}
	return ""
}

func TestCandidateAsksAndRetriesAsOneIncarnation(t *testing.T) {
	c := newClient(t, tenSeconds, 3*sec)
	want := Requests{Store: Request{Op: OpAcquire, Holder: alice, TTL: 10 * sec, Sent: 3 * sec}}
	diff(t, "before it is time", c.Tick(3*sec-1), Requests{})
	diff(t, "first attempt", c.Tick(3*sec), want)
	diff(t, "at once again", c.Tick(4*sec-1), Requests{})
	want.Store.Sent = 4 * sec
	diff(t, "retry", c.Tick(4*sec), want)
}

func TestCountdownRunsFromTheSendOfTheRequestAnswered(t *testing.T) {
	c := newClient(t, tenSeconds, 0)
	first := c.Tick(0).Store
	c.Tick(sec)
	c.Tick(2 * sec)
	c.Receive(5*sec, granted(first, 7, 10*sec)) // slow, and others were sent since
	diff(t, "deadline", c.State().Deadline, 9*sec)
	if !c.IsLeader(9*sec-1) || c.IsLeader(9*sec) {
		t.Error("belief is not the half-open interval that ends at 9s")
	}
	// A renewal answered late counts from its own send too.
	renewal := c.Tick(5 * sec).Store
	diff(t, "renewal", renewal, Request{Op: OpRenew, Holder: alice, Token: 7, TTL: 10 * sec, Sent: 5 * sec})
	c.Tick(6 * sec)
	c.Receive(8*sec, granted(renewal, 7, 10*sec))
	diff(t, "deadline after renewal", c.State().Deadline, 14*sec)
}

func TestGrantOfAnotherTTLShrinksTheWindowButNeverStretchesIt(t *testing.T) {
	for _, c := range []struct {
		name                   string
		ttl, deadline, renewal time.Duration
		leads                  bool
	}{
		{"as asked", 10 * sec, 9 * sec, 3 * sec, true},
		{"more", 60 * sec, 9 * sec, 3 * sec, true},
		{"less", 4 * sec, 3300 * ms, 1100 * ms, true}, // 4s - 200ms - 500ms, a third of it
		{"too little to act", 526 * ms, 0, 0, false},  // 526ms - 26.3ms - 500ms < 0
		{"nothing", 0, 0, 0, false},
		{"less than nothing", -sec, 0, 0, false},
	} {
		cl := newClient(t, tenSeconds, 0)
		cl.Receive(0, granted(cl.Tick(0).Store, 7, c.ttl))
		s := cl.State()
		if cl.IsLeader(0) != c.leads || s.Deadline != c.deadline {
			t.Errorf("%s: leads %v until %v, want %v until %v", c.name, cl.IsLeader(0), s.Deadline, c.leads, c.deadline)
		}
		if c.leads && s.NextSend != c.renewal {
			t.Errorf("%s: renews at %v, want %v", c.name, s.NextSend, c.renewal)
		}
	}
}

func TestRenewFractionHoldsForShorterGrantsToo(t *testing.T) {
	cfg := tenSeconds
	cfg.RenewFraction = 0.5
	c := newClient(t, cfg, 0)
	c.Receive(0, granted(c.Tick(0).Store, 7, 4*sec))
	diff(t, "renewal of a window of 3.3s", c.State().NextSend, 1650*ms)
}

func TestDeadlineNeverMovesBack(t *testing.T) {
	c := leader(t, tenSeconds)
	r1, r2 := c.Tick(3*sec).Store, c.Tick(4*sec).Store
	c.Receive(4*sec, granted(r2, 7, 10*sec))
	diff(t, "deadline", c.State().Deadline, 13*sec)
	for name, rep := range map[string]Reply{
		"an earlier request's answer": granted(r1, 7, 10*sec),
		"a copy":                      granted(r2, 7, 10*sec),
		"a shorter TTL":               granted(r2, 7, 2*sec),
		"no TTL":                      granted(r2, 7, 0),
	} {
		c.Receive(5*sec, rep)
		if s := c.State(); s.Deadline != 13*sec || s.NextSend != 7*sec {
			t.Errorf("%s moved deadline and next renewal to %v and %v", name, s.Deadline, s.NextSend)
		}
	}
}

func TestRenewsAtAThirdAndRetriesUntilTheWindowEnds(t *testing.T) {
	c := leader(t, tenSeconds)
	var sent []time.Duration
	for now := time.Duration(0); now < 9*sec; now += 500 * ms {
		if req := c.Tick(now).Store; req.Op == OpRenew {
			sent = append(sent, now)
		}
	}
	diff(t, "renewals sent at", sent, []time.Duration{3 * sec, 4 * sec, 5 * sec, 6 * sec, 7 * sec, 8 * sec})
}

func TestLostRenewalsAreSurvived(t *testing.T) {
	c := leader(t, tenSeconds)
	for now := 3 * sec; now <= 7*sec; now += sec {
		c.Tick(now) // lost
	}
	c.Receive(8900*ms, granted(c.Tick(8*sec).Store, 7, 10*sec))
	if !c.IsLeader(17*sec-1) || c.IsLeader(17*sec) {
		t.Errorf("after five lost renewals: %+v, want the term to end at 17s", c.State())
	}
}

func TestTermEndsAtTheDeadlineAndNothingRevivesIt(t *testing.T) {
	for name, step := range map[string]func(*Client) Requests{
		"tick":     func(c *Client) Requests { return c.Tick(9 * sec) },
		"grant":    func(c *Client) Requests { return c.Receive(9*sec, granted(renew(alice, 7, 10*sec), 7, 10*sec)) },
		"resign":   func(c *Client) Requests { return c.Resign(9 * sec) },
		"end work": func(c *Client) Requests { return c.EndWork(9 * sec) },
		"begin work": func(c *Client) Requests {
			if c.BeginWork(9 * sec) {
				t.Error("work began at the deadline")
			}
			return Requests{}
		},
	} {
		c := leader(t, tenSeconds)
		late := c.Tick(8 * sec).Store
		if out := step(c); out.Store.Op == OpRenew || out.Store.Op == OpRelease {
			t.Errorf("%s at the deadline sends %+v", name, out)
		}
		if problem := ended(c, 9*sec); problem != "" {
			t.Errorf("%s at the deadline: %s", name, problem)
		}
		acquired := Request{Op: OpAcquire, Holder: alice, TTL: 10 * sec, Sent: 8 * sec}
		for what, rep := range map[string]Reply{
			"renewal":        granted(late, 7, 10*sec),
			"acquire":        granted(acquired, 7, 10*sec),
			"another tenure": granted(acquired, 9, 10*sec),
		} {
			c.Receive(9*sec, rep)
			if problem := ended(c, 9*sec); problem != "" {
				t.Errorf("%s at the deadline, then a late %s: %s", name, what, problem)
			}
		}
	}
}

// The client learns what time it is from whatever comes first, so a reply that
// would extend the term is too late even if nobody ticked at the deadline.
func TestDeadlineIsAppliedBeforeTheReply(t *testing.T) {
	c := leader(t, tenSeconds)
	late := c.Tick(8 * sec).Store
	c.Receive(9*sec, granted(late, 7, 10*sec))
	if problem := ended(c, 9*sec); problem != "" {
		t.Error(problem)
	}
}

func TestAnyRefusedRenewalUnderTheTokenEndsBeliefAtOnce(t *testing.T) {
	for _, code := range []Code{CodeLapsed, CodeLost, CodeHeld, CodeDelayed, CodeFree, CodeReleased, CodeInvalid, CodeNone} {
		for _, barrier := range []bool{false, true} {
			c := leader(t, tenSeconds)
			if barrier {
				c, _ = fencing(t)
			}
			req := c.Tick(3 * sec).Store
			c.Receive(3*sec, req.To(code))
			if problem := ended(c, 3*sec); problem != "" {
				t.Errorf("renewal refused as %v, barrier %v: %s", code, barrier, problem)
			}
		}
	}
}

func TestLostAndRegainedEndsTheTerm(t *testing.T) {
	for name, rep := range map[string]Reply{
		"a copy of the acquire got the next token": granted(acquire(alice, 10*sec), 8, 10*sec),
		"the renewal is for another token":         granted(renew(alice, 7, 10*sec), 8, 10*sec),
	} {
		c := leader(t, tenSeconds)
		rep.Sent = 3 * sec
		c.Receive(3*sec, rep)
		if problem := ended(c, 3*sec); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// Nobody leads under what was regained, so it is given back, unless work goes
// on: that is for the old token, and must stop before anybody else may start.
func TestRegainedTenureIsReleasedUnlessWorkGoesOn(t *testing.T) {
	regained := granted(acquire(alice, 10*sec), 8, 10*sec)
	regained.Sent = 3 * sec
	give := Requests{Store: Request{Op: OpRelease, Holder: alice, Token: 8, Sent: 3 * sec}}
	idle := leader(t, tenSeconds)
	diff(t, "idle", idle.Receive(3*sec, regained), give)

	working := leader(t, tenSeconds)
	working.BeginWork(0)
	diff(t, "working", working.Receive(3*sec, regained), Requests{})
	diff(t, "end of work", working.EndWork(4*sec), Requests{})

	// Asked for so long ago that it cannot be led under.
	pending, _ := fencing(t)
	pending.Receive(3*sec, granted(pending.Tick(3*sec).Store, 7, 10*sec))
	regained.Sent = 0
	give.Store.Sent = 9 * sec
	diff(t, "barrier pending", pending.Receive(9*sec, regained), give)

	for name, c := range map[string]*Client{"idle": idle, "working": working, "barrier pending": pending} {
		if problem := ended(c, 9*sec); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

func TestWhatSaysNothingAboutTheTermIsIgnored(t *testing.T) {
	acq := acquire(alice, 10*sec)
	ren := renew(alice, 7, 10*sec)
	old := Holder{Node: "alice", Seq: 0, Nonce: alice.Nonce}
	for name, rep := range map[string]Reply{
		"acquire refused, sent before the grant": acq.To(CodeHeld),
		"acquire refused for the lock delay":     acq.To(CodeDelayed),
		"acquire refused as invalid":             acq.To(CodeInvalid),
		"older grant":                            granted(acq, 6, 10*sec),
		"renewal of an older incarnation":        renew(old, 7, 10*sec).To(CodeLost),
		"renewal of another process":             renew(Holder{"alice", 1, 1}, 7, 10*sec).To(CodeLost),
		"renewal under another token":            renew(alice, 6, 10*sec).To(CodeLost),
		"grant to somebody else":                 granted(acquire(bob, 10*sec), 8, 10*sec),
		"fence under another token":              Request{Op: OpFence, Holder: alice, Token: 6}.To(CodeStale),
		"answer to a read":                       Request{Op: OpGet, Holder: alice}.To(CodeFree),
		"answer to a release":                    release(alice, 7).To(CodeLost),
		"answer from the future":                 {Op: OpRenew, Code: CodeGranted, Holder: alice, Asked: 7, Sent: 2 * sec, Token: 7, TTL: 10 * sec},
		"grant for no time":                      granted(ren, 7, 0),
	} {
		c := leader(t, tenSeconds)
		before := c.State()
		diff(t, name+": sends", c.Receive(sec, rep), Requests{})
		diff(t, name, c.State(), before)
	}
}

func TestRefusedAcquireGoesOnCampaigning(t *testing.T) {
	for _, code := range []Code{CodeHeld, CodeDelayed, CodeInvalid} {
		c := newClient(t, tenSeconds, 0)
		req := c.Tick(0).Store
		before := c.State()
		c.Receive(10*ms, req.To(code))
		diff(t, code.String(), c.State(), before)
	}
}

func TestGrantThatComesTooLateIsNotBelieved(t *testing.T) {
	c := newClient(t, tenSeconds, 0)
	req := c.Tick(0).Store
	c.Receive(9*sec, granted(req, 7, 10*sec))
	if s := c.State(); s.Phase != Campaigning || s.Holder != alice {
		t.Errorf("after a grant at its deadline: %+v, want alice to campaign on", s)
	}
}

func TestResignationReleasesAtOnceIfNoWorkGoesOn(t *testing.T) {
	idle := leader(t, tenSeconds)
	pending, _ := fencing(t)
	for name, c := range map[string]*Client{"leading": idle, "barrier pending": pending} {
		diff(t, name, c.Resign(2*sec), Requests{Store: Request{Op: OpRelease, Holder: alice, Token: 7, Sent: 2 * sec}})
		if problem := ended(c, 2*sec); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
		// Others go first.
		diff(t, name+": next attempt", c.State().NextSend, 3*sec)
		diff(t, name+": resigns again", c.Resign(2*sec), Requests{})
	}
}

func TestReleaseWaitsForTheWorkToStop(t *testing.T) {
	c := leader(t, tenSeconds)
	c.BeginWork(0)
	diff(t, "resign", c.Resign(2*sec), Requests{})
	if c.IsLeader(2*sec) || !c.Acting(2*sec) {
		t.Errorf("after the resignation: %+v, want no belief but work acting", c.State())
	}
	diff(t, "tick", c.Tick(4*sec), Requests{})
	diff(t, "end of work", c.EndWork(5*sec), Requests{Store: Request{Op: OpRelease, Holder: alice, Token: 7, Sent: 5 * sec}})
	if problem := ended(c, 5*sec); problem != "" {
		t.Error(problem)
	}
}

func TestResignationIsNotTakenBack(t *testing.T) {
	c := leader(t, tenSeconds)
	c.BeginWork(0)
	ren := c.Tick(3 * sec).Store
	c.Resign(4 * sec)
	c.Receive(5*sec, granted(ren, 7, 10*sec))
	if s := c.State(); s.Phase != Stopping || s.Deadline != 9*sec {
		t.Errorf("a renewal under way changed a resignation: %+v", s)
	}
	if c.BeginWork(5 * sec) {
		t.Error("work began after the resignation")
	}
}

func TestWorkThatOutlivesTheTermIsNotReleasedAndBlocksTheNextCampaign(t *testing.T) {
	for name, end := range map[string]func(*Client){
		"deadline":                func(c *Client) { c.Tick(9 * sec) },
		"deadline while stopping": func(c *Client) { c.Resign(8 * sec); c.Tick(9 * sec) },
		"refusal":                 func(c *Client) { c.Receive(8*sec, renew(alice, 7, sec).To(CodeLost)) },
		"refusal while stopping":  func(c *Client) { c.Resign(7 * sec); c.Receive(8*sec, renew(alice, 7, sec).To(CodeLost)) },
	} {
		c := leader(t, tenSeconds)
		c.BeginWork(0)
		end(c)
		diff(t, name+": while work goes on", c.Tick(60*sec), Requests{})
		diff(t, name+": wake while work goes on", c.Wake(), time.Duration(math.MaxInt64))
		before := c.State()
		forged := acquire(alice2, 10*sec)
		forged.Sent = 60 * sec
		c.Receive(60*sec, granted(forged, 8, 10*sec))
		diff(t, name+": granted what it cannot have asked for", c.State(), before)
		diff(t, name+": end of work", c.EndWork(61*sec), Requests{})
		diff(t, name+": next campaign", c.Tick(61*sec), Requests{Store: Request{Op: OpAcquire, Holder: alice2, TTL: 10 * sec, Sent: 61 * sec}})
	}
}

func TestWakeIsTheNextInstantWithSomethingToDo(t *testing.T) {
	campaigning := newClient(t, tenSeconds, 5*sec)
	asked := newClient(t, tenSeconds, 0)
	asked.Tick(0)
	leads := leader(t, tenSeconds)
	renewing := leader(t, tenSeconds)
	renewing.Tick(8500 * ms)
	pending, _ := fencing(t)
	stopping := leader(t, tenSeconds)
	stopping.BeginWork(0)
	stopping.Resign(sec)
	for _, c := range []struct {
		name string
		c    *Client
		want time.Duration
	}{
		{"before the first attempt", campaigning, 5 * sec},
		{"before the retry", asked, sec},
		{"before the renewal", leads, 3 * sec},
		{"before the deadline", renewing, 9 * sec},
		{"before the fence is retried", pending, sec},
		{"stopping", stopping, 9 * sec},
	} {
		diff(t, c.name, c.c.Wake(), c.want)
	}
}

func TestCopyOfAClientIsASnapshot(t *testing.T) {
	c := leader(t, tenSeconds)
	snapshot, state := *c, c.State()
	c.Tick(9 * sec)
	if !snapshot.IsLeader(8 * sec) {
		t.Error("the copy changed with the original")
	}
	c.SetState(state)
	diff(t, "restored", *c == snapshot, true)
}

func TestCandidateNeedsAProperNameAndConfig(t *testing.T) {
	for _, h := range []Holder{{}, {Seq: 1}, {Node: "a"}, {Node: "a#b", Seq: 1}} {
		_, err := NewClient(tenSeconds, h, 0)
		if !errors.Is(err, ErrHolder) || !strings.Contains(err.Error(), "incarnation") {
			t.Errorf("holder %+v: %v", h, err)
		}
	}
	_, err := NewClient(Config{}, alice, 0)
	if _, ok := errors.AsType[*ConfigError](err); !ok {
		t.Errorf("no configuration: %v", err)
	}
}

func BenchmarkClientIsLeader(b *testing.B) {
	c := leader(b, tenSeconds)
	now, n := time.Duration(0), 0
	for b.Loop() {
		if c.IsLeader(now) {
			n++
		}
		now++
	}
	if n == 0 {
		b.Fatal("never led")
	}
}

func BenchmarkClientRenewal(b *testing.B) {
	c := leader(b, tenSeconds)
	now := time.Duration(0)
	for b.Loop() {
		now += 3 * sec
		c.Receive(now, granted(c.Tick(now).Store, 7, 10*sec))
	}
	if !c.IsLeader(now) {
		b.Fatal("lost the lease")
	}
}
