package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// journal is a lease.Journal that stands for a disk.
type journal struct {
	mu    sync.Mutex
	state map[string]lease.Durable
}

func (j *journal) Save(resource string, d lease.Durable) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state[resource] = d
	return nil
}

func (j *journal) load() map[string]lease.Durable {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.state)
}

// right is lease.Memory with a journal that survives a crash.
func right(delay time.Duration) func(kit.Env) *lease.Memory {
	return func(e kit.Env) *lease.Memory {
		j := kit.Durable(e, "journal", func() *journal { return &journal{state: map[string]lease.Durable{}} })
		m, err := lease.NewMemory(e.Clock, lease.MemoryOptions{State: j.load(), Journal: j, LockDelay: delay})
		if err != nil {
			e.Fatal(err)
		}
		return m
	}
}

func opened[S lease.Store](open func(kit.Env) S) script.Open {
	return func(e kit.Env) lease.Store { return open(e) }
}

// shaped is a store that makes something else of a TTL or a token, as its
// options say.
type shaped struct {
	*lease.Memory
	ttl   func(time.Duration) time.Duration
	token uint64 // times which tokens go
	terse bool
	min   time.Duration // shorter TTLs are refused
	max   time.Duration // and longer ones, if it is not 0
	quiet bool          // grants say the TTL that was asked for
}

func (s *shaped) grant(ttl time.Duration, g lease.Grant, err error) (lease.Grant, error) {
	g.Token *= lease.Token(s.token)
	if s.quiet && err == nil {
		g.TTL = ttl
	}
	return g, s.refuse(err)
}

func (s *shaped) refuse(err error) error {
	var held *lease.HeldError
	var lost *lease.LostError
	var lapsed *lease.LapsedError
	switch {
	case err == nil:
	case errors.As(err, &held):
		held.Token *= lease.Token(s.token)
		if s.terse {
			return &lease.HeldError{Resource: held.Resource}
		}
	case s.terse && errors.Is(err, lease.ErrNotHeld):
		return lease.ErrNotHeld
	case errors.As(err, &lost):
		lost.Token *= lease.Token(s.token)
		lost.Latest *= lease.Token(s.token)
	case errors.As(err, &lapsed):
		lapsed.Token *= lease.Token(s.token)
	}
	return err
}

func (s *shaped) own(t lease.Token) lease.Token {
	if uint64(t)%s.token != 0 {
		return 1 << 60 // none of its own
	}
	return t / lease.Token(s.token)
}

func (s *shaped) Acquire(ctx context.Context, r string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	if ttl > 0 && (ttl < s.min || s.max > 0 && ttl > s.max) {
		return lease.Grant{}, &lease.InvalidError{Resource: r, Op: lease.OpAcquire}
	}
	g, err := s.Memory.Acquire(ctx, r, h, s.ttl(ttl))
	return s.grant(ttl, g, err)
}

func (s *shaped) Renew(ctx context.Context, r string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	if ttl > 0 && (ttl < s.min || s.max > 0 && ttl > s.max) {
		return lease.Grant{}, &lease.InvalidError{Resource: r, Op: lease.OpRenew}
	}
	g, err := s.Memory.Renew(ctx, r, h, s.own(t), s.ttl(ttl))
	return s.grant(ttl, g, err)
}

func (s *shaped) Release(ctx context.Context, r string, h lease.Holder, t lease.Token) error {
	return s.refuse(s.Memory.Release(ctx, r, h, s.own(t)))
}

func (s *shaped) Get(ctx context.Context, r string) (lease.Observation, error) {
	o, err := s.Memory.Get(ctx, r)
	o.Token *= lease.Token(s.token)
	return o, err
}

func shape(delay time.Duration, with func(*shaped)) script.Open {
	return func(e kit.Env) lease.Store {
		s := &shaped{Memory: right(delay)(e), ttl: func(d time.Duration) time.Duration { return d }, token: 1}
		with(s)
		return s
	}
}

