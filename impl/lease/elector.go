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
	// ErrRefused: the store refused a renewal, or a storage the token. The
	// cause also matches the refusal, such as a *[LostError].
	ErrRefused = errors.New("term refused: the lease is not held any more")
	// ErrResigned: the work returned.
	ErrResigned = errors.New("term resigned: the work returned")
)

// ErrRunning refuses a second Run of one [Elector] beside the first: they would
// campaign under one identity.
var ErrRunning = errors.New("elector is already running; make another one")

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
	// Logger is told of terms and of calls that failed. Default: nobody.
	Logger *slog.Logger
	// Observer is told of every event, for metrics. Default: nobody.
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
	if t := e.term.Load(); t != nil {
		return *t
	}
	return Term{}
}

// IsLeader reports whether this candidate may act as leader at this instant. It
// makes no call.
func (e *Elector) IsLeader() bool { return e.Term().Valid() }

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
//   - ctx ends: so does lead's context, but the lease is renewed and the term
//     valid until lead has returned, so that it can stop in order.
//   - the store finds the acquire invalid (*[InvalidError]), or grants what
//     nobody can lead under (*[GrantError]; it is released), which no retry would
//     change: Run returns that.
//
// When Run returns, its goroutines have ended, except for calls that ignored
// the end of their context, which the Logger is told; see
// [ElectorConfig.ReleaseTimeout]. Run may be called again after it returned;
// during, the error is [ErrRunning].
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, term Term) error) error {
	if !e.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer e.running.Store(false)
	l, err := newLoop(ctx, e)
	if err != nil {
		return err
	}
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
