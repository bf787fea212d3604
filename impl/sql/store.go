package leasesql

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// Store is a [lease.Store] of any number of resources in one database, for any
// number of processes. It offers [lease.Batcher] too.
//
// Its errors but for refusals say in their text whether nothing was done or the
// outcome is unknown; for a [lease.Elector] that is the same. While another
// transaction is in the way (a deadlock, SQLITE_BUSY) it tries again until ctx
// ends.
//
// Token and TTL are to the nanosecond; the clock of a server is to the
// microsecond. A token is at most 1<<63-1. Names of resources and holders may be
// anything; the key of one that is longer than 512 bytes or no text is a hash.
type Store struct {
	db   *sql.DB
	d    Dialect
	clk  clock.Clock
	opts Options
}

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Batcher = (*Store)(nil)
)

// Options are what a [Store] may be told. All processes on one database have to
// be told the same. The zero value is right for most.
type Options struct {
	// LockDelay is how long after a lapse, not after a release, a resource is
	// granted to nobody: [lease.Config.LockDelay]. Not negative.
	LockDelay time.Duration
	// FirstToken is the first token of a resource that the table does not have
	// yet, 1 if zero. Whoever moves here from another source of tokens starts
	// above all of them.
	FirstToken lease.Token
	// Clock judges tenures on SQLite, and paces repeated attempts everywhere.
	// nil: [clock.Boot]. On SQLite all processes need the same one.
	Clock clock.Clock
	// Boot says, on SQLite, which start of Clock this is: another value means
	// that instants in the table say nothing. Empty: [BootID]. To be set
	// together with Clock.
	Boot string
}

// New is the store on the tables of [Schema] in db, which [Store.Create] makes
// if need be. It does not ask db for anything, and does not close it. The error
// is a *[lease.ConfigError] that names the argument which makes no sense.
func New(db *sql.DB, d Dialect, opts Options) (*Store, error) {
	switch {
	case db == nil:
		return nil, &lease.ConfigError{Field: "db", Reason: "must be set"}
	case d.name == "":
		return nil, &lease.ConfigError{Field: "dialect", Reason: "must be PostgreSQL(), SQLite() or MariaDB()"}
	case opts.LockDelay < 0:
		return nil, &lease.ConfigError{Field: "LockDelay", Reason: fmt.Sprintf("%v is negative", opts.LockDelay)}
	case opts.FirstToken > math.MaxInt64:
		return nil, &lease.ConfigError{Field: "FirstToken", Reason: fmt.Sprintf("%d is more than a column holds; at most 1<<63-1", opts.FirstToken)}
	case d.hasClock:
		opts.Boot = ""
	case (opts.Clock == nil) != (opts.Boot == ""):
		return nil, &lease.ConfigError{Field: "Boot", Reason: "must be set if and only if Clock is: it says which start of that clock this is"}
	case opts.Boot == "":
		var err error
		if opts.Boot, err = BootID(); err != nil {
			return nil, &lease.ConfigError{Field: "Boot", Reason: err.Error()}
		}
	}
	if opts.Clock == nil {
		opts.Clock = clock.Boot()
	}
	return &Store{db: db, d: d, clk: opts.Clock, opts: opts}, nil
}

// Create makes the tables where they are not there: see [Schema]. On SQLite it
// also restores the tenures of another boot: they are held for their whole TTL
// from now on. Without it each is once somebody asks for its lease.
func (s *Store) Create(ctx context.Context) error {
	if err := Create(ctx, s.db, s.d); err != nil {
		return err
	}
	if s.d.hasClock {
		return nil
	}
	err := s.transact(ctx, func(q querier) (changed bool, err error) {
		rows, err := s.read(ctx, q, s.d.ofOtherBoots, s.opts.Boot)
		if err != nil {
			return false, err
		}
		var writes []write
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if r, restored := rows[key].on(s.opts.Boot); restored {
				writes = append(writes, write{key: key, from: r.rec, to: r.rec})
			}
		}
		return s.write(ctx, q, writes)
	})
	if err != nil {
		return fmt.Errorf("restoring the leases of another boot: %w", err)
	}
	return nil
}

// Create makes the tables of [Schema] in db where they are not there. Several
// processes may do so at once.
func Create(ctx context.Context, db *sql.DB, d Dialect) error {
	var err error
	for _, statement := range statements(d.schema) {
		if _, err = db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("creating the tables of fencepost on %v: %w", d, err)
		}
	}
	return nil
}

// Acquire grants resource to holder for ttl as [lease.Record.Acquire] decides.
// The refusals are *[lease.HeldError], *[lease.DelayError] and
// *[lease.InvalidError].
func (s *Store) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	return lease.Handler(s.handle).Acquire(ctx, resource, holder, ttl)
}

// Renew extends holder's tenure under token as [lease.Record.Renew] decides. The
// refusals are *[lease.LapsedError] and *[lease.LostError], which match
// [lease.ErrNotHeld], and *[lease.InvalidError].
func (s *Store) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	return lease.Handler(s.handle).Renew(ctx, resource, holder, token, ttl)
}

// Release ends holder's tenure under token as [lease.Record.Release] decides.
// Refusals are as for Renew.
func (s *Store) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	return lease.Handler(s.handle).Release(ctx, resource, holder, token)
}

// Get says who holds resource. It refuses nothing.
func (s *Store) Get(ctx context.Context, resource string) (lease.Observation, error) {
	return lease.Handler(s.handle).Get(ctx, resource)
}

// Delete takes resource from whoever holds it, without lock delay: for
// operators, after the holder is known to have stopped. The row stays, and with
// it the counter.
func (s *Store) Delete(ctx context.Context, resource string) error {
	err := s.transact(ctx, func(q querier) (changed bool, err error) {
		rows, err := s.read(ctx, q, s.d.lockOne, Key(resource))
		w := write{key: Key(resource)}
		r, ok := rows[w.key]
		if err != nil || !ok {
			return false, err
		}
		w.from, w.to = r.rec, r.rec.Delete()
		return s.write(ctx, q, []write{w})
	})
	if err != nil {
		return fmt.Errorf("lease %q: delete: %w", resource, err)
	}
	return nil
}
