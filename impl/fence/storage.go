package fence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"fencepost/impl/lease"
)

// Storage is a [KV] in memory under the rule of [Guard]. A call whose context
// has ended does nothing. The zero Storage is empty, ready for use, and forgets
// everything with its process; [Restore] makes one that does not.
//
// A Storage belongs to one resource: tokens of two leases cannot be compared.
type Storage struct {
	mu      sync.RWMutex
	durable Durable
	journal Journal
	failed  error // why the journal is not to be trusted any more, if it is not
}

var _ KV = (*Storage)(nil)

// Durable is the part of a [Storage] that must survive a restart: the values,
// and the highest token, without which a zombie's write lands after it.
type Durable struct {
	Guard
	Values map[string]string
}

// Entry is one step of a [Durable]: a token that was admitted, and the write
// that it carried.
type Entry struct {
	Token lease.Token
	Fence bool // a barrier: it carried no write
	Key   string
	Value string
}

func (e Entry) String() string {
	if e.Fence {
		return fmt.Sprintf("fence under token %d", e.Token)
	}
	return fmt.Sprintf("write of %q under token %d", e.Key, e.Token)
}

// Apply takes d one entry further. Entries come in the order in which they were
// appended, from the Durable that the journal started with. The error is a
// *[StaleTokenError] where they do not; d is then unchanged.
func (d *Durable) Apply(e Entry) error {
	g, ok := d.Admit(e.Token)
	if !ok {
		return &StaleTokenError{Token: e.Token, Highest: d.Highest}
	}
	d.Guard = g
	if e.Fence {
		return nil
	}
	if d.Values == nil {
		d.Values = make(map[string]string)
	}
	d.Values[e.Key] = e.Value
	return nil
}

// Journal makes the entries of a [Storage] durable. Calls come one at a time,
// with the storage locked: Append must not call the storage, and should not
// take for ever. It gets no context, because an entry given up half-way is one
// of which nobody knows whether it is there.
type Journal interface {
	// Append returns nil once e is durable after all entries before it.
	Append(e Entry) error
}

// ErrStopped matches the errors of a [Storage] whose journal has failed. The
// entry may be durable all the same, so whatever were admitted next could
// contradict it; only a [Restore] from what the journal holds knows.
var ErrStopped = errors.New("fenced storage has stopped")

var errPanicked = errors.New("it panicked")

// Restore is the storage that continues from d, which it copies. Each change is
// appended to j before it shows and before its answer leaves. After an error
// of j nothing has landed here and nothing more will: see [ErrStopped]. A nil
// j keeps changes in memory only.
func Restore(d Durable, j Journal) *Storage {
	return &Storage{durable: d.clone(), journal: j}
}

// Durable is a snapshot of what a restart needs.
func (s *Storage) Durable() Durable {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.durable.clone()
}

// Highest is the highest token the storage has seen, 0 if none.
func (s *Storage) Highest() lease.Token {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.durable.Highest
}

// Write lands value under key if no higher token came before. The error is a
// *[StaleTokenError], that of ctx, or matches [ErrStopped].
func (s *Storage) Write(ctx context.Context, token lease.Token, key, value string) error {
	return s.process(ctx, Entry{Token: token, Key: key, Value: value})
}

// Fence bars all tokens below token from now on. Its errors are those of
// [Storage.Write].
func (s *Storage) Fence(ctx context.Context, token lease.Token) error {
	return s.process(ctx, Entry{Token: token, Fence: true})
}

// Read gives the value that landed last under key. It works in a stopped
// storage too. The error is that of ctx.
func (s *Storage) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return "", false, fmt.Errorf("read of %q: %w", key, err)
	}
	value, ok = s.durable.Values[key]
	return value, ok, nil
}

func (s *Storage) process(ctx context.Context, e Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Not before the lock: the context may end while waiting for it.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%v did nothing: %w", e, err)
	}
	if s.failed != nil {
		return s.stopped(e)
	}
	g, ok := s.durable.Admit(e.Token)
	if !ok {
		return &StaleTokenError{Token: e.Token, Highest: s.durable.Highest}
	}
	// A leader may fence as often as it likes; the token is durable already.
	if s.journal != nil && (!e.Fence || g != s.durable.Guard) {
		s.failed = errPanicked // stands if Append does not return
		if s.failed = s.journal.Append(e); s.failed != nil {
			return s.stopped(e)
		}
	}
	return s.durable.Apply(e)
}

func (s *Storage) stopped(e Entry) error {
	return fmt.Errorf("%w: %v is not acknowledged: its journal failed: %w; restore it from what the journal holds", ErrStopped, e, s.failed)
}

func (d Durable) clone() Durable {
	d.Values = maps.Clone(d.Values)
	return d
}
