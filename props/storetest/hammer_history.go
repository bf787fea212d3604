package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// linearizabilityPart of 100 calls are for Linearizability.
const linearizabilityPart = 10

// searchMemory bounds the search for an order of one history, in bytes. That of
// a history whose outcomes are known takes less than 1 MB.
const searchMemory = 16 << 20

// Linearizability is a check of histories: several goroutines do random calls on
// two leases, all the while that the clock of Concurrency yields, and what they
// called and were answered is recorded. There must be one order of the calls,
// each at an instant between its call and its answer, in which every answer is
// that of a lease that is asked one thing at a time (Herlihy and Wing 1990; the
// search is that of Wing and Gong 1993 and Lowe 2017, with time). What else must
// hold of tokens and tenures is looked at too.
func Linearizability(open script.Open, o kit.Options, e kit.Effort) kit.Check {
	budget := o.Budget(e, linearizabilityPart)
	return kit.Check{Name: "linearizability", Run: func() kit.Outcome {
		return newHammer(open, o, e.Seed).run(func(h *hammer) kit.Outcome { return h.histories(budget) })
	}}
}

// histories records and checks histories until a number of calls was made.
func (h *hammer) histories(budget int) kit.Outcome {
	var did activity
	for did.calls < budget || did.histories == 0 {
		h.next()
		r, err := newRecording(h)
		if err != nil {
			return kit.Outcome{Unknown: err.Error()}
		}
		h.history = r
		r.record()
		hist, err := r.history()
		if err != nil {
			return kit.Outcome{Unknown: fmt.Sprintf("the history cannot be read: %v", err)}
		}
		o := linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}, Memory: searchMemory}
		v, err := linearizability.Check(context.Background(), hist, o)
		switch {
		case err != nil:
			return kit.Outcome{Unknown: fmt.Sprintf("the history makes no sense: %v", err)}
		case v.Result == linearizability.Violated:
			return kit.Outcome{Failure: h.convict(hist, o)}
		case v.Result == linearizability.Unknown:
			did.undecided++
		}
		did.add(&hist, v.Activity)
	}
	return did.outcome()
}

// activity is what happened in the histories.
type activity struct {
	histories, undecided                             int
	calls, overlapping, takeovers, refusals, unknown int
	unsure                                           string // one of unknown outcome
}

func (a *activity) add(h *linearizability.History, did linearizability.Activity) {
	a.histories++
	a.takeovers += did.Takeovers
	open := 0
	for i := range h.Events {
		switch e := &h.Events[i]; e.Type {
		case linearizability.Invoke:
			a.calls++
			if open > 0 {
				a.overlapping++
			}
			open++
		case linearizability.Fail:
			a.refusals++
			open--
		case linearizability.Info:
			a.unknown++
			a.unsure = e.F + " → " + word(e, "error")
			open--
		default:
			open--
		}
	}
}

// outcome is that of histories that hold: no pass if nothing happened in them.
// The first calls of a history are such that a correct store, whose outcomes are
// known, has refused and has changed hands.
func (a *activity) outcome() kit.Outcome {
	var lacks string
	switch {
	case 2*a.undecided > a.histories:
		lacks = fmt.Sprintf("of %d histories %d were too hard to judge", a.histories, a.undecided)
	case a.takeovers == 0:
		lacks = "no lease changed hands"
	case a.refusals == 0:
		lacks = "nothing was refused"
	case a.overlapping == 0:
		lacks = "no two calls were under way at once"
	default:
		return kit.Outcome{Covered: fmt.Sprintf("%d calls, %d while others were under way; %d takeovers, %d refusals",
			a.calls, a.overlapping, a.takeovers, a.refusals)}
	}
	if a.unknown > 0 {
		lacks += fmt.Sprintf("; %d of %d outcomes were unknown, such as %s", a.unknown, a.calls, clip(a.unsure))
	}
	return kit.Outcome{Unknown: fmt.Sprintf("too little was seen in %d calls: %s", a.calls, lacks)}
}

