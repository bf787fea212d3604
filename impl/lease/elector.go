package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"fencepost/impl/clock"
)

// Why a term ended: the [context.Cause] of the context that the work was given
// matches one of these, or is that of Run's own context.
var (
	// ErrLapsed: the deadline passed before any renewal was confirmed.
	ErrLapsed = errors.New("term lapsed: no renewal was confirmed in time")
	// ErrRefused: the store refused a renewal. The cause also matches the
	// refusal, such as a *[LostError].
	ErrRefused = errors.New("term refused: the lease is not held any more")
	// ErrResigned: the work returned, or [Elector.Resign] was called.
	ErrResigned = errors.New("term resigned: the work returned, or was asked to hand over")
	// ErrBarrier: a storage refused the token after the term had begun. Most of
	// the time it does so before, and no term begins; the Logger is told then.
	ErrBarrier = errors.New("term refused by a storage: it has seen a higher token")
)

// ErrRunning refuses a second Run of one [Elector] or [Group] beside the first.
var ErrRunning = errors.New("already running, and two at once would campaign under one identity; make another")

// ElectorConfig says who campaigns for what, and for how long a grant lets it
// lead.
type ElectorConfig struct {
	// Resource is what is leased. Required.
	Resource string
	// Node is this candidate's name in the [Holder], for people to read; not
	// empty, and free of '#'.
	Node string
	// Timing is the same for every candidate and their store. Its TTL is
	// required.
	Timing Config
	// Clock need not agree with the store's in anything but its rate. Default
	// [clock.Boot]; [clock.Monotonic] is cheaper to read, and unsafe on machines
	// that are suspended.
	Clock clock.Clock
	// Nonce tells this process from all others of the same name. Drawn from
	// crypto/rand if zero, as it should be outside of tests.
	Nonce uint64
	// Fencers are the storages that the leader writes to. All of them must
	// acknowledge the token before a term begins. They imply [Config.Barrier],
	// and are required by it.
	Fencers []Fencer
	// ReleaseTimeout, by the elector's clock, is how long Run waits for its
	// last calls before it cancels them, and then once more before it leaves
	// those behind that ignore their context. Default [Config.RenewAfter].
	ReleaseTimeout time.Duration
	// Drain, by the elector's clock, is how long after the end of a term the
	// lease is still renewed for work that takes its time to stop, where the term
	// ended because Run's context did or by [Elector.Resign]. Default 0: it is kept
	// for what is left of the window, [Config.SafeWindow] at most. Between 0 and a
	// year.
	Drain time.Duration
	// Logger is told of terms and of calls that failed. One that blocks keeps the
	// lease from being renewed and Run from returning, but no term alive; see
	// [Elector.Health]. Default: nobody.
	Logger *slog.Logger
	// Observer is told of every event, for metrics. What was said of the Logger
	// goes for it too. Default: nobody.
	Observer Observer
}

// Elector campaigns for one lease, runs the leader's work while it is held, and
// campaigns again. It is a shell around [Client]: it keeps the calls and the
// timer, and no rule.
//
// A limit: where its requests reach the store but no answer comes back, each
// retry extends a lease that the candidate does not know it has. It never leads
// then, and keeps the others out for as long. It cannot tell that from a store
// that is down, after which standing back for a TTL would delay the first term
// by as much. The Logger is told of each call without an answer: stop such a
// candidate.
//
// An Elector is safe for concurrent use.
type Elector struct {
	store   Store
	clk     clock.Clock
	cfg     Config
	opts    ElectorConfig
	log     *slog.Logger
	holder  Holder // the next incarnation; owned by whoever made running true
	running atomic.Bool
	term    atomic.Pointer[Term]
	loop    atomic.Pointer[loop] // of the Run that goes on
}

