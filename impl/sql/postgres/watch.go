// Package postgres is the store of package leasesql on PostgreSQL, with hints of
// changes by LISTEN and NOTIFY, through the driver pgx.
//
// It must not know what a change means: whoever gets a hint asks the store.
//
// Start at [New].
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/stdlib"

	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
)

// Store is a [leasesql.Store] that is a [lease.Watcher] too. All watches share
// one connection of the database, which is taken while there are any.
type Store struct {
	*leasesql.Store
	db *sql.DB

	mu     sync.Mutex
	hub    *hub // nil: nobody watches
	closed bool
	hubs   sync.WaitGroup
}

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Batcher = (*Store)(nil)
	_ lease.Watcher = (*Store)(nil)
)

// ErrClosed refuses a watch of a store that was closed.
var ErrClosed = errors.New("store is closed")

// New is the store in db, opened with the driver "pgx" (of [stdlib]). Errors are
// those of [leasesql.New].
func New(db *sql.DB, opts leasesql.Options) (*Store, error) {
	s, err := leasesql.New(db, leasesql.PostgreSQL(), opts)
	if err != nil {
		return nil, err
	}
	return &Store{Store: s, db: db}, nil
}

// Close ends all watches, and returns once they have ended. It does not close
// the database.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.hub != nil {
		s.hub.stop()
	}
	s.mu.Unlock()
	s.hubs.Wait()
	return nil
}

// Watch implements [lease.Watcher]: a hint is part of the transaction that
// changed the lease. The channel is closed when the connection is lost, too;
// watch anew then, and ask the store, since hints may have been missed. The
// error says that the database could not be listened to.
func (s *Store) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("lease %q: watch: %w", resource, ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lease %q: watch: nothing done: %w", resource, context.Cause(ctx))
	}
	if s.hub == nil {
		h, err := s.listen(ctx)
		if err != nil {
			return nil, fmt.Errorf("lease %q: watch: %w", resource, err)
		}
		s.hub = h
	}
	h, key := s.hub, leasesql.Key(resource)
	hints := h.add(key)
	context.AfterFunc(ctx, func() { s.leave(h, key, hints) })
	return hints, nil
}

// listen takes a connection and serves it until there is nobody left.
func (s *Store) listen(ctx context.Context) (*hub, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, `LISTEN `+leasesql.Channel); err != nil {
		conn.Close()
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	h := &hub{stop: stop, watchers: map[string]map[chan struct{}]struct{}{}}
	s.hubs.Go(func() {
		defer stop()
		defer conn.Close()
		conn.Raw(func(c any) error {
			if c, ok := c.(*stdlib.Conn); ok {
				for {
					n, err := c.Conn().WaitForNotification(run)
					if err != nil {
						break
					}
					s.mu.Lock()
					h.hint(n.Payload)
					s.mu.Unlock()
				}
			}
			return driver.ErrBadConn // one that listens is of no other use
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		h.closeAll()
		if s.hub == h {
			s.hub = nil
		}
	})
	return h, nil
}

func (s *Store) leave(h *hub, key string, hints chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.remove(key, hints); len(h.watchers) == 0 {
		h.stop()
		if s.hub == h {
			s.hub = nil
		}
	}
}

// hub is who waits for what on one connection. The mutex of the store guards
// it; a channel is sent to and closed only while it is in watchers.
type hub struct {
	stop     context.CancelFunc
	watchers map[string]map[chan struct{}]struct{}
}

func (h *hub) add(key string) chan struct{} {
	// Room for one: a hint that was not taken yet stands for those that follow.
	hints := make(chan struct{}, 1)
	if h.watchers[key] == nil {
		h.watchers[key] = map[chan struct{}]struct{}{}
	}
	h.watchers[key][hints] = struct{}{}
	return hints
}

func (h *hub) hint(key string) {
	for hints := range h.watchers[key] {
		select {
		case hints <- struct{}{}:
		default:
		}
	}
}

func (h *hub) remove(key string, hints chan struct{}) {
	if _, ok := h.watchers[key][hints]; !ok {
		return
	}
	close(hints)
	delete(h.watchers[key], hints)
	if len(h.watchers[key]) == 0 {
		delete(h.watchers, key)
	}
}

func (h *hub) closeAll() {
	for key, list := range h.watchers {
		for hints := range list {
			h.remove(key, hints)
		}
	}
}
