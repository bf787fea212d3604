package lease

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"fencepost/impl/clock"
)

// Memory is a [Store] of any number of resources in one process. It runs
// [Record.Handle] and nothing else, one request to a resource at a time, on
// the clock that it was given.
//
// It remembers every resource it ever granted, if only by its token: a counter
// that is forgotten starts again, and fences nothing. Without a [Journal] that
// memory ends with the process.
type Memory struct {
	clk  clock.Clock
	opts MemoryOptions

	mu      sync.RWMutex // guards the map, not what is in it
	entries map[string]*entry

	watchers watchers
}

var _ Store = (*Memory)(nil)

// MemoryOptions are what a [Memory] may be told. The zero value is a store
// without lock delay that starts every resource at token 1 and forgets all
// with the process.
type MemoryOptions struct {
	// LockDelay is how long after a lapse, not after a release, a resource is
	// granted to nobody: [Config.LockDelay]. Not negative.
	LockDelay time.Duration
	// FirstToken is the first token of a resource that State does not name, 1
	// if zero. Whoever moves here from another source of tokens starts above
	// all of them.
	FirstToken Token
	// State is what the journal of the store before holds, or
	// [Memory.Durable] gave. Its tenures are restored as by [Restore]. A
	// Journal must hold it already.
	State map[string]Durable
	// Journal makes changes durable before they are answered.
	Journal Journal
}

// Journal is the stable storage behind a [Memory]. Calls for one resource come
// one at a time, those for several concurrently.
type Journal interface {
	// Save makes d the state of resource, instead of the one before, and
	// returns nil once it is durable. After an error it may or may not be. But
	// once Save has returned, it has taken effect or never will, and saves of
	// one resource take effect in the order of the calls: one that lands late
	// puts the counter back, and after a restart a token is issued twice.
	//
	// Save gets no context, because a save that is given up half-way is one
	// that may land late. While it runs, other requests for the resource wait:
	// it should not take for ever.
	Save(resource string, d Durable) error
}

// entry is one resource. The invariant: unless unsaved, the journal holds
// exactly rec.Durable.
type entry struct {
	mu      sync.Mutex
	rec     Record
	unsaved bool // the journal failed, and may hold something else than rec
}

// NewMemory is a store on clk. The error is a *[ConfigError] that names the
// option, and for State the resource, that makes no sense.
func NewMemory(clk clock.Clock, opts MemoryOptions) (*Memory, error) {
	switch {
	case clk == nil:
		return nil, &ConfigError{Field: "clock", Reason: "must be set"}
	case opts.LockDelay < 0:
		return nil, &ConfigError{Field: "LockDelay", Reason: fmt.Sprintf("%v is negative", opts.LockDelay)}
	}
	now := clk.Now()
	m := &Memory{clk: clk, opts: opts, entries: make(map[string]*entry, len(opts.State))}
	// Sorted, so that of several errors the same one is reported every time.
	for _, resource := range slices.Sorted(maps.Keys(opts.State)) {
		d := opts.State[resource]
		if reason := d.malformed(); reason != "" {
			return nil, &ConfigError{Field: fmt.Sprintf("State[%q]", resource), Reason: reason}
		}
		m.entries[resource] = &entry{rec: Restore(d, now)}
	}
	m.opts.State = nil
	return m, nil
}

// malformed says why d cannot have come from a store, or nothing.
func (d Durable) malformed() string {
	switch {
	case d.Status > Lapsed:
		return d.Status.String() + " is no status"
	case d.Status == Free:
	case d.Token == 0:
		return "a tenure without a token"
	case d.Holder.IsZero():
		return "a tenure without a holder"
	case d.TTL <= 0:
		return fmt.Sprintf("a tenure with a TTL of %v", d.TTL)
	}
	return ""
}

// Acquire grants resource to holder for ttl as [Record.Acquire] decides. The
// refusals are *[HeldError], *[DelayError] and *[InvalidError]. An error of ctx
// that had ended before means that nothing happened; what has begun goes on
// whatever becomes of ctx. An error of the journal leaves the outcome unknown.
func (m *Memory) Acquire(ctx context.Context, resource string, holder Holder, ttl time.Duration) (Grant, error) {
	return Handler(m.handle).Acquire(ctx, resource, holder, ttl)
}

// Renew extends holder's tenure under token as [Record.Renew] decides. The
// refusals are *[LapsedError] and *[LostError], which match [ErrNotHeld], and
// *[InvalidError]; other errors are as for Acquire.
func (m *Memory) Renew(ctx context.Context, resource string, holder Holder, token Token, ttl time.Duration) (Grant, error) {
	return Handler(m.handle).Renew(ctx, resource, holder, token, ttl)
}

