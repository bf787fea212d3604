package storetest_test

import (
	"context"
	"sync"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// openMemory opens the store that fencepost comes with.
func openMemory(e kit.Env) lease.Store {
	m, err := lease.NewMemory(e.Clock, lease.MemoryOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return m
}

// row is a lease as the stores of these tests keep it, which share no code with
// package lease but its words.
type row struct {
	holder lease.Holder // nobody: released, or never held
	token  lease.Token
	until  time.Duration
}

// table has the steps of which these stores are made; what is a step, and what
// is not, is theirs.
type table struct {
	mu   sync.Mutex
	rows map[string]row
}

func (t *table) read(resource string) row {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[resource]
}

func (t *table) write(resource string, r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[resource] = r
}

// acquire, renew and release are the rules.
func (r row) acquire(now time.Duration, resource string, h lease.Holder, ttl time.Duration) (row, lease.Grant, error) {
	switch held := !r.holder.IsZero() && now < r.until; {
	case ttl <= 0 || h.IsZero():
		return r, lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpAcquire}
	case held && r.holder != h:
		return r, lease.Grant{}, &lease.HeldError{Resource: resource, Holder: r.holder, Token: r.token, Remaining: r.until - now}
	case held:
		r.until = max(r.until, now+ttl)
	default:
		r = row{h, r.token + 1, now + ttl}
	}
	return r, lease.Grant{Resource: resource, Holder: h, Token: r.token, TTL: ttl}, nil
}

func (r row) lost(now time.Duration, resource string, h lease.Holder, t lease.Token) error {
	if r.holder != h || r.token != t || now >= r.until {
		return &lease.LostError{Resource: resource, Holder: h, Token: t}
	}
	return nil
}

func (r row) renew(now time.Duration, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (row, lease.Grant, error) {
	if err := r.lost(now, resource, h, t); err != nil {
		return r, lease.Grant{}, err
	}
	r.until = max(r.until, now+ttl)
	return r, lease.Grant{Resource: resource, Holder: h, Token: t, TTL: ttl}, nil
}

func (r row) release(now time.Duration, resource string, h lease.Holder, t lease.Token) (row, error) {
	if err := r.lost(now, resource, h, t); err != nil {
		return r, err
	}
	return row{token: t}, nil
}

func (r row) get(now time.Duration, resource string) lease.Observation {
	if now >= r.until {
		r.holder = lease.Holder{}
	}
	return lease.Observation{Resource: resource, Holder: r.holder, Token: r.token}
}

// tableStore runs each operation as its way of a transaction has it.
type tableStore struct {
	// transact gives f the clock's reading and the row, and keeps what f returns.
	transact func(ctx context.Context, resource string, f func(now time.Duration, r row) row)
}

func (s tableStore) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (g lease.Grant, err error) {
	s.transact(ctx, resource, func(now time.Duration, r row) row { r, g, err = r.acquire(now, resource, h, ttl); return r })
	return g, err
}

func (s tableStore) Renew(ctx context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (g lease.Grant, err error) {
	s.transact(ctx, resource, func(now time.Duration, r row) row { r, g, err = r.renew(now, resource, h, t, ttl); return r })
	return g, err
}

func (s tableStore) Release(ctx context.Context, resource string, h lease.Holder, t lease.Token) (err error) {
	s.transact(ctx, resource, func(now time.Duration, r row) row { r, err = r.release(now, resource, h, t); return r })
	return err
}

func (s tableStore) Get(ctx context.Context, resource string) (o lease.Observation, err error) {
	s.transact(ctx, resource, func(now time.Duration, r row) row { o = r.get(now, resource); return r })
	return o, nil
}

// openMutex: a map under a mutex, which is held while the clock is read.
func openMutex(e kit.Env) lease.Store {
	var mu sync.Mutex
	rows := map[string]row{}
	return tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
		mu.Lock()
		defer mu.Unlock()
		rows[resource] = f(e.Clock.Now(), rows[resource])
	}}
}

// openClockFirst: the clock is read before the lock is taken, as where the
// instant is an argument of a statement.
func openClockFirst(e kit.Env) lease.Store {
	var mu sync.Mutex
	rows := map[string]row{}
	return tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
		now := e.Clock.Now()
		mu.Lock()
		defer mu.Unlock()
		rows[resource] = f(now, rows[resource])
	}}
}

// openOptimistic: a compare and swap of the row, tried again until nobody came
// between.
func openOptimistic(e kit.Env) lease.Store {
	t := table{rows: map[string]row{}}
	return tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
		for swapped := false; !swapped; {
			old := t.read(resource)
			new := f(e.Clock.Now(), old)
			t.mu.Lock()
			if swapped = t.rows[resource] == old; swapped {
				t.rows[resource] = new
			}
			t.mu.Unlock()
		}
	}}
}

// openOwner: one goroutine owns the map, and the callers send it what to do.
func openOwner(e kit.Env) lease.Store {
	todo := make(chan func(map[string]row))
	go func() {
		rows := map[string]row{}
		for {
			select {
			case f := <-todo:
				f(rows)
			case <-e.Context.Done():
				return
			}
		}
	}()
	return tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
		done := make(chan struct{})
		todo <- func(rows map[string]row) {
			rows[resource] = f(e.Clock.Now(), rows[resource])
			close(done)
		}
		<-done
	}}
}

