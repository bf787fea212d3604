package explore_test

import (
	"context"
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

// Two clients, a lease of two ticks, one message in flight at a time: every
// schedule of any length.
func ExampleRun() {
	o := explore.Default()
	o.TTL, o.Messages = 2, 1
	r, err := explore.Run(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Verdict, "complete:", r.Found.Complete)
	fmt.Println("a client waits at most", r.Fair.Longest, "and may wait", r.Fair.Bound)
	// Output:
	// holds complete: true
	// a client waits at most 1s and may wait 1.5s
}

// lingers leads at its deadline, and not only before it.
type lingers struct{ sim.Client }

func (l lingers) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	out := l.Client.Receive(c, now, rep)
	if s := c.State(); s.Phase == lease.Leading {
		s.Deadline = rep.Sent + 1200*time.Millisecond + 1
		c.SetState(s)
	}
	return out
}

// A planted bug comes with a shortest counterexample, ready to be replayed.
func ExampleRun_counterexample() {
	o := explore.Default()
	o.Subject.Name, o.Subject.Client = "lingers", lingers{}
	r, err := explore.Run(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Verdict, r.Violated)
	for _, a := range r.Counterexample.Actions {
		fmt.Println(a)
	}
	// Output:
	// violated belief-implies-ownership
	// tick C1
	// deliver 1.0
	// deliver 2.0
	// advance 400ms C1 at 750000 ppm
	// advance 400ms C1 at 750000 ppm
	// advance 400ms C1 at 750000 ppm
	// advance 400ms C1 at 750000 ppm
}

// hasty is a store of one's own: it takes a lease for lapsed a tick too soon. It
// keeps nothing itself; all that it remembers is in s.
type hasty struct{ sim.Store }

func (h hasty) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	if left := s.Expires - now.Boot; req.Op == lease.OpAcquire && s.Status == lease.Running && left <= 400*time.Millisecond {
		now.Boot = max(now.Boot, s.Expires)
	}
	return h.Store.Handle(s, now, lockDelay, req)
}

// Rules of one's own are explored like the built-in ones.
func ExampleRun_store() {
	o := explore.Default()
	o.Subject.Name, o.Subject.Store = "hasty", hasty{}
	r, err := explore.Run(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Verdict, r.Violated)
	fmt.Println(r.Counterexample.Shows)
	// Output:
	// violated belief-implies-ownership
	// C2 acts as leader under token 1, but the store's tenure is C1 under 2
}

// The schedule that leads to the state that waits longest for a leader: the
// renewal that is left on its way will be granted to a term that is over.
func ExampleOptions_Lead() {
	o := explore.Default()
	o.TTL, o.Messages = 2, 1
	r, err := explore.Run(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := o.Lead(context.Background(), r.Fair.Key)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range s.Actions {
		fmt.Println(a)
	}
	// Output:
	// tick C1
	// advance 400ms
	// deliver 1.0
	// deliver 3.0
	// tick C1
	// advance 400ms
}
