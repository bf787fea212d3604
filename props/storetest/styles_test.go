package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// entry is a lease as somebody might keep it who has never seen lease.Record.
type entry struct {
	version int // of the entry: raised by each write
	token   lease.Token
	holder  lease.Holder // nobody: free
	longest time.Duration
	lapsed  bool // and somebody knows
	expires time.Duration
	boot    int // of the process that wrote expires
}

// ledger is entries that survive a crash.
type ledger struct {
	mu      sync.Mutex
	entries map[string]entry
	boots   int
	issued  lease.Token // of all leases together
}

// bookStore is a lease store that a style makes peculiar.
type bookStore struct {
	clk  clock.Clock
	disk *ledger
	boot int
	born time.Duration
	style
}

// style is where correct stores differ.
type style struct {
	delay      time.Duration
	cap        time.Duration // TTLs are granted for no longer
	global     bool          // tokens are drawn from one counter
	optimistic bool          // entries are read, and written if nobody else has
	lostOnly   bool          // there is no LapsedError, and all details are given
	own        bool          // refusals are types of its own
	rest       bool          // a grant says how long the lease is held in all
	plain      bool          // what makes no sense is refused with an error that is like any other
}

func (s style) open() script.Open {
	return func(e kit.Env) lease.Store {
		disk := kit.Durable(e, "ledger", func() *ledger { return &ledger{entries: map[string]entry{}} })
		disk.mu.Lock()
		defer disk.mu.Unlock()
		disk.boots++
		return &bookStore{clk: e.Clock, disk: disk, boot: disk.boots, born: e.Clock.Now(), style: s}
	}
}

// do reads an entry, lets f decide, and writes what f has made of it.
func (b *bookStore) do(resource string, f func(now time.Duration, e *entry) error) error {
	for {
		b.disk.mu.Lock()
		e := b.disk.entries[resource]
		if b.optimistic {
			b.disk.mu.Unlock()
		}
		before := e
		now := b.clk.Now()
		b.normalise(now, &e)
		err := f(now, &e)
		if b.optimistic {
			b.disk.mu.Lock()
			if b.disk.entries[resource].version != before.version {
				b.disk.mu.Unlock()
				continue
			}
		}
		if e != before {
			e.version++
			b.disk.entries[resource] = e
		}
		b.disk.mu.Unlock()
		return err
	}
}

// normalise is done whenever an entry is read: what has lapsed is written down
// as lapsed, and what a crash has left begins anew.
func (b *bookStore) normalise(now time.Duration, e *entry) {
	if e.boot != b.boot {
		e.boot = b.boot
		switch {
		case e.lapsed:
			e.expires = b.born
		case !e.holder.IsZero():
			e.expires = b.born + min(e.longest, math.MaxInt64-b.born)
		}
	}
	if !e.holder.IsZero() && now >= e.expires {
		e.lapsed = true
	}
}

func (e *entry) held() bool { return !e.holder.IsZero() && !e.lapsed }

func (b *bookStore) extend(now time.Duration, resource string, e *entry, ttl time.Duration) lease.Grant {
	if b.cap > 0 {
		ttl = min(ttl, b.cap)
	}
	ttl = min(ttl, math.MaxInt64-now)
	e.expires, e.longest = max(e.expires, now+ttl), max(e.longest, ttl)
	if b.rest {
		ttl = e.expires - now
	}
	return lease.Grant{Resource: resource, Holder: e.holder, Token: e.token, TTL: ttl}
}

// gone is a refusal of bookStore's own.
type gone struct{ resource string }

func (g gone) Error() string { return g.resource + " is not yours" }
func (g gone) Unwrap() error { return lease.ErrNotHeld }

func (b *bookStore) refuse(resource string, e *entry, h lease.Holder, t lease.Token) error {
	switch {
	case b.own:
		return fmt.Errorf("book: %w", gone{resource})
	case e.lapsed && e.holder == h && e.token == t && !b.lostOnly:
		return &lease.LapsedError{Resource: resource, Holder: h, Token: t}
	}
	lost := &lease.LostError{Resource: resource, Holder: h, Token: t, Latest: e.token}
	if b.global && !b.optimistic {
		lost.Latest = b.disk.issued
	}
	if e.held() {
		lost.Current = e.holder
	}
	return lost
}

func (b *bookStore) invalid(resource string, op lease.Op) error {
	if b.plain {
		return errors.New("book: what is that supposed to mean?")
	}
	return fmt.Errorf("book: %w", &lease.InvalidError{Resource: resource, Op: op})
}