func upTo(unit time.Duration) func(time.Duration) time.Duration {
	return func(d time.Duration) time.Duration {
		if d <= 0 || d > 1<<62 {
			return d
		}
		return ceil(d, unit)
	}
}

// steadily is a right store on a clock that goes on, which keeps its expiries as
// instants.
func steadily(handle func(time.Duration, row, lease.Request) (row, lease.Reply), delay time.Duration) script.Open {
	return fault{handle: handle, delay: delay, restart: asItWas}.open()
}

func asItWas(old row, _ time.Duration) row { return old }

// revives lets the last holder renew what nobody took.
var revives = on(lease.OpRenew, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
	if r.Status != lease.Free && q.Holder == r.Holder && q.Token == r.Token && q.TTL > 0 {
		r.Status, r.Expires = lease.Running, max(r.Expires, now+1)
	}
	return r.Handle(now, 0, q)
})

// overdue keeps leases for three seconds longer than it says, and then has a
// lock delay of two.
func overdue(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
	ttl := q.TTL
	if ttl > 0 && ttl < 1<<62 {
		q.TTL += 3 * time.Second
	}
	next, rep := r.Handle(now, 2*time.Second, q)
	if rep.Code == lease.CodeGranted {
		rep.TTL = ttl
	}
	return next, rep
}

// plain hides Delete and Watch.
type plain struct{ lease.Store }

// variants are right stores, each with what it promises.
func variants() map[string]struct {
	open script.Open
	o    kit.Options
} {
	type variant = struct {
		open script.Open
		o    kit.Options
	}
	memory := opened(right(0))
	return map[string]variant{
		"exact":           {memory, kit.Options{}},
		"lock delay":      {opened(right(5 * time.Second)), kit.Options{LockDelay: 5 * time.Second}},
		"long lock delay": {opened(right(time.Minute)), kit.Options{LockDelay: time.Minute}},
		"promises late":   {memory, kit.Options{Late: 3 * time.Second}},
		"late, delay":     {opened(right(2 * time.Second)), kit.Options{Late: 3 * time.Second, LockDelay: 2 * time.Second}},
		"seconds":         {shape(0, func(s *shaped) { s.ttl = upTo(time.Second) }), kit.Options{Granularity: time.Second}},
		"seven seconds":   {shape(0, func(s *shaped) { s.ttl = upTo(7 * time.Second) }), kit.Options{Granularity: 7 * time.Second}},
		"minimum raised": {shape(0, func(s *shaped) {
			s.ttl = func(d time.Duration) time.Duration {
				if d <= 0 {
					return d
				}
				return max(d, 25*time.Second)
			}
		}), kit.Options{MinTTL: 25 * time.Second}},
		"minimum refused":  {shape(0, func(s *shaped) { s.min = 25 * time.Second }), kit.Options{MinTTL: 25 * time.Second}},
		"maximum refused":  {shape(0, func(s *shaped) { s.max = time.Hour }), kit.Options{MaxTTL: time.Hour}},
		"a minute at most": {shape(0, func(s *shaped) { s.max = time.Minute }), kit.Options{MaxTTL: time.Minute}},
		"lapses late": {shape(2*time.Second, func(s *shaped) {
			s.quiet, s.ttl = true, func(d time.Duration) time.Duration {
				if d <= 0 || d > 1<<62 {
					return d
				}
				return d + 3*time.Second
			}
		}), kit.Options{Late: 3 * time.Second, LockDelay: 2 * time.Second}},
		"odd units": {shape(0, func(s *shaped) {
			s.min, s.ttl = 700*time.Millisecond, upTo(1500*time.Millisecond)
		}), kit.Options{Granularity: 1500 * time.Millisecond, MinTTL: 700 * time.Millisecond}},
		"days": {shape(24*time.Hour, func(s *shaped) { s.ttl = upTo(24 * time.Hour) }),
			kit.Options{Granularity: 24 * time.Hour, MinTTL: 24 * time.Hour, LockDelay: 24 * time.Hour, Late: 24 * time.Hour}},
		"caps TTLs":           {shape(0, func(s *shaped) { s.ttl = func(d time.Duration) time.Duration { return min(d, 15*time.Second) } }), kit.Options{}},
		"renews lapsed":       {fault{handle: revives}.open(), kit.Options{RenewAfterLapse: true}},
		"rising tokens":       {shape(0, func(s *shaped) { s.token = 17 }), kit.Options{Tokens: model.TokensRising}},
		"next, said rising":   {memory, kit.Options{Tokens: model.TokensRising}},
		"terse":               {shape(0, func(s *shaped) { s.terse = true }), kit.Options{Terse: true}},
		"volatile":            {memory, kit.Options{Volatile: true}},
		"no get":              {memory, kit.Options{NoGet: true}},
		"no delete, no watch": {func(e kit.Env) lease.Store { return plain{right(0)(e)} }, kit.Options{}},
		"may renew lapsed":    {memory, kit.Options{RenewAfterLapse: true}},
		"steady clock":        {steadily(nil, 0), kit.Options{SteadyClock: true}},
		"steady, lock delay":  {steadily(nil, 5*time.Second), kit.Options{SteadyClock: true, LockDelay: 5 * time.Second}},
		"steady, late, delay": {steadily(overdue, 0), kit.Options{SteadyClock: true, Late: 3 * time.Second, LockDelay: 2 * time.Second}},
		"steady, renews":      {steadily(revives, 0), kit.Options{SteadyClock: true, RenewAfterLapse: true}},
		"functions":           {func(e kit.Env) lease.Store { return functions(right(0)(e)).Store() }, kit.Options{}},
	}
}

