package lease

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"fencepost/impl/clock"
)

// maxCalls bounds the unanswered calls to one target. By default a term has time
// for seven attempts to renew; so a target meets the bound by ignoring the end
// of contexts, or where retries are frequent.
const maxCalls = 8

const never = time.Duration(math.MaxInt64)

// loop is one Run: it owns the client, the timer, the belief and all calls in
// flight. What follows done belongs to its goroutine alone.
type loop struct {
	e     *Elector
	ctx   context.Context
	begin chan job      // a term began: Run's goroutine does the work
	end   chan error    // the work has ended
	done  chan struct{} // the loop has
	err   error         // what Run returns, once done is closed

	client   Client
	timer    clock.Timer
	store    target
	storages []target
	results  chan result // has room for every call that there can be: sending never blocks
	job      *job        // the work that goes on
}

// job is the work of one term. It may outlast the term.
type job struct {
	Term
	ctx    context.Context
	cancel context.CancelCauseFunc
	over   bool // the term has ended
}

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

func newLoop(ctx context.Context, e *Elector) (*loop, error) {
	client, err := NewClient(e.cfg, e.holder, e.clk.Now())
	if err != nil {
		return nil, err
	}
	l := &loop{
		e: e, ctx: ctx, client: client,
		begin: make(chan job, 1), end: make(chan error, 1), done: make(chan struct{}),
		store:    target{name: "store"},
		storages: make([]target, len(e.opts.Fencers)),
		results:  make(chan result, maxCalls*(1+len(e.opts.Fencers))),
	}
	for i, f := range e.opts.Fencers {
		l.storages[i] = target{name: fmt.Sprintf("storage %d", i), fencer: f}
	}
	return l, nil
}

// errExited stands for work that panicked or ended its goroutine. Nobody sees
// it, since Run does not return then.
var errExited = errors.New("work exited")

// work is called by Run, on the caller's goroutine: a panic of lead reaches the
// caller as it is, with its stack.
func (l *loop) work(j job, lead func(context.Context, Term) error) {
	err := errExited
	defer func() { l.end <- err }()
	err = lead(j.ctx, j.Term)
}

func (l *loop) run() {
	defer close(l.done)
	l.timer = l.e.clk.Timer(l.e.clk.Now())
	defer l.timer.Stop()
	ended := l.ctx.Done()
	for {
		if l.err == nil && l.job == nil && l.ctx.Err() != nil {
			l.err = context.Cause(l.ctx)
		}
		if l.err != nil {
			break
		}
		now := l.e.clk.Now()
		l.send(l.client.Tick(now))
		l.settle(now, ErrLapsed)
		l.timer.Reset(min(l.client.Wake(), l.nextCancel()))
		select {
		case <-l.timer.C():
			l.cancelDue(l.e.clk.Now())
		case r := <-l.results:
			l.receive(r)
		case err := <-l.end:
			l.workEnded(err)
		case <-ended:
			ended = nil // the work sees it too, and is waited for
		}
	}
	l.shutdown()
	// What this incarnation sent may still land; the next Run is another.
	l.e.holder = l.client.State().Holder.Next()
}

// settle brings the world in line with the client after each of its steps. why
// is what ended the term, if that step did and its deadline had not passed.
func (l *loop) settle(now time.Duration, why error) {
	s := l.client.State()
	switch j := l.job; {
	case j == nil:
		if s.Phase == Leading && l.ctx.Err() == nil && l.client.BeginWork(now) {
			l.beginTerm(s)
		}
	case j.over:
	case j.Holder == s.Holder:
		j.belief.set(s.Deadline)
	default:
		l.endTerm(now, why)
	}
	for t := range l.targets() {
		for _, c := range t.calls {
			if c.req.Holder != s.Holder && c.req.Op != OpRelease {
				c.giveUp()
			}
		}
	}
}

func (l *loop) beginTerm(s ClientState) {
	t := Term{Resource: l.e.opts.Resource, Holder: s.Holder, Token: s.Token, belief: &belief{clk: l.e.clk}}
	t.belief.set(s.Deadline)
	j := job{Term: t}
	j.ctx, j.cancel = context.WithCancelCause(l.ctx)
	l.job = &j
	l.e.term.Store(&t)
	l.e.log.InfoContext(l.ctx, "term begins", "holder", s.Holder.String(), "token", s.Token)
	l.begin <- j
}

func (l *loop) endTerm(now time.Duration, why error) {
	j := l.job
	if now >= j.Deadline() {
		why = ErrLapsed
	}
	j.over = true
	j.belief.set(min(now, j.Deadline())) // before the context: who sees that ended sees this
	j.cancel(fmt.Errorf("lease %q, token %d: %w", j.Resource, j.Token, why))
	l.e.term.Store(nil)
	l.e.log.InfoContext(l.ctx, "term ends", "holder", j.Holder.String(), "token", j.Token, "cause", why)
}

func (l *loop) workEnded(err error) {
	j, now := l.job, l.e.clk.Now()
	if err != nil && !j.toldOfEnd(err) {
		l.err = err
	}
	l.send(l.client.EndWork(now))
	l.send(l.client.Resign(now))
	l.settle(now, ErrResigned)
	l.job = nil
}

// toldOfEnd reports whether err says no more than that the term is over.
func (j *job) toldOfEnd(err error) bool {
	if errors.Is(err, ErrLapsed) || errors.Is(err, ErrRefused) {
		return true
	}
	return j.ctx.Err() != nil && (errors.Is(err, j.ctx.Err()) || errors.Is(err, context.Cause(j.ctx)))
}

