package lease

import (
	"context"
	"errors"
	"slices"
	"time"
)

// calls are what a keeper has to say to its store, and the calls under way.
type calls struct {
	renewals, releases, acquires []order // wait to be sent, in order
	flying                       []*batch
	acquiring                    int         // of flying
	results                      chan *batch // has room for every call that there can be: sending never blocks
}

// order is a request that waits. Those to acquire and renew stand in the member,
// where a younger one replaces one that could not be sent yet.
type order struct {
	m       *member
	release Request // of releases
}

// batch is one call under way, in a goroutine that ends by sending it back.
type batch struct {
	op        Op
	sent      time.Duration
	members   []*member
	calls     []Call
	answers   []Answer
	cancel    context.CancelFunc
	until     time.Duration // after this no answer can matter, and it is cancelled
	cancelled bool
}

// queue takes what a step of m's client wants sent.
func (k *keeper) queue(m *member, out Requests) {
	switch req := out.Store; req.Op {
	case OpNone:
	case OpRelease:
		k.queueRelease(m, req)
	default:
		if m.queued.Op != req.Op {
			q := &k.calls.acquires
			if req.Op == OpRenew {
				q = &k.calls.renewals
			}
			*q = append(*q, order{m: m})
		}
		m.queued = req
	}
	if out.Storage.Op != OpNone {
		k.fences.queue(m, out.Storage)
	}
}

func (k *keeper) queueRelease(m *member, req Request) {
	m.unsent++
	k.calls.releases = append(k.calls.releases, order{m, req})
}

func (c *calls) waiting() bool { return len(c.renewals)+len(c.releases)+len(c.acquires) > 0 }

// send makes calls of what waits, while there is room: first what keeps terms
// alive. What it skips, because the member has moved on, is settled here too.
func (k *keeper) send(now time.Duration) {
	c := &k.calls
	for len(c.renewals) > 0 && len(c.flying) < k.g.opts.MaxCalls {
		c.renewals = k.fill(OpRenew, c.renewals, now)
	}
	for len(c.releases) > 0 && len(c.flying) < k.g.opts.MaxCalls {
		c.releases = k.fill(OpRelease, c.releases, now)
	}
	for len(c.acquires) > 0 && len(c.flying) < k.g.opts.MaxCalls && c.acquiring < max(k.g.opts.MaxCalls/2, 1) {
		c.acquires = k.fill(OpAcquire, c.acquires, now)
	}
}

// fill makes one call of the first in queue, and gives those that are left. A
// call that hangs may hang by one of its requests: who waits for an answer
// already is asked for in a smaller one, and then alone.
func (k *keeper) fill(op Op, queue []order, now time.Duration) (rest []order) {
	b := &batch{op: op, sent: now, until: add(now, k.g.cfg.SafeWindow())}
	if op == OpRelease {
		b.until = add(now, k.g.opts.ReleaseTimeout)
	}
	size := k.g.maxBatch
	room := min(size, len(queue))
	b.members, b.calls = make([]*member, 0, room), make([]Call, 0, room)
	n := 0
	for ; n < len(queue) && len(b.calls) < size; n++ {
		o := queue[n]
		m := o.m
		req := o.release
		if op == OpRelease {
			if m.in == b {
				break // no two for one resource
			}
			m.unsent--
		} else {
			if m.queued.Op != op {
				continue // sent from another place of the queue, or another
			}
			if s := &m.client.state; m.queued.Holder != s.Holder || (op == OpRenew) != (s.Phase != Campaigning) {
				m.queued = Request{}
				k.settle(m, now, ErrLapsed)
				continue // out of date
			}
			limit := max(k.g.maxBatch>>min(4*m.calls, 62), 1)
			if len(b.calls) >= limit {
				break
			}
			size = min(size, limit)
			req, m.queued = m.queued, Request{}
		}
		m.in = b
		m.calls++
		b.members = append(b.members, m)
		b.calls = append(b.calls, Call{Resource: m.resource, Request: req})
	}
	if len(b.calls) > 0 {
		k.fly(b)
	}
	if rest = queue[n:]; len(rest) == 0 {
		rest = nil // and what was behind can go
	}
	return rest
}

func (k *keeper) fly(b *batch) {
	// Not ended by Run's context: the release comes after that, and an acquire
	// cancelled half-way may leave a lease behind that nobody knows of.
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.ctx))
	b.cancel = cancel
	k.calls.flying = append(k.calls.flying, b)
	if b.op == OpAcquire {
		k.calls.acquiring++
	}
	go func() {
		if k.g.batcher != nil {
			b.answers = k.g.batcher.Batch(ctx, b.calls)
		} else {
			b.answers = []Answer{do(ctx, k.g.store, b.calls[0])}
		}
		k.calls.results <- b
	}()
}

// errUnanswered is the outcome of what a [Batcher] gave no answer to.
var errUnanswered = errors.New("the store gave fewer answers than there were calls: outcome unknown")