func (b *bookStore) Acquire(_ context.Context, resource string, h lease.Holder, ttl time.Duration) (g lease.Grant, err error) {
	if ttl <= 0 || h.IsZero() {
		return g, b.invalid(resource, lease.OpAcquire)
	}
	err = b.do(resource, func(now time.Duration, e *entry) error {
		switch {
		case e.held() && e.holder == h:
		case e.held():
			return fmt.Errorf("book: %w", &lease.HeldError{Resource: resource, Holder: e.holder, Token: e.token, Remaining: e.expires - now})
		case e.lapsed && now < e.expires+b.delay:
			return fmt.Errorf("book: %w", &lease.DelayError{Resource: resource, Remaining: e.expires + b.delay - now})
		default:
			*e = entry{version: e.version, token: e.token + 1, holder: h, expires: now, boot: b.boot}
			if b.global {
				if b.optimistic {
					b.disk.mu.Lock()
				}
				b.disk.issued++
				e.token = b.disk.issued
				if b.optimistic {
					b.disk.mu.Unlock()
				}
			}
		}
		g = b.extend(now, resource, e, ttl)
		return nil
	})
	return g, err
}

func (b *bookStore) Renew(_ context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (g lease.Grant, err error) {
	if ttl <= 0 || h.IsZero() || t == 0 {
		return g, b.invalid(resource, lease.OpRenew)
	}
	err = b.do(resource, func(now time.Duration, e *entry) error {
		if !e.held() || e.holder != h || e.token != t {
			return b.refuse(resource, e, h, t)
		}
		g = b.extend(now, resource, e, ttl)
		return nil
	})
	return g, err
}

func (b *bookStore) Release(_ context.Context, resource string, h lease.Holder, t lease.Token) error {
	if h.IsZero() || t == 0 {
		return b.invalid(resource, lease.OpRelease)
	}
	return b.do(resource, func(_ time.Duration, e *entry) error {
		if !e.held() || e.holder != h || e.token != t {
			return b.refuse(resource, e, h, t)
		}
		*e = entry{version: e.version, token: e.token, boot: b.boot}
		return nil
	})
}

func (b *bookStore) Get(_ context.Context, resource string) (o lease.Observation, err error) {
	err = b.do(resource, func(now time.Duration, e *entry) error {
		o = lease.Observation{Resource: resource, Token: e.token}
		switch {
		case e.held():
			o.Holder, o.Remaining = e.holder, e.expires-now
		case e.lapsed && now < e.expires+b.delay:
			o.Remaining = e.expires + b.delay - now
		}
		return nil
	})
	return o, err
}

func TestStoresOfAnyRightStylePassAll(t *testing.T) {
	styles := map[string]struct {
		style style
		o     kit.Options
	}{
		"plainly":                         {style{}, kit.Options{}},
		"LostError with all details":      {style{lostOnly: true}, kit.Options{}},
		"TTLs capped":                     {style{cap: 12 * time.Second}, kit.Options{}},
		"TTLs capped low":                 {style{cap: 700 * time.Millisecond}, kit.Options{}},
		"refusals of its own":             {style{own: true}, kit.Options{}},
		"lock delay":                      {style{delay: 3 * time.Second}, kit.Options{LockDelay: 3 * time.Second}},
		"lock delay, LostError":           {style{delay: 3 * time.Second, lostOnly: true}, kit.Options{LockDelay: 3 * time.Second}},
		"one counter for all leases":      {style{global: true}, kit.Options{Tokens: model.TokensRising}},
		"optimistic":                      {style{optimistic: true}, kit.Options{}},
		"optimistic with one counter":     {style{optimistic: true, global: true}, kit.Options{Tokens: model.TokensRising}},
		"grants say the rest":             {style{rest: true}, kit.Options{}},
		"nonsense refused like any error": {style{plain: true}, kit.Options{}},
		"all at once": {style{delay: time.Second, cap: 30 * time.Second, global: true, optimistic: true, own: true},
			kit.Options{Tokens: model.TokensRising, LockDelay: time.Second}},
	}
	for _, name := range slices.Sorted(maps.Keys(styles)) {
		v := styles[name]
		t.Run(name, func(t *testing.T) {
			for seed := range seeds() {
				for _, c := range Checks(v.style.open(), v.o, kit.Effort{Seed: seed}) {
					out := c.Run()
					switch {
					case out.Failure != nil:
						t.Errorf("seed %d, %s:\n%s", seed, c.Name, tell(out.Failure))
					case out.Unknown != "":
						t.Errorf("seed %d, %s: unknown: %s", seed, c.Name, out.Unknown)
					}
				}
			}
		})
	}
}