func (l *loop) receive(r result) {
	rep, known := l.take(r)
	if l.campaigns(rep) && (rep.Code == CodeInvalid || is[*GrantError](r.err)) {
		l.err = r.err
		return
	}
	if !known {
		return
	}
	now := l.e.clk.Now()
	why := ErrRefused
	if r.err != nil {
		why = fmt.Errorf("%w: %w", ErrRefused, r.err)
	}
	l.send(l.client.Receive(now, rep))
	l.settle(now, why)
}

// campaigns reports whether rep answers an acquire of the incarnation that still
// campaigns: nothing was done yet under what it was granted.
func (l *loop) campaigns(rep Reply) bool {
	s := l.client.State()
	return rep.Op == OpAcquire && rep.Holder == s.Holder && s.Phase == Campaigning
}

// take books the end of a call, and gives the reply that a client can use. A
// grant of no use is released, since the client is not told of it.
func (l *loop) take(r result) (rep Reply, known bool) {
	r.call.cancel()
	r.to.calls = slices.DeleteFunc(r.to.calls, func(c *call) bool { return c == r.call })
	rep, known = answer(r.call.req, r.grant, r.err)
	switch {
	case !known && r.call.cancelled:
		l.e.log.DebugContext(l.ctx, "call cancelled", "op", rep.Op, "to", r.to.name, "err", r.err)
	case !known:
		l.e.log.WarnContext(l.ctx, "call failed", "op", rep.Op, "to", r.to.name, "err", r.err)
	case r.err != nil:
		l.e.log.DebugContext(l.ctx, "call refused", "op", rep.Op, "to", r.to.name, "err", r.err)
	}
	if token := r.grant.Token; token != 0 && l.campaigns(rep) && is[*GrantError](r.err) {
		l.call(&l.store, Request{Op: OpRelease, Holder: rep.Holder, Token: token, Sent: l.e.clk.Now()})
	}
	if rep.Code == CodeFenced {
		r.to.acked = max(r.to.acked, rep.Asked)
		known = !slices.ContainsFunc(l.storages, func(t target) bool { return t.acked != rep.Asked })
	}
	return rep, known
}

// answer is the reply to req that a Store or a Fencer gave as a grant and an
// error. known is false where the outcome is not.
func answer(req Request, g Grant, err error) (rep Reply, known bool) {
	code := codeOf(req.Op, err)
	rep = req.To(code)
	if code == CodeGranted {
		rep.Token, rep.TTL, rep.Current = g.Token, g.TTL, g.Holder
	}
	return rep, code != CodeNone
}

func codeOf(op Op, err error) Code {
	switch {
	case err == nil && op == OpRelease:
		return CodeReleased
	case err == nil && op == OpFence:
		return CodeFenced
	case err == nil:
		return CodeGranted
	case op == OpFence && errors.Is(err, ErrStale):
		return CodeStale
	case op == OpFence:
		return CodeNone
	}
	return Refusal(err)
}

func (l *loop) send(out Requests) {
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
		l.e.log.WarnContext(l.ctx, "call not made: too many are unanswered", "op", req.Op, "to", t.name, "calls", maxCalls)
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

// examine says what keeps everybody from leading under g, the answer to req.
func (c Config) examine(resource string, req Request, g Grant) error {
	bad := func(format string, args ...any) error {
		g.Resource = resource // for the message; whatever the store put there
		return &GrantError{Grant: g, Reason: fmt.Sprintf(format, args...)}
	}
	switch window := c.Window(g.TTL); {
	case g.Holder != req.Holder:
		return bad("it was asked for by %q; let the store echo that", req.Holder)
	case g.Token == 0:
		return bad("tokens count from 1; let the store give the one it issued")
	case window <= 0:
		return bad("it leaves no time to act: window = ttl - ttl*maxDriftRate - safetyMargin = %v - %v*%v - %v = %v; let the store echo the TTL of %v, or lower SafetyMargin",
			g.TTL, g.TTL, c.MaxDriftRate, c.SafetyMargin, window, req.TTL)
	}
	return nil
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
				l.e.log.WarnContext(l.ctx, "call unanswered", "op", c.req.Op, "to", t.name, "for", now-c.req.Sent)
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

// shutdown leaves nothing behind, if it can: what is held is released, also
// what an acquire under way is granted yet, and all calls have ended. It takes
// one release timeout until the last call is cancelled, and gives those that
// ignore that another.
func (l *loop) shutdown() {
	now := l.e.clk.Now()
	cut := add(now, l.e.opts.ReleaseTimeout)
	leave := add(cut, l.e.opts.ReleaseTimeout)
	l.send(l.client.Resign(now))
	for {
		left := 0
		for t := range l.targets() {
			left += len(t.calls)
			for _, c := range t.calls {
				c.until = min(c.until, cut)
				if c.req.Op != OpAcquire && c.req.Op != OpRelease {
					c.giveUp()
				}
			}
		}
		if left == 0 {
			return
		}
		l.timer.Reset(min(leave, l.nextCancel()))
		select {
		case <-l.timer.C():
			now := l.e.clk.Now()
			l.cancelDue(now)
			if now >= leave {
				l.e.log.WarnContext(l.ctx, "calls left behind: they ignore the end of their context", "calls", left)
				return
			}
		case r := <-l.results:
			if rep, known := l.take(r); known && rep.Op == OpAcquire {
				now := l.e.clk.Now()
				l.client.Receive(now, rep)
				l.send(l.client.Resign(now))
			}
		}
	}
}
