package livetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
	"fencepost/props/kit"
)

// Who contends: goroutines of several processes, for a few leases.
const (
	stormClients   = 16
	stormProcesses = 3
	stormLeases    = 3
)

// storm is many candidates at once, whose calls are on record.
type storm struct {
	w      *world[lease.Store]
	o      Options
	leases [stormLeases]string
	began  time.Duration
	buf    bytes.Buffer
	rec    *linearizability.Recorder
	stores [stormProcesses]lease.Store // recorded

	mu    sync.Mutex
	fault *kit.Failure // the first
}

func newStorm(w *world[lease.Store], o Options) (*storm, error) {
	s := &storm{w: w, o: o, began: w.clk.Now()}
	s.o.Options = o.For(w.process(0))
	var err error
	s.rec, err = linearizability.NewRecorder(&s.buf, metaOf(s.o, 0), func() time.Duration { return w.clk.Now() - s.began })
	for i := range s.leases {
		s.leases[i] = w.resource()
	}
	for i := range s.stores {
		s.stores[i] = record.Store(plain{w.process(i), w.clk}, s.rec)
	}
	return s, err
}

// contender is one of the candidates.
type contender struct {
	s      *storm
	store  lease.Store
	holder lease.Holder
	rng    *rand.Rand
	old    [stormLeases]lease.Token // of its latest tenure of each
	past   []tenure                 // which were all of them
}

// tenure is one that there was, or is.
type tenure struct {
	lease  int
	holder lease.Holder
	token  lease.Token
}

func (s *storm) contenders() []*contender {
	all := make([]*contender, stormClients)
	for i := range all {
		all[i] = &contender{s: s, store: s.stores[i%stormProcesses], holder: s.w.holder(string(rune('a' + i))), rng: rand.New(rand.NewPCG(uint64(i), 6))}
	}
	return all
}

// note keeps the first call that did not return, or panicked.
func (s *storm) note(err error) {
	if f := fault("a call while others are under way", err); f != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fault == nil {
			f.Log = s.w.log.String()
			s.fault = f
		}
	}
}

// Two of a hundred calls are given up within moments, so that nobody knows what
// came of them. More would make the history hard to judge.
func (c *contender) context() (context.Context, context.CancelFunc) {
	ctx := context.Background()
	if c.rng.IntN(50) == 0 {
		return context.WithTimeout(ctx, time.Duration(c.rng.IntN(2000))*time.Microsecond)
	}
	return context.WithCancel(ctx)
}

func (c *contender) acquire(i int) (lease.Grant, error) {
	ctx, cancel := c.context()
	defer cancel()
	g, err := c.store.Acquire(ctx, c.s.leases[i], c.holder, c.s.o.TTL)
	if err == nil {
		c.old[i] = g.Token
		c.past = append(c.past, tenure{i, c.holder, g.Token})
	}
	c.s.note(err)
	return g, err
}

func (c *contender) renew(i int) error {
	ctx, cancel := c.context()
	defer cancel()
	_, err := c.store.Renew(ctx, c.s.leases[i], c.holder, c.old[i], c.s.o.TTL)
	c.s.note(err)
	return err
}

func (c *contender) release(i int) error {
	ctx, cancel := c.context()
	defer cancel()
	err := c.store.Release(ctx, c.s.leases[i], c.holder, c.old[i])
	c.s.note(err)
	return err
}

// pause is about a part of the TTL.
func (c *contender) pause(part time.Duration) {
	d := c.s.o.TTL / part
	sleep(c.s.w.clk, c.s.w.clk.Now()+d/2+time.Duration(c.rng.Int64N(int64(d))))
}

// late delivers a request of one of its earlier tenures, now and then.
func (c *contender) late() {
	if len(c.past) == 0 || c.rng.IntN(2) == 0 {
		return
	}
	ctx, cancel := c.context()
	defer cancel()
	of := c.past[c.rng.IntN(len(c.past))]
	if c.rng.IntN(3) == 0 {
		c.s.note(c.store.Release(ctx, c.s.leases[of.lease], of.holder, of.token))
		return
	}
	_, err := c.store.Renew(ctx, c.s.leases[of.lease], of.holder, of.token, c.s.o.TTL)
	c.s.note(err)
}

// campaign is what a candidate does with a lease, once.
func (c *contender) campaign() {
	i := c.rng.IntN(stormLeases)
	c.late()
	_, err := c.acquire(i)
	switch lease.Refusal(err) {
	case lease.CodeHeld, lease.CodeDelayed:
		if c.rng.IntN(8) == 0 && !c.s.o.NoGet {
			_, err := c.store.Get(context.Background(), c.s.leases[i])
			c.s.note(err)
		}
		c.pause(4)
		return
	}
	if err != nil {
		return
	}
	for range c.rng.IntN(3) {
		c.pause(6)
		if c.renew(i) != nil {
			return
		}
	}
	if c.rng.IntN(3) > 0 {
		c.pause(16)
		c.release(i)
		return
	}
	c.holder, c.old = c.holder.Next(), [stormLeases]lease.Token{} // it crashed, and its lease lapses
}