// The wrong ones keep their maps under a lock, step by step, so that the race
// detector has nothing to say.

// openCheckThenSet: the row is read, then the clock, then the row is written.
func openCheckThenSet(e kit.Env) lease.Store {
	t := table{rows: map[string]row{}}
	return tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
		r := t.read(resource)
		t.write(resource, f(e.Clock.Now(), r))
	}}
}

// openLooksAtContext: the clock is read first; between the steps only the
// context is looked at.
func openLooksAtContext(e kit.Env) lease.Store {
	t := table{rows: map[string]row{}}
	return tableStore{func(ctx context.Context, resource string, f func(time.Duration, row) row) {
		r := f(e.Clock.Now(), t.read(resource))
		if ctx.Err() == nil {
			t.write(resource, r)
		}
	}}
}

// mixed takes each operation from a right store or from a wrong one on the same
// table.
type mixed struct {
	right, wrong lease.Store
	op           lease.Op // the wrong one
}

func (m mixed) of(op lease.Op) lease.Store {
	if op == m.op {
		return m.wrong
	}
	return m.right
}

func (m mixed) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	return m.of(lease.OpAcquire).Acquire(ctx, resource, h, ttl)
}

func (m mixed) Renew(ctx context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	return m.of(lease.OpRenew).Renew(ctx, resource, h, t, ttl)
}

func (m mixed) Release(ctx context.Context, resource string, h lease.Holder, t lease.Token) error {
	return m.of(lease.OpRelease).Release(ctx, resource, h, t)
}

func (m mixed) Get(ctx context.Context, resource string) (lease.Observation, error) {
	return m.right.Get(ctx, resource)
}

// openWrong is a store of which one operation checks and then sets.
func openWrong(op lease.Op) script.Open {
	return func(e kit.Env) lease.Store {
		t := table{rows: map[string]row{}}
		return mixed{
			op: op,
			right: tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.rows[resource] = f(e.Clock.Now(), t.rows[resource])
			}},
			wrong: tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
				r := t.read(resource)
				t.write(resource, f(e.Clock.Now(), r))
			}},
		}
	}
}

// openUnlocks is a store of which one operation reads the clock first of all,
// and unlocks between its check and its act.
func openUnlocks(op lease.Op) script.Open {
	return func(e kit.Env) lease.Store {
		t := table{rows: map[string]row{}}
		return mixed{
			op: op,
			right: tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
				now := e.Clock.Now()
				t.mu.Lock()
				defer t.mu.Unlock()
				t.rows[resource] = f(now, t.rows[resource])
			}},
			wrong: tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
				now := e.Clock.Now()
				old := t.read(resource)
				if r := f(now, old); r != old { // refusals change nothing
					t.write(resource, r)
				}
			}},
		}
	}
}

// openUnlocksLate is one that reads the clock under the lock.
func openUnlocksLate(op lease.Op) script.Open {
	return func(e kit.Env) lease.Store {
		t := table{rows: map[string]row{}}
		return mixed{
			op: op,
			right: tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.rows[resource] = f(e.Clock.Now(), t.rows[resource])
			}},
			wrong: tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
				t.mu.Lock()
				old := t.rows[resource]
				r := f(e.Clock.Now(), old)
				t.mu.Unlock()
				if r != old {
					t.write(resource, r)
				}
			}},
		}
	}
}

// openShared: the leases are apart, and what is written is whatever lease was
// asked for last.
func openShared(e kit.Env) lease.Store {
	t := table{rows: map[string]row{}}
	var last string
	return tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
		t.mu.Lock()
		last = resource
		t.mu.Unlock()
		r := f(e.Clock.Now(), t.read(resource))
		t.mu.Lock()
		t.rows[last] = r
		t.mu.Unlock()
	}}
}

// openClockThenCheck: the clock is read first, and then the row is read and
// written. Nothing that yields comes between these two.
func openClockThenCheck(e kit.Env) lease.Store {
	t := table{rows: map[string]row{}}
	return tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
		now := e.Clock.Now()
		t.write(resource, f(now, t.read(resource)))
	}}
}

// openTakesByToken: an acquire looks at the row, and takes the lease if nobody
// else has taken it since. A renewal changes no token.
func openTakesByToken(e kit.Env) lease.Store {
	t := table{rows: map[string]row{}}
	return mixed{
		op: lease.OpAcquire,
		right: tableStore{func(_ context.Context, resource string, f func(time.Duration, row) row) {
			now := e.Clock.Now()
			t.mu.Lock()
			defer t.mu.Unlock()
			t.rows[resource] = f(now, t.rows[resource])
		}},
		wrong: tableStore{func(ctx context.Context, resource string, f func(time.Duration, row) row) {
			for done := false; !done; {
				old := t.read(resource)
				new := f(e.Clock.Now(), old)
				ctx.Err() // as a database does before the next statement
				t.mu.Lock()
				if cur := t.rows[resource]; cur.token == old.token && cur.holder == old.holder {
					if new.token == old.token {
						new.until = max(new.until, cur.until)
					}
					t.rows[resource], done = new, true
				}
				t.mu.Unlock()
			}
		}},
	}
}
