package electortest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

const resource = "orders"

// rivalNode is the node of the scripted rival.
const rivalNode = "rival"

// errLost is what a call fails with whose request or answer was lost.
var errLost = errors.New("connection reset by peer")

// errAsked is what IsLeader gets of the store.
var errAsked = errors.New("no call of the store while IsLeader answers")

// port is the store and the storage as one process reaches them.
type port struct {
	w *world
	p *process
}

var (
	_ lease.Store = port{}
	_ fence.KV    = port{}
)

func (s port) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	a := s.do(ctx, &call{resource: resource, op: lease.OpAcquire, holder: holder, ttl: ttl})
	return a.grant, a.err
}

func (s port) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	a := s.do(ctx, &call{resource: resource, op: lease.OpRenew, holder: holder, token: token, ttl: ttl})
	return a.grant, a.err
}

func (s port) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	return s.do(ctx, &call{resource: resource, op: lease.OpRelease, holder: holder, token: token}).err
}

func (s port) Get(ctx context.Context, resource string) (lease.Observation, error) {
	a := s.do(ctx, &call{resource: resource, op: lease.OpGet})
	return a.seen, a.err
}

func (s port) Fence(ctx context.Context, token lease.Token) error {
	return s.do(ctx, &call{op: lease.OpFence, token: token}).err
}

func (s port) Write(_ context.Context, token lease.Token, key, value string) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if err := s.w.admit(token); err != nil {
		return err
	}
	s.w.data[key] = value
	return nil
}

func (s port) Read(_ context.Context, key string) (value string, ok bool, err error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	value, ok = s.w.data[key]
	return value, ok, nil
}

// admit is called with the lock.
func (w *world) admit(token lease.Token) error {
	next, ok := w.guard.Admit(token)
	if !ok {
		return &fence.StaleTokenError{Token: token, Highest: w.guard.Highest}
	}
	w.guard = next
	return nil
}

// do makes a call on the client's goroutine: the request goes to the inbox,
// and what becomes of it is for the world to say.
func (s port) do(ctx context.Context, c *call) answer {
	if err := ctx.Err(); err != nil {
		return answer{err: fmt.Errorf("nothing sent: %w", err)}
	}
	if s.w.asking.Load() {
		// Nobody would take it before there is an answer.
		s.w.called.Store(true)
		return answer{err: errAsked}
	}
	c.proc, c.ctx, c.sent = s.p, ctx, s.w.now()
	c.taken, c.reply = make(chan struct{}), make(chan answer, 1)
	s.w.mu.Lock()
	if s.w.closed {
		s.w.mu.Unlock()
		return answer{err: errClosed}
	}
	s.w.inbox = append(s.w.inbox, c)
	s.w.tale.asks(c.sent, s.w.slots[s.p.slot].name, c.asks())
	s.w.mu.Unlock()
	s.w.nudge()
	<-c.taken
	if c.fate.Deaf {
		return <-c.reply
	}
	select {
	case a := <-c.reply:
		return a
	case <-ctx.Done():
	}
	select {
	case a := <-c.reply:
		return a
	default:
		c.left.Store(true)
		return answer{err: fmt.Errorf("outcome unknown: %w", ctx.Err())}
	}
}

// land is the request reaching the store.
func (w *world) land(c *call) {
	f := c.fate
	switch f.Before {
	case upsetDelete:
		w.deleteLease()
	case upsetRestart:
		w.restartStore()
	case upsetRival:
		w.rivalAcquires()
	}
	w.handle(c)
	w.judgeShared(c)
	switch {
	case f.Hang:
		w.tell("store", c.answer.words, "")
		return
	case f.Request+f.Answer > 0 || f.Lost != "":
		w.tell("store", c.answer.words, "")
	default:
		w.tell(w.slots[c.proc.slot].name, c.asks()+": "+c.answer.words, fmt.Sprint(c.proc.slot, c.op, c.token, c.answer.err))
	}
	w.after(f.Answer, func() { w.deliver(c) })
}

// landCopy is the network delivering a request twice. Nobody waits for the
// second answer.
func (w *world) landCopy(c *call) {
	again := &call{proc: c.proc, op: c.op, holder: c.holder, token: c.token, ttl: c.ttl, fate: c.fate}
	w.handle(again)
	w.tell("store", "the copy lands: "+again.answer.words, "")
}