// history is a storm for some TTLs.
func (s *storm) history() kit.Outcome {
	end := s.w.clk.Now() + 5*s.o.TTL + s.o.slack() + s.o.LockDelay
	const most = 40 // campaigns of each, however fast the store
	var wg sync.WaitGroup
	for _, c := range s.contenders() {
		wg.Go(func() {
			for n := 0; n < most && s.w.clk.Now() < end; n++ {
				c.campaign()
			}
		})
	}
	wg.Wait()
	return s.outcome(linearizability.Activity{Takeovers: 3, Renewals: 3, Lapses: 1})
}

// together has all ask for one lease at the same moment: when it was just
// released, and when it is about to lapse while its holder renews.
func (s *storm) together() kit.Outcome {
	const rounds = 4
	all := s.contenders()
	var wg sync.WaitGroup
	at := func(f func(c *contender)) {
		start := make(chan struct{})
		for _, c := range all {
			wg.Go(func() { <-start; f(c) })
		}
		close(start)
		wg.Wait()
	}
	for round := range rounds {
		for i := range stormLeases {
			at(func(c *contender) { c.acquire(i) })
		}
		if round%2 == 0 {
			at(func(c *contender) {
				for i := range stormLeases {
					if c.old[i] > 0 {
						c.release(i)
					}
				}
			})
		} else {
			sleep(s.w.clk, s.w.clk.Now()+s.o.TTL)
			at(func(c *contender) {
				for i := range stormLeases {
					if c.old[i] > 0 && c.rng.IntN(2) == 0 {
						c.renew(i)
					} else {
						c.acquire(i)
					}
				}
			})
			sleep(s.w.clk, s.w.clk.Now()+s.o.TTL+s.o.slack()+s.o.LockDelay)
		}
	}
	return s.outcome(linearizability.Activity{Takeovers: 1})
}

// searchMemory bounds the search for an order of a storm's history, in bytes.
const searchMemory = 256 << 20

// outcome judges what was recorded.
func (s *storm) outcome(least linearizability.Activity) kit.Outcome {
	if s.fault != nil {
		return kit.Outcome{Failure: s.fault}
	}
	if err := s.rec.Flush(); err != nil {
		return kit.Outcome{Unknown: err.Error()}
	}
	h, err := linearizability.Read(bytes.NewReader(s.buf.Bytes()), "history")
	if err != nil {
		return kit.Outcome{Unknown: fmt.Sprintf("the history cannot be read: %v", err)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	o := linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}, AtLeast: least, Memory: searchMemory}
	v, err := linearizability.Check(ctx, h, o)
	switch {
	case err != nil:
		return kit.Outcome{Unknown: fmt.Sprintf("the history makes no sense: %v", err)}
	case v.Result == linearizability.Violated:
		return kit.Outcome{Failure: convictHistory(h, v, o, s.w.log.String())}
	case v.Result == linearizability.Unknown:
		return kit.Outcome{Unknown: v.Reason + unsure(&h)}
	}
	refused := 0
	for i := range h.Events {
		if h.Events[i].Type == linearizability.Fail {
			refused++
		}
	}
	if refused == 0 {
		return kit.Outcome{Unknown: "too little happened: nothing was refused" + unsure(&h)}
	}
	a := v.Activity
	return kit.Outcome{Covered: fmt.Sprintf("%d calls in %v: %d takeovers, %d renewals, %d refusals, %d lapses, %d of unknown outcome",
		a.Operations, (s.w.clk.Now() - s.began).Round(time.Millisecond), a.Takeovers, a.Renewals, refused, a.Lapses, a.Unknown)}
}

// unsure is an error of unknown outcome, for whoever wonders why too little
// happened.
func unsure(h *linearizability.History) string {
	n, last := 0, ""
	for i := range h.Events {
		if e := &h.Events[i]; e.Type == linearizability.Info {
			n++
			last, _ = e.Field("error").Word()
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d outcomes were unknown, such as %s", n, last)
}

// stormChecks are the checks in which candidates contend.
func stormChecks(w *world[lease.Store], o Options) []task {
	storming := func(name string, f func(*storm) kit.Outcome) task {
		return task{"storm/" + name, func() (out kit.Outcome) {
			for range attempts { // where too little happened, or the judge gave up
				s, err := newStorm(w, o)
				if err != nil {
					return kit.Outcome{Unknown: err.Error()}
				}
				if out = f(s); out.Unknown == "" {
					break
				}
			}
			return out
		}}
	}
	return []task{storming("history", (*storm).history), storming("all-at-once", (*storm).together)}
}
