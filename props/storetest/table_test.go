package storetest

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// lot is a lease in a table of somebody's own, who knows nothing of
// lease.Record.
type lot struct {
	holder  lease.Holder // zero: free, lapsed or released
	token   lease.Token
	ttl     time.Duration // the longest of the tenure
	expires time.Duration
	lapsed  bool          // the last tenure did, and its lock delay runs from since
	since   time.Duration // read by the clock of one process only
}

// manner is how a rowStore goes about what stores may do in several ways.
type manner struct {
	delay time.Duration
	// sweep has every request end what has run out in all of the table, as does
	// "UPDATE ... WHERE expires <= now".
	sweep bool
	// timer has a goroutine do it when it is due.
	timer bool
	// left has grants say what is left, which may be more than was asked for.
	left bool
	// unit is that of the expiries, which are rounded up to it.
	unit time.Duration
	// lost has every refused renewal and release say no more than that.
	lost bool
	// remains is what refusals make of what is left.
	remains func(time.Duration) time.Duration
	// thrifty has retries and renewals write only what extends the tenure.
	thrifty bool
	// missing has a deletion of what nobody holds fail.
	missing bool
}

// rowStore is a right store.
type rowStore struct {
	manner
	env  kit.Env
	mu   sync.Mutex
	rows map[string]lot
	disk *map[string]lot
	wake chan struct{}
}

func (s manner) open(e kit.Env) lease.Store {
	t := &rowStore{manner: s, env: e, rows: map[string]lot{}, wake: make(chan struct{}, 1),
		disk: kit.Durable(e, "table", func() *map[string]lot { return &map[string]lot{} })}
	now := e.Clock.Now()
	for name, r := range *t.disk {
		if r.expires = t.until(now, r.ttl); r.lapsed {
			r.since = now
		}
		t.rows[name] = r
	}
	if s.timer {
		go t.work(e.Clock.Timer(now))
	}
	return t
}

// until is when a tenure of ttl ends, for good.
func (t *rowStore) until(now, ttl time.Duration) time.Duration {
	end := now + ttl
	if end < now {
		return 1<<63 - 1
	}
	if t.unit > 0 && end < 1<<62 {
		end = ceil(end, t.unit)
	}
	return end
}

// work ends what has run out, whenever something has.
func (t *rowStore) work(timer clock.Timer) {
	defer timer.Stop()
	for {
		select {
		case <-t.env.Context.Done():
			return
		case <-t.wake:
		case <-timer.C():
		}
		t.mu.Lock()
		t.end(t.env.Clock.Now())
		next := time.Duration(1<<63 - 1)
		for _, r := range t.rows {
			if !r.holder.IsZero() {
				next = min(next, r.expires)
			}
		}
		timer.Reset(next)
		t.mu.Unlock()
	}
}

// Settle waits for the goroutine.
func (t *rowStore) Settle() {
	for due := t.timer; due; runtime.Gosched() {
		t.mu.Lock()
		due = false
		for _, r := range t.rows {
			due = due || !r.holder.IsZero() && t.env.Clock.Now() >= r.expires
		}
		t.mu.Unlock()
	}
}

// end puts every lapse on record.
func (t *rowStore) end(now time.Duration) {
	for name := range t.rows {
		t.lapse(name, now)
	}
}

func (t *rowStore) lapse(name string, now time.Duration) {
	if r := t.rows[name]; !r.holder.IsZero() && now >= r.expires {
		t.save(name, lot{token: r.token, lapsed: true, since: r.expires})
	}
}

func (t *rowStore) save(name string, r lot) {
	t.rows[name] = r
	*t.disk = maps.Clone(t.rows)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// begin is the row of a request, with all lapses known that it may tell.
func (t *rowStore) begin(name string) (lot, time.Duration) {
	now := t.env.Clock.Now()
	if t.sweep {
		t.end(now)
	}
	t.lapse(name, now)
	return t.rows[name], now
}

func (t *rowStore) remaining(d time.Duration) time.Duration {
	if t.remains == nil {
		return d
	}
	return t.remains(d)
}

func (t *rowStore) extend(name string, r lot, now, ttl time.Duration) lease.Grant {
	end := max(r.expires, t.until(now, ttl))
	if g := (lease.Grant{Resource: name, Holder: r.holder, Token: r.token, TTL: ttl}); !t.thrifty || end > r.expires || ttl > r.ttl {
		said := ttl
		if t.left {
			said = end - now
		}
		r.expires, r.ttl = end, max(r.ttl, said)
		t.save(name, r)
		g.TTL = said
		return g
	} else {
		if t.left {
			g.TTL = r.expires - now
		}
		return g
	}
}

func (t *rowStore) Acquire(ctx context.Context, name string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return lease.Grant{}, err
	}
	if h.IsZero() || ttl <= 0 {
		return lease.Grant{}, &lease.InvalidError{Resource: name, Op: lease.OpAcquire}
	}
	r, now := t.begin(name)
	switch left := r.since + t.delay - now; {
	case r.holder == h:
	case !r.holder.IsZero():
		return lease.Grant{}, &lease.HeldError{Resource: name, Holder: r.holder, Token: r.token, Remaining: t.remaining(r.expires - now)}
	case r.lapsed && left > 0:
		return lease.Grant{}, &lease.DelayError{Resource: name, Remaining: t.remaining(left)}
	default:
		r = lot{holder: h, token: r.token + 1}
	}
	return t.extend(name, r, now, ttl), nil
}