// recording is one history in the making.
type recording struct {
	h       *hammer
	buf     bytes.Buffer
	r       *linearizability.Recorder
	clients [3]client
	keys    [2]string
	ttls    []time.Duration
}

// client is one that calls.
type client struct {
	store  lease.Store // recorded
	get    bool
	keys   [2]string
	ttls   []time.Duration
	rng    *rand.Rand
	holder lease.Holder
	token  [2]lease.Token // of its latest grant of each lease
	has    [2]bool        // and so far nothing says that it lost it
	until  [2]time.Duration
	now    time.Duration // which stands while it calls
}

func newRecording(h *hammer) (*recording, error) {
	r := &recording{h: h, keys: [2]string{h.resource("p"), h.resource("q")}}
	r.ttls = []time.Duration{h.ttl, wholeTTL(h.o, h.ttl+h.ttl/2), 2 * h.ttl}
	meta := linearizability.DefaultMeta()
	meta.Late, meta.LockDelay, meta.RenewAfterLapse = int64(h.o.Late), int64(h.o.LockDelay), h.o.RenewAfterLapse
	if h.o.Tokens == model.TokensRising {
		meta.Tokens = linearizability.TokensRising
	}
	clk, began := h.lab.Clock(), h.began
	var err error
	if r.r, err = linearizability.NewRecorder(&r.buf, meta, func() time.Duration { return clk.Now() - began }); err != nil {
		return nil, err
	}
	for i := range r.clients {
		r.clients[i] = client{
			store: record.Store(plainStore{h}, r.r), get: !h.o.NoGet,
			keys: r.keys, ttls: r.ttls, rng: rand.New(rand.NewPCG(h.rng.Uint64(), 0)),
			holder: h.candidate(nodes[i]),
		}
	}
	return r, nil
}

// A history is a number of bursts of calls, between which time passes: enough
// that some calls overlap however the scheduler treats them, and short, so that
// a violation is soon seen and reduced, and a search among calls of unknown
// outcome ends (of 100 calls with 38 such ones: within 0.1 s; of 200 with 77:
// 0.6 s).
const (
	bursts     = 16
	burstCalls = 2 // of each client in a burst
)

func (r *recording) record() {
	h := r.h
	whole := 2*h.ttl + h.o.Late + h.o.LockDelay
	r.burst(func(c *client) { c.acquire(h.ctx, 0, c.ttls[0]) })
	h.lab.Advance(whole)
	r.burst(func(c *client) { // a takeover
		if !c.has[0] {
			c.acquire(h.ctx, 0, c.ttls[0])
		}
	})
	for range bursts {
		r.burst(func(c *client) {
			for range burstCalls {
				c.call(h.ctx)
			}
		})
		r.pass(whole)
	}
}

func (r *recording) burst(f func(*client)) {
	fs := make([]func(), len(r.clients))
	for i := range fs {
		c := &r.clients[i]
		c.now = r.h.lab.Clock().Now()
		fs[i] = func() { f(c) }
	}
	r.h.together(fs...)
}

// pass lets time pass, or none: often exactly to where a tenure should lapse, or
// to just before that.
func (r *recording) pass(whole time.Duration) {
	now := r.h.lab.Clock().Now()
	c := &r.clients[r.h.rng.IntN(len(r.clients))]
	lapse := c.until[r.h.rng.IntN(len(c.until))] - now
	var d time.Duration
	switch k := r.h.rng.IntN(8); {
	case k < 2 && lapse > 0:
		d = lapse - time.Duration(k) // at it, or 1ns before
	case k < 3 && lapse > 0:
		d = lapse + r.h.o.Late + r.h.o.LockDelay
	case k < 4:
		d = r.h.ttl / 4
	case k < 5:
		d = whole
	}
	if d > 0 {
		r.h.lab.Advance(d)
	}
}