// handle lets the store answer.
func (w *world) handle(c *call) {
	switch c.op {
	case lease.OpFence:
		w.mu.Lock()
		err := w.admit(c.token)
		w.mu.Unlock()
		c.answer = answer{err: err, words: "fenced"}
		if err != nil {
			c.answer.words = err.Error()
		}
		return
	case lease.OpNone:
		return
	}
	req := lease.Request{Op: c.op, Holder: c.holder, Token: c.token, TTL: c.ttl}
	if c.fate.Percent > 0 {
		req.TTL = c.ttl / 100 * time.Duration(c.fate.Percent)
	}
	before := w.rec.Token
	var rep lease.Reply
	w.rec, rep = w.rec.Handle(w.storeNow(), w.delay, req)
	c.answer.err = rep.Err(resource)
	switch rep.Code {
	case lease.CodeGranted:
		if rep.Token != before {
			w.tenures[rep.Token] = &tenure{token: rep.Token, holder: c.holder, proc: c.proc}
		}
		t := w.tenures[rep.Token]
		t.expires = w.rec.Expires
		w.look(w.when(t.expires))
		w.look(c.sent + w.o.Config.Window(rep.TTL))
		c.answer.grant = lease.Grant{Resource: resource, Holder: c.holder, Token: rep.Token, TTL: rep.TTL}
		c.answer.words = fmt.Sprintf("granted token %d until %v", rep.Token, w.when(t.expires))
		if rep.TTL != c.ttl {
			c.answer.words = fmt.Sprintf("granted token %d for no more than %v", rep.Token, rep.TTL)
		}
	case lease.CodeReleased:
		c.answer.words = "released"
		w.released(c)
	case lease.CodeHeld, lease.CodeDelayed, lease.CodeFree:
		c.answer.seen = lease.Observation{Resource: resource, Holder: rep.Current, Token: rep.Token, Remaining: rep.Remaining}
		c.answer.words = "refused: " + w.whose(rep.Current) + " holds it"
		if rep.Code != lease.CodeHeld {
			c.answer.words = "refused: the lock delay runs"
		}
		if c.op == lease.OpGet {
			c.answer.words = "answered"
		} else if t := w.latest(c.holder); t != nil {
			c.told = t.token // what this holder had, somebody else has now
		}
	case lease.CodeLapsed, lease.CodeLost:
		c.told = c.token
		c.answer.words = "refused: it holds the lease no more"
		if rep.Code == lease.CodeLapsed {
			c.answer.words = "refused: its tenure has lapsed"
		}
	default:
		c.answer.words = "refused as invalid"
	}
}

// deliver is the answer reaching the client, or the call failing.
func (w *world) deliver(c *call) {
	f := c.fate
	i := slices.Index(w.open, c)
	if i < 0 {
		return // dropped
	}
	w.open = slices.Delete(w.open, i, i+1)
	if c.left.Load() {
		return
	}
	a := c.answer
	if f.Lost != "" {
		a = answer{err: fmt.Errorf("%v: outcome unknown: %w", c.op, cmp.Or(c.failure, errLost))}
	} else {
		w.hears(c)
		if f.Request+f.Answer > 0 {
			w.tell(w.slots[c.proc.slot].name, fmt.Sprintf("gets the answer to its request of %v: %s", c.sent, a.words), "")
		}
	}
	c.reply <- a
}

// latest is the last tenure of holder, nil if it never had one.
func (w *world) latest(holder lease.Holder) *tenure {
	var last *tenure
	for _, t := range w.tenures {
		if t.holder == holder && (last == nil || t.token > last.token) {
			last = t
		}
	}
	return last
}

// whose says who a holder is in the words of the story.
func (w *world) whose(h lease.Holder) string {
	if p := w.owners[h]; p != nil {
		return w.slots[p.slot].name
	}
	if h.Node == rivalNode {
		return "the rival"
	}
	return "nobody"
}

// What happens to the store beside its calls.

func (w *world) deleteLease() {
	w.rec = w.rec.Delete()
	w.tell("operator", "deletes the lease", "")
}

func (w *world) restartStore() {
	w.rec = lease.Restore(w.rec.Durable, w.storeNow())
	if t := w.tenures[w.rec.Token]; t != nil && w.rec.Status == lease.Running {
		t.expires = w.rec.Expires
		w.look(w.when(t.expires))
	}
	w.tell("store", "restarts", "")
}

// jumpStore lets the store's clock jump ahead, far beyond any bound: whoever
// holds the lease cannot know until it is told.
func (w *world) jumpStore(d time.Duration) {
	if t := w.tenures[w.rec.Token]; t != nil {
		t.expires += d
	}
	w.skipped += d
	w.tell("store", fmt.Sprintf("its clock jumps ahead by %v", d), "")
}

func (w *world) rivalAcquires() {
	seq := uint64(1)
	for _, t := range w.tenures {
		if t.holder.Node == rivalNode {
			seq++
		}
	}
	c := &call{op: lease.OpAcquire, holder: lease.Holder{Node: rivalNode, Seq: seq, Nonce: 1}, ttl: w.o.Config.TTL}
	w.handle(c)
	w.tell("rival", "asks to acquire: "+c.answer.words, "")
}

func (w *world) rivalRenews() {
	if t := w.tenures[w.rec.Token]; t != nil && t.holder.Node == rivalNode {
		c := &call{op: lease.OpRenew, holder: t.holder, token: t.token, ttl: w.o.Config.TTL}
		w.handle(c)
		w.tell("rival", "renews: "+c.answer.words, "rival renews")
	}
}

func (w *world) rivalReleases() {
	if t := w.tenures[w.rec.Token]; t != nil && t.holder.Node == rivalNode {
		c := &call{op: lease.OpRelease, holder: t.holder, token: t.token}
		w.handle(c)
		w.tell("rival", "releases the lease", "")
	}
}