// own is the row if h holds it under token.
func (t *rowStore) own(ctx context.Context, op lease.Op, name string, h lease.Holder, token lease.Token, valid bool) (r lot, now time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return r, now, err
	}
	if h.IsZero() || token == 0 || !valid {
		return r, now, &lease.InvalidError{Resource: name, Op: op}
	}
	if r, now = t.begin(name); r.holder == h && r.token == token {
		return r, now, nil
	}
	if t.lost {
		return r, now, &lease.LostError{Resource: name, Holder: h, Token: token}
	}
	return r, now, &lease.LostError{Resource: name, Holder: h, Token: token, Current: r.holder, Latest: r.token}
}

func (t *rowStore) Renew(ctx context.Context, name string, h lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, now, err := t.own(ctx, lease.OpRenew, name, h, token, ttl > 0)
	if err != nil {
		return lease.Grant{}, err
	}
	return t.extend(name, r, now, ttl), nil
}

func (t *rowStore) Release(ctx context.Context, name string, h lease.Holder, token lease.Token) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, _, err := t.own(ctx, lease.OpRelease, name, h, token, true)
	if err == nil {
		t.save(name, lot{token: r.token})
	}
	return err
}

func (t *rowStore) Get(ctx context.Context, name string) (lease.Observation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return lease.Observation{}, err
	}
	r, now := t.begin(name)
	if r.holder.IsZero() {
		return lease.Observation{Resource: name, Token: r.token}, nil // a lock delay is none of its business
	}
	return lease.Observation{Resource: name, Holder: r.holder, Token: r.token, Remaining: t.remaining(r.expires - now)}, nil
}

func (t *rowStore) Delete(ctx context.Context, name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, _ := t.begin(name)
	if t.missing && r.holder.IsZero() && !r.lapsed {
		return lease.ErrNotHeld
	}
	t.save(name, lot{token: r.token})
	return nil
}

// down and near round what is left.
func down(unit time.Duration) func(time.Duration) time.Duration {
	return func(d time.Duration) time.Duration { return d.Truncate(unit) }
}

func near(unit time.Duration) func(time.Duration) time.Duration {
	return func(d time.Duration) time.Duration { return d.Round(unit) }
}

// tables are right stores, each in a manner of its own.
func tables() map[string]struct {
	manner
	o kit.Options
} {
	type variant = struct {
		manner
		o kit.Options
	}
	const second, delay = time.Second, 5 * time.Second
	return map[string]variant{
		"plain":                   {manner{}, kit.Options{}},
		"sweeps":                  {manner{sweep: true}, kit.Options{}},
		"sweeps, lock delay":      {manner{sweep: true, delay: delay}, kit.Options{LockDelay: delay}},
		"timer":                   {manner{timer: true}, kit.Options{}},
		"timer, lock delay":       {manner{timer: true, delay: delay}, kit.Options{LockDelay: delay}},
		"timer, lost":             {manner{timer: true, lost: true}, kit.Options{Terse: true}},
		"says what is left":       {manner{left: true, sweep: true}, kit.Options{}},
		"writes what extends":     {manner{left: true, thrifty: true}, kit.Options{}},
		"remains in seconds":      {manner{remains: down(second)}, kit.Options{Granularity: second}},
		"remains in whole tenths": {manner{remains: near(second / 10), delay: delay}, kit.Options{Granularity: second / 10, LockDelay: delay}},
		"expires in seconds":      {manner{unit: second}, kit.Options{Late: second}},
		"expires, says so":        {manner{unit: second, left: true, timer: true}, kit.Options{Late: second}},
		"deletes what is there":   {manner{missing: true}, kit.Options{}},
	}
}

// What a store may do besides what the built-in one does convicts nobody.
func TestTablesInEachStylePassEverything(t *testing.T) {
	for name, v := range tables() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if raced {
				v.o.Calls = 8000
			}
			for seed := range seeds() {
				for _, c := range Checks(script.Open(v.manner.open), v.o, kit.Effort{Seed: seed + 1}) {
					out := c.Run()
					switch {
					case out.Failure != nil:
						t.Errorf("seed %d, %s:\n%s", seed, c.Name, tell(out.Failure))
					case out.Unknown != "":
						t.Errorf("seed %d, %s: %s", seed, c.Name, out.Unknown)
					}
				}
			}
		})
	}
}