func (k *keeper) answered(b *batch) {
	b.cancel()
	k.calls.flying = slices.DeleteFunc(k.calls.flying, func(c *batch) bool { return c == b })
	if b.op == OpAcquire {
		k.calls.acquiring--
	}
	now := k.g.clk.Now()
	failed, first := 0, error(nil)
	for i, m := range b.members {
		a := Answer{Err: errUnanswered}
		if len(b.answers) == len(b.calls) {
			a = b.answers[i]
		}
		m.calls--
		if known := k.receive(m, b.calls[i].Request, a, now); !known {
			if failed++; first == nil {
				first = a.Err
			}
		}
	}
	if failed > 0 && !b.cancelled {
		k.news.warn("calls failed", "op", b.op, "calls", failed, "err", first)
	}
}

// receive tells m's client of the answer to req.
func (k *keeper) receive(m *member, req Request, a Answer, now time.Duration) (known bool) {
	if a.Err == nil && req.Op != OpRelease {
		a.Err = k.g.cfg.examine(m.resource, req, a.Grant)
	}
	before := m.client.State()
	if k.news.observed() {
		k.event(m, Event{Kind: EventCall, Holder: req.Holder, Token: req.Token, At: now, Op: req.Op, Latency: now - req.Sent, Err: a.Err})
	}
	why := ErrRefused
	rep, known := answer(req, a.Grant, a.Err)
	if a.Err != nil {
		why = &refusal{ErrRefused, a.Err}
		k.refused(m, req, rep, a, before, now)
	}
	if known {
		k.queue(m, m.client.Receive(now, rep))
		if rep.Code == CodeGranted {
			k.granted(m, req, rep, before, now)
		}
	}
	k.settle(m, now, why)
	return known
}

// granted gives m's renewals the slot that is theirs: the last before the one
// that its client would send.
func (k *keeper) granted(m *member, req Request, rep Reply, before ClientState, now time.Duration) {
	s := &m.client.state
	if s.Holder != rep.Holder || s.Token != rep.Token {
		return // of no use any more
	}
	if at := k.spread.last(s.NextSend, k.g.cfg.RenewAfter(), m.place); at > now {
		m.client.Hasten(at)
	}
	if !k.news.observed() {
		return
	}
	e := Event{Kind: EventRenewed, Holder: s.Holder, Token: s.Token, At: now, Margin: before.Deadline - now}
	if before.Phase == Campaigning {
		e.Kind, e.Margin = EventGranted, 0
	} else if req.Op != OpRenew {
		return
	}
	k.event(m, e)
}

// refused decides when m campaigns again, if it was an acquire that came to
// nothing: see [GroupConfig.Poll].
func (k *keeper) refused(m *member, req Request, rep Reply, a Answer, before ClientState, now time.Duration) {
	if req.Op != OpAcquire || before.Phase != Campaigning || before.Holder != req.Holder {
		return
	}
	var remaining time.Duration
	if e, ok := errors.AsType[*HeldError](a.Err); ok {
		remaining = e.Remaining
	} else if e, ok := errors.AsType[*DelayError](a.Err); ok {
		remaining = e.Remaining
	} else if useless := is[*GrantError](a.Err); useless || rep.Code == CodeInvalid {
		if m.barred = true; useless && a.Grant.Token != 0 {
			// The client is not told of it.
			k.queueRelease(m, Request{Op: OpRelease, Holder: req.Holder, Token: a.Grant.Token, Sent: now})
		}
		k.g.mu.Lock()
		m.err = a.Err
		k.g.mu.Unlock()
		k.news.warn("campaigns no more", "resource", m.resource, "err", a.Err)
		return
	} else {
		return // unknown: the client's own retry
	}
	retry, poll := k.g.cfg.Retry(), k.g.opts.Poll
	next := k.spread.last(add(req.Sent, poll), poll, m.place)
	if next < add(req.Sent, retry) {
		next = add(req.Sent, poll)
	}
	// In steps, so that leases which lapse together are asked for together.
	step := max(retry/4, 1)
	lapse := add(req.Sent, max(remaining, retry)+step-1)
	m.notYet = min(next, lapse-lapse%step)
}

// waits is how long b may take: as long as its answer can matter, or a part of
// that where others wait for its place.
func (k *keeper) waits(b *batch) time.Duration {
	until := min(b.until, k.cut)
	if b.op == OpRenew && k.cut != never {
		until = b.sent // nothing is held any more
	}
	if k.calls.waiting() {
		until = min(until, add(b.sent, k.g.cfg.RenewAfter()))
	}
	return until
}

// expire gives up what has taken too long.
func (k *keeper) expire(now time.Duration) {
	for _, b := range k.calls.flying {
		if !b.cancelled && now >= k.waits(b) {
			k.news.warn("call unanswered", "op", b.op, "requests", len(b.calls), "for", now-b.sent)
			b.cancelled = true
			b.cancel()
		}
	}
	k.fences.expire(k, now)
}

func (c *calls) nextCancel(k *keeper) time.Duration {
	next := never
	for _, b := range c.flying {
		if !b.cancelled {
			next = min(next, k.waits(b))
		}
	}
	return next
}

// refusal is why a term was refused. Made for every refusal, it says so only
// when asked.
type refusal struct{ why, err error }

func (r *refusal) Error() string { return r.why.Error() + ": " + r.err.Error() }

// Unwrap lets errors.Is and As find both.
func (r *refusal) Unwrap() []error { return []error{r.why, r.err} }