// call makes one random call.
func (c *client) call(ctx context.Context) {
	i := c.rng.IntN(len(c.keys))
	ttl := c.ttls[c.rng.IntN(len(c.ttls))]
	switch k := c.rng.IntN(10); {
	case k < 2 && c.get:
		c.store.Get(ctx, c.keys[i])
	case c.has[i] && k < 6 || !c.has[i] && c.token[i] > 0 && k == 2:
		_, err := c.store.Renew(ctx, c.keys[i], c.holder, c.token[i], ttl)
		c.told(i, ttl, err)
	case c.has[i] && k < 9 || !c.has[i] && c.token[i] > 0 && k == 3:
		if err := c.store.Release(ctx, c.keys[i], c.holder, c.token[i]); err != nil {
			c.told(i, 0, err)
		} else {
			c.has[i] = false
		}
	default:
		c.acquire(ctx, i, ttl)
	}
}

func (c *client) acquire(ctx context.Context, i int, ttl time.Duration) {
	g, err := c.store.Acquire(ctx, c.keys[i], c.holder, ttl)
	if err == nil {
		c.token[i] = g.Token
	}
	c.told(i, ttl, err)
}

// told takes an answer to heart.
func (c *client) told(i int, ttl time.Duration, err error) {
	if err == nil {
		c.has[i], c.until[i] = true, c.now+ttl
		return
	}
	c.has[i] = false
	// Some come back as another incarnation, some as the same one.
	if c.rng.IntN(2) == 0 && c.has == [2]bool{} {
		c.holder = c.holder.Next()
		c.token = [2]lease.Token{}
	}
}

// history is what was recorded.
func (r *recording) history() (linearizability.History, error) {
	if err := r.r.Flush(); err != nil {
		return linearizability.History{}, err
	}
	return linearizability.Read(&r.buf, "history")
}

// plainStore is a store whose answers can be written down: what is odd about an
// answer by itself is for the checks of the rules to tell.
type plainStore struct{ h *hammer }

func (s plainStore) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	var g lease.Grant
	err := s.h.call(func() (err error) { g, err = s.h.store.Acquire(ctx, resource, holder, ttl); return err })
	var held *lease.HeldError
	var delay *lease.DelayError
	var invalid *lease.InvalidError
	return plainGrant(g, ttl), plainRefusal(err, &held, &delay, &invalid)
}

func (s plainStore) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	var g lease.Grant
	err := s.h.call(func() (err error) { g, err = s.h.store.Renew(ctx, resource, holder, token, ttl); return err })
	var lapsed *lease.LapsedError
	var lost *lease.LostError
	var invalid *lease.InvalidError
	return plainGrant(g, ttl), plainRefusal(err, &lapsed, &lost, &invalid)
}

func (s plainStore) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	var lapsed *lease.LapsedError
	var lost *lease.LostError
	var invalid *lease.InvalidError
	err := s.h.call(func() error { return s.h.store.Release(ctx, resource, holder, token) })
	return plainRefusal(err, &lapsed, &lost, &invalid)
}

func (s plainStore) Get(ctx context.Context, resource string) (seen lease.Observation, err error) {
	err = s.h.call(func() (err error) { seen, err = s.h.store.Get(ctx, resource); return err })
	return seen, err
}

// plainGrant is g for what its holder may count on: no longer than it asked for.
func plainGrant(g lease.Grant, ttl time.Duration) lease.Grant {
	if g.TTL <= 0 || g.TTL > ttl {
		g.TTL = ttl
	}
	return g
}

// plainRefusal is an error that is among those that an operation may be refused
// with, or else one that says nothing.
func plainRefusal(err error, refusals ...any) error {
	for _, r := range refusals {
		if err == nil || errors.As(err, r) {
			return err
		}
		if _, ok := r.(**lease.LostError); ok && errors.Is(err, lease.ErrNotHeld) {
			return &lease.LostError{} // in the words of the store
		}
	}
	return errors.New(clip(err.Error()))
}
