package lease

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/impl/clock"
)

// GroupConfig says who campaigns for many leases, and what is done with those
// that are held.
type GroupConfig struct {
	// Node, Timing, Clock and Nonce are as for an [Elector].
	Node   string
	Timing Config
	Clock  clock.Clock
	Nonce  uint64
	// Lead is told that a term has begun. It must return at once: it starts what
	// is to be done, or notes that it may be done, and goes. It is called on the
	// goroutine of Run, for one term at a time: while it blocks, leases are
	// renewed and terms end as ever, but nobody is told of new ones.
	//
	// ctx ends with the term, and its [context.Cause] says why; it may have ended
	// already. done must be called, from anywhere, once what is done under the
	// term has stopped: before that the lease is neither released nor campaigned
	// for, and after that it is released. Where done comes first, of its own
	// accord, others go first and the group campaigns again. Calls of done after
	// the first do nothing. Required.
	//
	// A Lead that panics, or exits its goroutine, counts as done, so that it must
	// stop what it has started on the way out. It ends all the other terms, too:
	// once they are released in order, Run panics as Lead did.
	Lead func(ctx context.Context, term Term, done func())
	// Fencers gives the storages that are written to under the lease of resource,
	// as [ElectorConfig.Fencers]; it is asked once, by Add. nil, and none: no
	// barrier.
	Fencers func(resource string) []Fencer
	// MaxHeld bounds how many leases are held at once: the group does not campaign
	// for more while it holds, or may be granted, as many. 0: no bound. A lease
	// granted by an answer that was lost may lapse beside those.
	MaxHeld int
	// MaxCalls bounds the calls to the store in flight at once, and for the
	// barrier those to storages. Acquires take half of it at most, so that
	// renewals find room. Default 16.
	MaxCalls int
	// MaxBatch bounds the requests in one call to a [Batcher]. Default 500.
	MaxBatch int
	// Poll passes between two looks at a lease that others hold, but where it may
	// lapse before: then the next look is at that instant. So a crash is noticed
	// as soon as by an [Elector], and a release within Poll. Default
	// [Config.RenewAfter], and not less than [Config.Retry].
	Poll time.Duration
	// Drain is as for an [Elector]: how long after the end of a term, where that was
	// by Remove or the end of Run's context, the lease is still renewed for work
	// that is not done. Default 0: it is kept for what is left of the window.
	Drain time.Duration
	// ReleaseTimeout is as for an [Elector]: how long the last calls are waited
	// for, once all work has stopped.
	ReleaseTimeout time.Duration
	// Logger and Observer are told what those of an [Elector] are, but on the
	// goroutine that calls Lead. Where they are slower than events come for long,
	// events are dropped, and the Logger is told how many.
	Logger   *slog.Logger
	Observer Observer
}

// Group campaigns for any number of leases, and holds those that it is granted:
// what an [Elector] does for one resource, for thousands, with one goroutine and
// one timer for all of them. It drives one [Client] each, and keeps no rule.
//
// Renewals are spread over time, each resource at an instant of its own in the
// period of renewals, and those of one instant go in one call where the store
// is a [Batcher]. That a call hangs keeps neither a term from ending on time nor
// other calls from being made: see [GroupConfig.MaxCalls].
//
// It polls: a [Watcher] is not asked, since to watch thousands of leases would cost
// more than the looks that [GroupConfig.Poll] spreads.
//
// It does not share leases out fairly among groups. Whoever does (a rebalancer)
// tells it by Add and Remove what to campaign for; without one, MaxHeld keeps a
// group that comes first from taking all there is.
//
// A Group is safe for concurrent use.
type Group struct {
	store    Store
	batcher  Batcher // nil: one call each
	clk      clock.Clock
	cfg      Config
	opts     GroupConfig
	held     atomic.Int64
	inbox    chan struct{} // has room for one: something is in notes
	maxBatch int

	mu      sync.RWMutex
	running bool
	members map[string]*member
	added   uint64 // members so far
	// first is the incarnation with which a member begins: above all that a
	// member which is gone may have used for the same resource.
	first uint64
	notes []note
}

// note tells the goroutine of a group that m was added or is to leave, or that
// work has stopped.
type note struct {
	m    *member
	work *stint // nil: look at m
}

