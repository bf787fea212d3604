package lease

import (
	"context"
	"slices"
	"time"
)

// fences are the barriers that a keeper waits for: one call for each storage of a
// member at a time.
type fences struct {
	waiting []*fenceCall
	flying  []*fenceCall
	results chan *fenceCall // has room for every call that there can be
}

// fenceCall is one call to one storage.
type fenceCall struct {
	m         *member
	to        *storage
	req       Request
	err       error
	cancel    context.CancelFunc
	cancelled bool
}

// queue takes a request to all storages of m, but for those that have answered
// it, or will.
func (f *fences) queue(m *member, req Request) {
	for i := range m.storages {
		if s := &m.storages[i]; s.acked != req.Token && !s.asked {
			s.asked = true
			f.waiting = append(f.waiting, &fenceCall{m: m, to: s, req: req})
		}
	}
}

// current reports whether the answer to f can still matter.
func (f *fenceCall) current() bool {
	s := f.m.client.State()
	return s.Phase == Fencing && s.Token == f.req.Token
}

// expire gives up what takes too long or does not matter any more, and makes
// calls of what waits, while there is room.
func (f *fences) expire(k *keeper, now time.Duration) {
	for _, c := range f.flying {
		if !c.cancelled && (now >= add(c.req.Sent, k.g.cfg.RenewAfter()) || !c.current()) {
			c.cancelled = true
			c.cancel()
		}
	}
	for len(f.waiting) > 0 && len(f.flying) < k.g.opts.MaxCalls {
		c := f.waiting[0]
		f.waiting = f.waiting[1:]
		if !c.current() {
			c.to.asked = false
			continue
		}
		var ctx context.Context
		ctx, c.cancel = context.WithCancel(context.WithoutCancel(k.ctx))
		c.req.Sent = now
		f.flying = append(f.flying, c)
		go func() {
			c.err = c.to.fencer.Fence(ctx, c.req.Token)
			f.results <- c
		}()
	}
}

// fenced takes the answer of one storage. The client is told once all of them
// have acknowledged its token, or one refuses it.
func (k *keeper) fenced(c *fenceCall) {
	c.cancel()
	k.fences.flying = slices.DeleteFunc(k.fences.flying, func(f *fenceCall) bool { return f == c })
	now, m := k.g.clk.Now(), c.m
	c.to.asked = false
	rep, known := answer(c.req, Grant{}, c.err)
	k.event(m, Event{Kind: EventCall, Holder: c.req.Holder, Token: c.req.Token, At: now, Op: OpFence, Latency: now - c.req.Sent, Err: c.err})
	switch {
	case !known && !c.cancelled:
		k.news.warn("call failed", "op", OpFence, "resource", m.resource, "err", c.err)
	case rep.Code == CodeFenced:
		c.to.acked = max(c.to.acked, c.req.Token)
		known = m.acknowledged(c.req.Token)
	}
	if !known || m.index < 0 {
		return
	}
	why := ErrBarrier
	if c.err != nil {
		why = &refusal{ErrBarrier, c.err}
	}
	before := m.client.State().Phase
	k.queue(m, m.client.Receive(now, rep))
	if before == Fencing && m.client.State().Phase == Campaigning {
		k.news.warn("no term begins", "resource", m.resource, "holder", c.req.Holder.String(), "token", c.req.Token, "cause", why)
	}
	k.settle(m, now, why)
}

func (f *fences) nextCancel(k *keeper) time.Duration {
	next := never
	for _, c := range f.flying {
		if !c.cancelled {
			next = min(next, add(c.req.Sent, k.g.cfg.RenewAfter()))
		}
	}
	return next
}