// functions is a store as somebody has it who knows no types of ours.
func functions(m *lease.Memory) kit.Funcs {
	parse := func(s string) lease.Holder {
		return lease.Holder{Node: s, Seq: 1}
	}
	said := func(err error) (bool, error) {
		if isRefusal(err) {
			return false, nil
		}
		return err == nil, err
	}
	return kit.Funcs{
		Acquire: func(ctx context.Context, r, h string, ttl time.Duration) (uint64, bool, error) {
			g, err := m.Acquire(ctx, r, parse(h), ttl)
			ok, err := said(err)
			return uint64(g.Token), ok, err
		},
		Renew: func(ctx context.Context, r, h string, t uint64, ttl time.Duration) (bool, error) {
			_, err := m.Renew(ctx, r, parse(h), lease.Token(t), ttl)
			return said(err)
		},
		Release: func(ctx context.Context, r, h string, t uint64) (bool, error) {
			return said(m.Release(ctx, r, parse(h), lease.Token(t)))
		},
		Get: func(ctx context.Context, r string) (string, uint64, error) {
			o, err := m.Get(ctx, r)
			return o.Holder.Node, uint64(o.Token), err
		},
	}
}

func TestRightStoresPassAllThatAsksOneThingAtATime(t *testing.T) {
	variants := variants()
	for _, name := range slices.Sorted(maps.Keys(variants)) {
		v := variants[name]
		t.Run(name, func(t *testing.T) {
			if err := v.o.Validate(); err != nil {
				t.Fatal(err)
			}
			for _, c := range slices.Concat(sequential(v.open, v.o), Watch(v.open, v.o), Lockstep(v.open, v.o, kit.Effort{Seed: 1})) {
				out := c.Run()
				switch {
				case out.Failure != nil:
					t.Errorf("%s:\n%s", c.Name, tell(out.Failure))
				case out.Unknown != "":
					t.Errorf("%s: unknown: %s", c.Name, out.Unknown)
				case out.Skipped == "" && out.Covered == "":
					t.Errorf("%s: looked at nothing", c.Name)
				}
			}
		})
	}
}