// NewElector is a candidate for opts.Resource at store. The error is a
// *[ConfigError], or matches [ErrHolder].
func NewElector(store Store, opts ElectorConfig) (*Elector, error) {
	cfg, clk := opts.Timing, opts.Clock
	bad := func(field, reason string) (*Elector, error) {
		return nil, &ConfigError{Field: field, Reason: reason}
	}
	switch {
	case store == nil:
		return bad("store", "must be set")
	case opts.Resource == "":
		return bad("Resource", "must be set")
	case slices.Contains(opts.Fencers, nil):
		return bad("Fencers", "contains nil")
	case cfg.Barrier && len(opts.Fencers) == 0:
		return bad("Barrier", "needs Fencers to acknowledge it; add the storages, or switch it off")
	case opts.ReleaseTimeout < 0:
		return bad("ReleaseTimeout", fmt.Sprintf("%v is negative", opts.ReleaseTimeout))
	case opts.Drain < 0 || opts.Drain > maxDuration:
		return bad("Drain", fmt.Sprintf("%v is not between 0 and %v", opts.Drain, maxDuration))
	}
	if clk == nil {
		clk = clock.Boot()
	}
	opts.Fencers = slices.Clone(opts.Fencers)
	cfg.Barrier = len(opts.Fencers) > 0
	if opts.Nonce == 0 {
		opts.Nonce = randomNonce()
	}
	holder := Holder{Node: opts.Node, Seq: 1, Nonce: opts.Nonce}
	if _, err := NewClient(cfg, holder, 0); err != nil {
		return nil, err
	}
	opts.ReleaseTimeout = cmp.Or(opts.ReleaseTimeout, cfg.RenewAfter(), 1)
	log := cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)).With("resource", opts.Resource, "node", opts.Node)
	return &Elector{store: store, clk: clk, cfg: cfg, opts: opts, log: log, holder: holder}, nil
}

func randomNonce() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// Term returns the current term, the zero Term if there is none. It makes no
// call.
func (e *Elector) Term() Term {
	if t := e.term.Load(); t != nil && !t.belief.cut() {
		return *t
	}
	return Term{}
}

// IsLeader reports whether this candidate may act as leader at this instant. It
// makes no call.
func (e *Elector) IsLeader() bool { return e.Term().Valid() }

// Resign hands over: it ends the current term at once, with [ErrResigned] as the
// cause. Once lead has returned the lease is released, the others go first, and Run
// campaigns again. It does not wait for any of that. Without a term it does nothing.
func (e *Elector) Resign() {
	l := e.loop.Load()
	if l == nil {
		return
	}
	l.warden.end(e.clk.Now(), ErrResigned)
	select {
	case l.poke <- struct{}{}:
	default: // it is on its way to look
	}
}

// Run campaigns until ctx ends, and calls lead, on the caller's goroutine, for
// each term. It returns context.Cause(ctx) once ctx has ended, or else what
// lead returned, if that was an error.
//
// The context of lead ends as soon as the term does, whatever the store is
// doing, and its [context.Cause] says why; after a pause it may have ended before
// lead begins. Work that may not overlap with a
// successor's must have stopped by then, or must be fenced: write with
// term.Token to storage that rejects lower ones. Run neither releases nor
// campaigns before lead has returned.
//
//   - lead returns nil: the lease is released, others go first, and Run
//     campaigns again.
//   - lead returns an error: the lease is released and Run returns the error.
//     But where the term is over, an error that says no more than that (the
//     context's, its cause, [ErrLapsed], [ErrRefused]) counts as nil.
//   - lead panics or exits its goroutine: likewise, once the lease is released.
//   - ctx ends, or [Elector.Resign] is called: so does the term, at once, but the
//     lease is kept while lead stops, for [ElectorConfig.Drain] and then for what
//     is left of the window. If lead has returned by then, the lease is
//     released. If not, it lapses, and a successor may lead beside work that has
//     not stopped; Run does nothing but wait for it, and Health says so.
//   - the store finds the acquire invalid (*[InvalidError]), or grants what
//     nobody can lead under (*[GrantError]; it is released), which no retry would
//     change: Run returns that.
//
// When Run returns, its goroutines have ended, except for calls that ignored
// the end of their context, which the Logger is told; see
// [ElectorConfig.ReleaseTimeout]. Run may be called again after it returned;
// during, the error matches [ErrRunning].
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, term Term) error) error {
	if !e.running.CompareAndSwap(false, true) {
		return fmt.Errorf("lease %q: %w", e.opts.Resource, ErrRunning)
	}
	defer e.running.Store(false)
	l, err := newLoop(ctx, e)
	if err != nil {
		return err
	}
	e.loop.Store(l)
	defer e.loop.Store(nil)
	go l.run()
	// Also on the way out of a panic, for which the loop has released by then.
	defer func() { <-l.done }()
	for {
		select {
		case j := <-l.begin:
			l.work(j, lead)
		case <-l.done:
			return l.err
		}
	}
}
