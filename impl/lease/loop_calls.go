package lease

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"
)

// maxCalls bounds the unanswered calls to one target. By default a term has time
// for seven attempts to renew; so a target meets the bound by ignoring the end
// of contexts, or where retries are frequent.
const maxCalls = 8

// target is whom the loop calls: the store, or one storage of the barrier.
type target struct {
	name   string
	fencer Fencer  // nil for the store
	acked  Token   // the highest that the storage has acknowledged
	calls  []*call // in flight, oldest first
}

// call is a request under way, in a goroutine that ends by sending its result.
type call struct {
	req       Request
	cancel    context.CancelFunc
	until     time.Duration // after this its answer cannot matter, and it is cancelled
	cancelled bool
}

type result struct {
	to    *target
	call  *call
	grant Grant
	err   error
}

func (l *loop) send(out Requests) {
	if out.Store.Op == OpAcquire {
		l.poll = never // it counts from here
	}
	if out.Store.Op != OpNone {
		l.call(&l.store, out.Store)
	}
	if out.Storage.Op != OpNone {
		for i := range l.storages {
			if t := &l.storages[i]; t.acked != out.Storage.Token {
				l.call(t, out.Storage)
			}
		}
	}
}

// call sends req, beside whatever is unanswered: a late answer is as good as
// ever, so the older calls keep their chance with a target that is slow. Where
// that makes too many, the youngest gives way to the next attempt, in case the
// target has recovered from what they hang in.
func (l *loop) call(t *target, req Request) {
	if len(t.calls) == maxCalls {
		t.calls[maxCalls-1].giveUp()
		l.log(slog.LevelWarn, "call not made: too many are unanswered", "op", req.Op, "to", t.name, "calls", maxCalls)
		return
	}
	// Not ended by Run's context: the release comes after that, and an acquire
	// cancelled half-way may leave a lease behind that nobody knows of.
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.ctx))
	c := &call{req: req, cancel: cancel, until: add(req.Sent, l.e.cfg.SafeWindow())}
	if req.Op == OpRelease {
		c.until = add(req.Sent, l.e.opts.ReleaseTimeout)
	}
	t.calls = append(t.calls, c)
	go func() {
		g, err := l.e.do(ctx, t.fencer, req)
		l.results <- result{to: t, call: c, grant: g, err: err}
	}()
}

// do makes the call that req asks for. A grant of no use is a *[GrantError].
func (e *Elector) do(ctx context.Context, f Fencer, req Request) (g Grant, err error) {
	switch req.Op {
	case OpAcquire:
		g, err = e.store.Acquire(ctx, e.opts.Resource, req.Holder, req.TTL)
	case OpRenew:
		g, err = e.store.Renew(ctx, e.opts.Resource, req.Holder, req.Token, req.TTL)
	case OpRelease:
		return Grant{}, e.store.Release(ctx, e.opts.Resource, req.Holder, req.Token)
	default:
		return Grant{}, f.Fence(ctx, req.Token)
	}
	if err == nil {
		err = e.cfg.examine(e.opts.Resource, req, g)
	}
	return g, err
}

func (l *loop) targets() iter.Seq[*target] {
	return func(yield func(*target) bool) {
		if !yield(&l.store) {
			return
		}
		for i := range l.storages {
			if !yield(&l.storages[i]) {
				return
			}
		}
	}
}

func (c *call) giveUp() {
	c.cancelled = true
	c.cancel()
}

func (l *loop) cancelDue(now time.Duration) {
	for t := range l.targets() {
		for _, c := range t.calls {
			if now >= c.until && !c.cancelled {
				l.log(slog.LevelWarn, "call unanswered", "op", c.req.Op, "to", t.name, "for", now-c.req.Sent)
				c.giveUp()
			}
		}
	}
}

func (l *loop) nextCancel() time.Duration {
	next := never
	for t := range l.targets() {
		for _, c := range t.calls {
			if !c.cancelled {
				next = min(next, c.until)
			}
		}
	}
	return next
}

// take books the end of a call, and gives the reply that a client can use. A
// grant of no use is released, since the client is not told of it.
func (l *loop) take(r result) (rep Reply, known bool) {
	r.call.cancel()
	r.to.calls = slices.DeleteFunc(r.to.calls, func(c *call) bool { return c == r.call })
	rep, known = answer(r.call.req, r.grant, r.err)
	now := l.e.clk.Now()
	l.observe(Event{Kind: EventCall, Holder: rep.Holder, Token: max(rep.Asked, rep.Token), At: now, Op: rep.Op, Latency: now - rep.Sent, Err: r.err})
	switch {
	case !known && r.call.cancelled:
		l.log(slog.LevelDebug, "call cancelled", "op", rep.Op, "to", r.to.name, "err", r.err)
	case !known:
		l.log(slog.LevelWarn, "call failed", "op", rep.Op, "to", r.to.name, "err", r.err)
	case r.err != nil:
		l.log(slog.LevelDebug, "call refused", "op", rep.Op, "to", r.to.name, "err", r.err)
	}
	if token := r.grant.Token; token != 0 && l.campaigns(rep) && is[*GrantError](r.err) {
		l.call(&l.store, Request{Op: OpRelease, Holder: rep.Holder, Token: token, Sent: now})
	}
	if rep.Code == CodeFenced {
		r.to.acked = max(r.to.acked, rep.Asked)
		known = !slices.ContainsFunc(l.storages, func(t target) bool { return t.acked != rep.Asked })
	}
	return rep, known
}