// Release ends holder's tenure under token as [Record.Release] decides. Errors
// are as for Renew.
func (m *Memory) Release(ctx context.Context, resource string, holder Holder, token Token) error {
	return Handler(m.handle).Release(ctx, resource, holder, token)
}

// Get says who holds resource. It refuses nothing; other errors are as for
// Acquire.
func (m *Memory) Get(ctx context.Context, resource string) (Observation, error) {
	return Handler(m.handle).Get(ctx, resource)
}

// Delete takes resource from whoever holds it, without lock delay. The holder
// does not know, and may believe until its next renewal is refused: it is for
// operators, after the holder is known to have stopped. The tokens go on where
// they were. Errors are those of ctx and the journal, as for Acquire.
func (m *Memory) Delete(ctx context.Context, resource string) error {
	e := m.entry(resource, false)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lease %q: delete: nothing done: %w", resource, err)
	}
	if err := m.become(resource, e, e.rec.Delete()); err != nil {
		return fmt.Errorf("lease %q: delete: outcome unknown: %w", resource, err)
	}
	return nil
}

// View calls f once with resource as it stands, and lets nothing change it
// until f returns: for data kept beside its lease, whose writes apply only if
// the lease still carries their token. f must not call m. Where the journal may
// be ahead of what is known here, nothing can be said, and f is not called.
func (m *Memory) View(ctx context.Context, resource string, f func(Durable)) error {
	e := m.entry(resource, true)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lease %q: view: nothing done: %w", resource, err)
	}
	if e.unsaved {
		return fmt.Errorf("lease %q: view: the journal failed, and may hold another holder; acquire or renew to try it again", resource)
	}
	f(e.rec.Durable)
	return nil
}

// Durable is what a restart of the store needs, as [MemoryOptions.State]: of
// each resource that was ever granted, and each as it is at some instant of
// the call.
func (m *Memory) Durable() map[string]Durable {
	m.mu.RLock()
	entries := maps.Clone(m.entries)
	m.mu.RUnlock()
	state := make(map[string]Durable, len(entries))
	for resource, e := range entries {
		e.mu.Lock()
		d := e.rec.Durable
		e.mu.Unlock()
		if d != m.initial().Durable {
			state[resource] = d
		}
	}
	return state
}

// handle returns no reply that is not durable.
func (m *Memory) handle(ctx context.Context, c Call) (Reply, error) {
	e := m.entry(c.Resource, c.Op == OpAcquire)
	e.mu.Lock()
	defer e.mu.Unlock()
	// Not before the lock: ctx may end, and time passes, while waiting for it.
	if err := ctx.Err(); err != nil {
		return Reply{}, fmt.Errorf("lease %q: %v: nothing done: %w", c.Resource, c.Op, err)
	}
	next, rep := e.rec.Handle(m.clk.Now(), m.opts.LockDelay, c.Request)
	if err := m.become(c.Resource, e, next); err != nil {
		return Reply{}, fmt.Errorf("lease %q: %v: outcome unknown: %w", c.Resource, c.Op, err)
	}
	return rep, nil
}

// become replaces the record of e, locked by the caller, once it is durable.
//
// After a failure the journal may be ahead. Were the next answer derived from
// rec without saving it, a tenure might be renewed here that the journal knows
// as released, and given away after a restart: hence unsaved.
func (m *Memory) become(resource string, e *entry, next Record) error {
	if m.opts.Journal != nil && (e.unsaved || next.Durable != e.rec.Durable) {
		e.unsaved = true // stands also if Save panics
		if err := m.opts.Journal.Save(resource, next.Durable); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		e.unsaved = false
	}
	changed := e.rec.worthAHint(next.Durable)
	e.rec = next
	if changed {
		m.watchers.hint(resource)
	}
	return nil
}

// entry finds resource. Nobody can hold a resource that was never acquired, so
// that without create a stand-in does, and questions take no memory.
func (m *Memory) entry(resource string, create bool) *entry {
	m.mu.RLock()
	e := m.entries[resource]
	m.mu.RUnlock()
	switch {
	case e != nil:
		return e
	case !create:
		return &entry{rec: m.initial()}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e = m.entries[resource]; e == nil {
		e = &entry{rec: m.initial()}
		m.entries[resource] = e
	}
	return e
}

// initial is a resource that nobody ever held.
func (m *Memory) initial() Record {
	return Record{Durable: Durable{Token: max(m.opts.FirstToken, 1) - 1}}
}
