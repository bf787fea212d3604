package lease

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"fencepost/impl/clock"
)

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