// NewGroup is a group of candidates at store, without resources yet. The error
// is a *[ConfigError], or matches [ErrHolder].
func NewGroup(store Store, opts GroupConfig) (*Group, error) {
	bad := func(field, reason string) (*Group, error) {
		return nil, &ConfigError{Field: field, Reason: reason}
	}
	cfg := opts.Timing
	switch {
	case store == nil:
		return bad("store", "must be set")
	case opts.Lead == nil:
		return bad("Lead", "must be set")
	case cfg.Barrier && opts.Fencers == nil:
		return bad("Barrier", "needs Fencers to acknowledge it; add the storages, or switch it off")
	}
	for _, n := range []struct {
		field string
		n     int64
	}{{"MaxHeld", int64(opts.MaxHeld)}, {"MaxCalls", int64(opts.MaxCalls)}, {"MaxBatch", int64(opts.MaxBatch)}} {
		if n.n < 0 {
			return bad(n.field, fmt.Sprintf("%d is negative", n.n))
		}
	}
	for _, d := range []struct {
		field string
		d     time.Duration
	}{{"Poll", opts.Poll}, {"Drain", opts.Drain}, {"ReleaseTimeout", opts.ReleaseTimeout}} {
		if d.d < 0 || d.d > maxDuration {
			return bad(d.field, fmt.Sprintf("%v is not between 0 and %v", d.d, maxDuration))
		}
	}
	if opts.Nonce == 0 {
		opts.Nonce = randomNonce()
	}
	if _, err := NewClient(cfg, Holder{Node: opts.Node, Seq: 1, Nonce: opts.Nonce}, 0); err != nil {
		return nil, err
	}
	if opts.Clock == nil {
		opts.Clock = clock.Boot()
	}
	opts.MaxCalls = cmp.Or(opts.MaxCalls, 16)
	opts.MaxBatch = cmp.Or(opts.MaxBatch, 500)
	opts.Poll = max(cmp.Or(opts.Poll, cfg.RenewAfter()), cfg.Retry())
	opts.ReleaseTimeout = cmp.Or(opts.ReleaseTimeout, cfg.RenewAfter())
	g := &Group{store: store, clk: opts.Clock, cfg: cfg, opts: opts, inbox: make(chan struct{}, 1), maxBatch: 1, members: map[string]*member{}, first: 1}
	if b, ok := store.(Batcher); ok {
		g.batcher, g.maxBatch = b, opts.MaxBatch
	}
	return g, nil
}

// Add lets the group campaign for resource, from now on or, before Run, from
// then on. It changes nothing where it does already. While a Remove is under way
// the group campaigns again after it. The error is a *[ConfigError].
func (g *Group) Add(resource string) error {
	bad := func(field, reason string) error { return &ConfigError{Field: field, Reason: reason} }
	if resource == "" {
		return bad("resource", "must be set")
	}
	var fencers []Fencer
	if g.opts.Fencers != nil {
		if fencers = g.opts.Fencers(resource); slices.Contains(fencers, nil) {
			return bad("Fencers", fmt.Sprintf("contains nil for %q", resource))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.members[resource]
	if m == nil {
		g.added++
		m = &member{
			resource: resource, number: g.added, place: placeOf(resource, g.opts.Nonce), index: -1,
			storages: make([]storage, len(fencers)), left: make(chan struct{}),
		}
		for i, f := range fencers {
			m.storages[i].fencer = f
		}
		g.members[resource] = m
	}
	m.wanted = true
	g.tell(note{m: m})
	return nil
}

// Remove lets the group campaign for resource no more. A term under way ends,
// with a cause that matches [ErrResigned]; the lease is kept for its work, as
// [GroupConfig.Drain] has it, and released once that is done. The channel is closed when nothing is left of it,
// released or not: at once if the group is not running, or does not know
// resource.
func (g *Group) Remove(resource string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.members[resource]
	switch {
	case m == nil:
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	left := m.left
	m.wanted, m.asked = false, true
	if g.running {
		g.tell(note{m: m})
	} else {
		g.leave(m)
	}
	return left
}

// leave ends what Remove began: m is forgotten, unless it was added again
// meanwhile. It is called with g locked.
func (g *Group) leave(m *member) (gone bool) {
	close(m.left)
	m.left, m.asked, m.err = make(chan struct{}), false, nil
	if !m.wanted {
		delete(g.members, m.resource)
		g.first = max(g.first, m.used+1)
	}
	return !m.wanted
}

// tell is called with g locked.
func (g *Group) tell(n note) {
	if !g.running {
		return // Run begins with what there is then
	}
	g.notes = append(g.notes, n)
	select {
	case g.inbox <- struct{}{}:
	default:
	}
}

// heard is what was told since it was last asked.
func (g *Group) heard() []note {
	g.mu.Lock()
	defer g.mu.Unlock()
	notes := g.notes
	g.notes = nil
	return notes
}

// Term returns the current term of resource, the zero Term if there is none. It
// makes no call.
func (g *Group) Term(resource string) Term {
	g.mu.RLock()
	m := g.members[resource]
	g.mu.RUnlock()
	if m != nil {
		if t := m.term.Load(); t != nil && !t.belief.cut() {
			return *t
		}
	}
	return Term{}
}

// Err says why the group campaigns for resource no more although nobody removed
// it: an *[InvalidError] or a *[GrantError], which no retry would change. nil
// while it does. Remove it and add it again to try once more.
func (g *Group) Err(resource string) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if m := g.members[resource]; m != nil {
		return m.err
	}
	return nil
}

// Len is how many resources there are in the group.
func (g *Group) Len() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.members)
}

// Held is how many terms run.
func (g *Group) Held() int { return int(g.held.Load()) }
