package lease

import "testing"

// fencing is alice holding token 7 since 0 s, and her request to the storage.
func fencing(t testing.TB) (*Client, Request) {
	t.Helper()
	cfg := tenSeconds
	cfg.Barrier = true
	c := newClient(t, cfg, 0)
	return c, c.Receive(0, granted(c.Tick(0).Store, 7, 10*sec)).Storage
}

func TestFirstAcknowledgementOfTheBarrierBeginsBelief(t *testing.T) {
	c, fence := fencing(t)
	diff(t, "fence", fence, Request{Op: OpFence, Holder: alice, Token: 7, Sent: 0})
	if c.IsLeader(0) || c.Acting(0) || c.BeginWork(0) {
		t.Fatalf("leads before the barrier: %+v", c.State())
	}
	c.Receive(sec, fence.To(CodeFenced))
	if !c.IsLeader(sec) || !c.BeginWork(sec) {
		t.Fatalf("does not lead after the barrier: %+v", c.State())
	}
	diff(t, "deadline", c.State().Deadline, 9*sec)
}

func TestPendingBarrierRenewsAndRetriesWithoutLeading(t *testing.T) {
	c, _ := fencing(t)
	var fences, renewals int
	for now := sec; now <= 30*sec; now += sec {
		out := c.Tick(now)
		if out.Storage.Op == OpFence && out.Storage.Token == 7 {
			fences++
		}
		if out.Store.Op == OpRenew {
			renewals++
			c.Receive(now, granted(out.Store, 7, 10*sec))
		}
		if c.IsLeader(now) {
			t.Fatalf("leads at %v with the barrier pending", now)
		}
	}
	if fences != 30 || renewals != 10 { // each second; every third second
		t.Errorf("%d fences and %d renewals in 30s, want 30 and 10", fences, renewals)
	}
}

func TestRefusedBarrierEndsTheTerm(t *testing.T) {
	c, fence := fencing(t)
	c.Receive(sec, fence.To(CodeStale))
	if problem := ended(c, sec); problem != "" {
		t.Error(problem)
	}
	// So does a refusal that comes after the acknowledgement of a retry.
	c, fence = fencing(t)
	c.Receive(sec, c.Tick(sec).Storage.To(CodeFenced))
	c.Receive(2*sec, fence.To(CodeStale))
	if problem := ended(c, 2*sec); problem != "" {
		t.Error(problem)
	}
}

func TestPendingBarrierDoesNotOutliveTheDeadline(t *testing.T) {
	c, fence := fencing(t)
	c.Receive(9*sec, fence.To(CodeFenced))
	if problem := ended(c, 9*sec); problem != "" {
		t.Error(problem)
	}
}

// With the barrier pending nothing was led yet, so that what was regained may
// be: under its own token, once the storage knows that one.
func TestPendingBarrierGoesOverToARegainedTenure(t *testing.T) {
	c, old := fencing(t)
	again := c.Tick(3 * sec) // the renewal under 7, and its fence
	regained := granted(acquire(alice, 10*sec), 8, 10*sec)
	regained.Sent = 2 * sec
	fence := c.Receive(4*sec, regained)
	diff(t, "sends", fence, Requests{Storage: Request{Op: OpFence, Holder: alice, Token: 8, Sent: 4 * sec}})
	want := ClientState{Holder: alice, Phase: Fencing, Token: 8, Deadline: 11 * sec, NextSend: 5 * sec, NextFence: 5 * sec}
	diff(t, "state", c.State(), want)

	for name, rep := range map[string]Reply{
		"acknowledgement of the old token":         old.To(CodeFenced),
		"refusal of the old token":                 old.To(CodeStale),
		"refusal of a renewal under the old token": again.Store.To(CodeLost),
		"renewal under the old token":              granted(again.Store, 7, 10*sec),
		"copy of the old grant":                    granted(acquire(alice, 10*sec), 7, 10*sec),
	} {
		c.Receive(4*sec, rep)
		diff(t, name, c.State(), want)
	}
	c.Receive(5*sec, fence.Storage.To(CodeFenced))
	if !c.IsLeader(11*sec-1) || c.IsLeader(11*sec) || c.State().Token != 8 {
		t.Errorf("after the barrier: %+v, want alice to lead under 8 till 11s", c.State())
	}
}
