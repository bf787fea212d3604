package lease

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"fencepost/impl/clock"
)

// maxCalls bounds the unanswered calls to one target. By default a term has time
// for seven attempts to renew; so a target meets the bound by ignoring the end
// of contexts, or where retries are frequent.
const maxCalls = 8

const never = time.Duration(math.MaxInt64)

// loop is one Run: it owns the client and all calls in flight. It acts first, and
// tells the Logger and the Observer of it after, since those may take their time.
// What follows done belongs to its goroutine alone.
type loop struct {
	e      *Elector
	ctx    context.Context
	warden *warden
	poke   chan struct{} // a term was ended by somebody else
	begin  chan *job     // a term began: Run's goroutine does the work
	end    chan error    // the work has ended
	done   chan struct{} // the loop has
	err    error         // what Run returns, once done is closed

	client   Client
	timer    clock.Timer
	store    target
	storages []target
	results  chan result // has room for every call that there can be: sending never blocks
	job      *job        // the work that goes on
	hints    *hints
	pace     pace
	poll     time.Duration // the next attempt is made at this instant, before it is due
	rng      *rand.Rand
	untold   []func()
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
		e: e, ctx: ctx, client: client, warden: newWarden(e.clk, e.term.Store),
		poke: make(chan struct{}, 1), begin: make(chan *job, 1), end: make(chan error, 1), done: make(chan struct{}),
		store:    target{name: "store"},
		storages: make([]target, len(e.opts.Fencers)),
		results:  make(chan result, maxCalls*(1+len(e.opts.Fencers))),
		pace:     pace{interval: e.cfg.Retry()},
		poll:     never,
		rng:      rand.New(rand.NewPCG(e.opts.Nonce, e.holder.Seq)),
	}
	for i, f := range e.opts.Fencers {
		l.storages[i] = target{name: fmt.Sprintf("storage %d", i), fencer: f}
	}
	return l, nil
}

func (l *loop) run() {
	defer close(l.done)
	l.warden.start()
	defer l.warden.close()
	l.timer = l.e.clk.Timer(l.e.clk.Now())
	defer l.timer.Stop()
	watching, unwatch := context.WithCancel(l.ctx)
	defer unwatch()
	l.hints = watch(watching, l.e.clk, l.e.store, l.e.opts.Resource, l.e.cfg.Retry(), l.e.log)
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
		l.hasten(now)
		l.settle(now, ErrLapsed)
		l.tell()
		l.sleep(l.wake())
		select {
		case <-l.timer.C():
			l.awake()
			l.cancelDue(l.e.clk.Now())
		case r := <-l.results:
			l.awake()
			l.receive(r)
		case err := <-l.end:
			l.awake()
			l.workEnded(err)
		case <-l.hints.c:
			l.awake()
			l.pace.waiting = true
		case <-l.poke:
			l.awake()
		case <-ended:
			l.awake()
			ended = nil // the work sees it too, and is waited for
		}
	}
	unwatch()
	l.shutdown()
	// What this incarnation sent may still land; the next Run is another.
	l.e.holder = l.client.State().Holder.Next()
}

// sleep is what the loop does before it waits, awake what it does after.
func (l *loop) sleep(until time.Duration) {
	l.timer.Reset(until)
	l.warden.beat(false, until)
}

func (l *loop) awake() { l.warden.beat(true, l.e.clk.Now()) }

func (l *loop) wake() time.Duration {
	at := min(l.client.Wake(), l.nextCancel(), l.poll)
	if l.mayFollow() {
		at = min(at, l.pace.next(l.mostHints()))
	}
	if j := l.job; j != nil && j.told && l.client.State().Phase == Leading {
		at = min(at, l.drained(j))
	}
	return at
}

// log and observe put off what is to be told until all is done that is due.
func (l *loop) log(level slog.Level, msg string, args ...any) {
	l.untold = append(l.untold, func() { l.e.log.Log(l.ctx, level, msg, args...) })
}

func (l *loop) observe(e Event) {
	if o := l.e.opts.Observer; o != nil {
		e.Resource = l.e.opts.Resource
		l.untold = append(l.untold, func() { o.Observe(e) })
	}
}

func (l *loop) tell() {
	for _, f := range l.untold {
		f()
	}
	l.untold = l.untold[:0]
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
	now, before := l.e.clk.Now(), l.client.State()
	why := ErrRefused
	if rep.Op == OpFence {
		why = ErrBarrier
	}
	if r.err != nil {
		why = fmt.Errorf("%w: %w", why, r.err)
	}
	l.send(l.client.Receive(now, rep))
	l.note(now, before, rep, why)
	l.settle(now, why)
	l.drawPoll(rep)
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

// examine says what keeps everybody from leading under g, the answer to req.
func (c Config) examine(resource string, req Request, g Grant) error {
	given := g.Resource
	bad := func(format string, args ...any) error {
		g.Resource = resource // who was asked for, for the message
		return &GrantError{Grant: g, Reason: fmt.Sprintf(format, args...)}
	}
	switch window := c.Window(g.TTL); {
	case given != resource:
		return bad("it is for lease %q; let the store answer each request with its own grant", given)
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
