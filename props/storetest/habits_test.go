package storetest

import (
	"context"
	"fmt"
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
	last    lease.Holder  // whose it was
}

// habit is how a keeper goes about what stores may do in several ways.
type habit struct {
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
	// period is that of the timer: a tenure runs until it comes round.
	period time.Duration
	// revives lets the last holder renew what lapsed.
	revives bool
	// deaf is to contexts.
	deaf bool
	// wraps has every refusal say more.
	wraps bool
	// missing has a deletion of what nobody holds fail.
	missing bool
}

// keeper is a right store.
type keeper struct {
	habit
	env  kit.Env
	mu   sync.Mutex
	rows map[string]lot
	disk *map[string]lot
	wake chan struct{}
}

func (s habit) open(e kit.Env) lease.Store {
	t := &keeper{habit: s, env: e, rows: map[string]lot{}, wake: make(chan struct{}, 1),
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
func (t *keeper) until(now, ttl time.Duration) time.Duration {
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
func (t *keeper) work(timer clock.Timer) {
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
		if next < 1<<62 {
			next = t.due(next)
		}
		timer.Reset(next)
		t.mu.Unlock()
	}
}

// Settle waits for the goroutine.
func (t *keeper) Settle() {
	for due := t.timer; due; runtime.Gosched() {
		t.mu.Lock()
		due = false
		for _, r := range t.rows {
			due = due || !r.holder.IsZero() && t.env.Clock.Now() >= t.due(r.expires)
		}
		t.mu.Unlock()
	}
}

// end puts every lapse on record.
func (t *keeper) end(now time.Duration) {
	for name := range t.rows {
		t.lapse(name, now)
	}
}

func (t *keeper) lapse(name string, now time.Duration) {
	if r := t.rows[name]; !r.holder.IsZero() && now >= t.due(r.expires) {
		t.save(name, lot{token: r.token, lapsed: true, since: t.due(r.expires), last: r.holder, ttl: r.ttl})
	}
}

// due is when a tenure ends that has run out at an instant.
func (t *keeper) due(at time.Duration) time.Duration {
	if t.period == 0 || at > 1<<62 {
		return at
	}
	return ceil(at, t.period)
}

func (t *keeper) save(name string, r lot) {
	t.rows[name] = r
	*t.disk = maps.Clone(t.rows)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// begin is the row of a request, with all lapses known that it may tell.
func (t *keeper) begin(name string) (lot, time.Duration) {
	now := t.env.Clock.Now()
	if t.sweep {
		t.end(now)
	}
	t.lapse(name, now)
	return t.rows[name], now
}

func (t *keeper) remaining(d time.Duration) time.Duration {
	if t.remains == nil {
		return d
	}
	return t.remains(d)
}

func (t *keeper) extend(name string, r lot, now, ttl time.Duration) lease.Grant {
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

func (t *keeper) Acquire(ctx context.Context, name string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ended(ctx); err != nil {
		return lease.Grant{}, err
	}
	if h.IsZero() || ttl <= 0 {
		return lease.Grant{}, &lease.InvalidError{Resource: name, Op: lease.OpAcquire}
	}
	r, now := t.begin(name)
	switch left := r.since + t.delay - now; {
	case r.holder == h:
	case !r.holder.IsZero():
		return lease.Grant{}, t.refuse(&lease.HeldError{Resource: name, Holder: r.holder, Token: r.token, Remaining: t.remaining(r.expires - now)})
	case r.lapsed && left > 0:
		return lease.Grant{}, t.refuse(&lease.DelayError{Resource: name, Remaining: t.remaining(left)})
	default:
		r = lot{holder: h, token: r.token + 1}
	}
	r.lapsed = false
	return t.extend(name, r, now, ttl), nil
}

// own is the row if h holds it under token.
func (t *keeper) own(ctx context.Context, op lease.Op, name string, h lease.Holder, token lease.Token, valid bool) (r lot, now time.Duration, err error) {
	if err := t.ended(ctx); err != nil {
		return r, now, err
	}
	if h.IsZero() || token == 0 || !valid {
		return r, now, &lease.InvalidError{Resource: name, Op: op}
	}
	if r, now = t.begin(name); r.holder == h && r.token == token {
		return r, now, nil
	}
	if t.revives && op == lease.OpRenew && r.lapsed && r.last == h && r.token == token {
		r.holder, r.lapsed, r.expires = h, false, now
		return r, now, nil
	}
	if t.lost {
		return r, now, t.refuse(&lease.LostError{Resource: name, Holder: h, Token: token})
	}
	return r, now, t.refuse(&lease.LostError{Resource: name, Holder: h, Token: token, Current: r.holder, Latest: r.token})
}

func (t *keeper) ended(ctx context.Context) error {
	if t.deaf {
		return nil
	}
	return ctx.Err()
}

func (t *keeper) refuse(err error) error {
	if t.wraps {
		return fmt.Errorf("refused in process %p: %w", t.env.Context, err)
	}
	return err
}

func (t *keeper) Renew(ctx context.Context, name string, h lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, now, err := t.own(ctx, lease.OpRenew, name, h, token, ttl > 0)
	if err != nil {
		return lease.Grant{}, err
	}
	return t.extend(name, r, now, ttl), nil
}

func (t *keeper) Release(ctx context.Context, name string, h lease.Holder, token lease.Token) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, _, err := t.own(ctx, lease.OpRelease, name, h, token, true)
	if err == nil {
		t.save(name, lot{token: r.token})
	}
	return err
}

func (t *keeper) Get(ctx context.Context, name string) (lease.Observation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ended(ctx); err != nil {
		return lease.Observation{}, err
	}
	r, now := t.begin(name)
	if r.holder.IsZero() {
		return lease.Observation{Resource: name, Token: r.token}, nil // a lock delay is none of its business
	}
	return lease.Observation{Resource: name, Holder: r.holder, Token: r.token, Remaining: t.remaining(r.expires - now)}, nil
}

func (t *keeper) Delete(ctx context.Context, name string) error {
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

// keepers are right stores, each with habits of its own.
func keepers() map[string]struct {
	habit
	o kit.Options
} {
	type variant = struct {
		habit
		o kit.Options
	}
	const second, delay = time.Second, 5 * time.Second
	return map[string]variant{
		"plain":                   {habit{}, kit.Options{}},
		"sweeps":                  {habit{sweep: true}, kit.Options{}},
		"sweeps, lock delay":      {habit{sweep: true, delay: delay}, kit.Options{LockDelay: delay}},
		"timer":                   {habit{timer: true}, kit.Options{}},
		"timer, lock delay":       {habit{timer: true, delay: delay}, kit.Options{LockDelay: delay}},
		"timer, lost":             {habit{timer: true, lost: true}, kit.Options{Terse: true}},
		"says what is left":       {habit{left: true, sweep: true}, kit.Options{}},
		"writes what extends":     {habit{left: true, thrifty: true}, kit.Options{}},
		"remains in seconds":      {habit{remains: down(second)}, kit.Options{Granularity: second}},
		"remains in whole tenths": {habit{remains: near(second / 10), delay: delay}, kit.Options{Granularity: second / 10, LockDelay: delay}},
		"expires in seconds":      {habit{unit: second}, kit.Options{Late: second}},
		"expires, says so":        {habit{unit: second, left: true, timer: true}, kit.Options{Late: second}},
		"sweeps now and then":     {habit{timer: true, period: second}, kit.Options{Late: second}},
		"sweeps so, lock delay":   {habit{timer: true, period: second, delay: delay}, kit.Options{Late: second, LockDelay: delay}},
		"revives":                 {habit{revives: true, sweep: true}, kit.Options{RenewAfterLapse: true}},
		"revives by a timer":      {habit{revives: true, timer: true, delay: delay}, kit.Options{RenewAfterLapse: true, LockDelay: delay}},
		"says no more than lost":  {habit{lost: true, sweep: true}, kit.Options{}},
		"hears of no context":     {habit{deaf: true, wraps: true}, kit.Options{}},
		"forgets":                 {habit{timer: true, delay: delay}, kit.Options{LockDelay: delay, Volatile: true}},
		"deletes what is there":   {habit{missing: true}, kit.Options{}},
	}
}

// What a store may do besides what the built-in one does convicts nobody.
func TestKeepersOfAnyHabitsPassEverything(t *testing.T) {
	for name, v := range keepers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if raced {
				v.o.Calls = 8000
			}
			for seed := range seeds() {
				for _, c := range Checks(script.Open(v.habit.open), v.o, kit.Effort{Seed: seed + 1}) {
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
