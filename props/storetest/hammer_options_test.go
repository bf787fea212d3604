package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// promised is a lease of a store that makes use of all that its options allow,
// and of nothing more. It shares no code with what else is here.
type promised struct {
	holder lease.Holder
	token  lease.Token
	until  time.Duration // of the TTL
	ended  bool          // by a release
}

// openPromised is a store with these options.
func openPromised(o kit.Options) script.Open {
	return func(e kit.Env) lease.Store {
		return &promisedStore{e: e, o: o, leases: map[string]*promised{}}
	}
}

type promisedStore struct {
	e kit.Env
	o kit.Options

	mu     sync.Mutex
	leases map[string]*promised
	tokens lease.Token // of all leases, where they only rise
}

func (s *promisedStore) find(resource string) (*promised, time.Duration) {
	l := s.leases[resource]
	if l == nil {
		l = &promised{ended: true}
		s.leases[resource] = l
	}
	return l, s.e.Clock.Now()
}

func (s *promisedStore) ttl(d time.Duration) time.Duration {
	d = max(d, s.o.MinTTL)
	if g := s.o.Granularity; g > 0 {
		d = (d + g - 1) / g * g
	}
	return d
}

// held: as late as may be.
func (s *promisedStore) held(l *promised, now time.Duration) bool {
	return !l.ended && now < l.until+s.o.Late
}

func (s *promisedStore) Acquire(_ context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.find(resource)
	switch held := s.held(l, now); {
	case held && l.holder != h && s.o.Terse:
		return lease.Grant{}, fmt.Errorf("acquire: %w", &lease.HeldError{})
	case held && l.holder != h:
		return lease.Grant{}, &lease.HeldError{Resource: resource, Holder: l.holder, Token: l.token}
	case held:
		l.until = max(l.until, now+s.ttl(ttl))
		return lease.Grant{Resource: resource, Holder: h, Token: l.token, TTL: s.ttl(ttl)}, nil
	case !l.ended && now < l.until+s.o.Late+s.o.LockDelay:
		return lease.Grant{}, &lease.DelayError{Resource: resource}
	}
	if s.o.Tokens == model.TokensRising {
		s.tokens += 7
		l.token = s.tokens
	} else {
		l.token++
	}
	l.holder, l.until, l.ended = h, now+s.ttl(ttl), false
	return lease.Grant{Resource: resource, Holder: h, Token: l.token, TTL: s.ttl(ttl)}, nil
}

func (s *promisedStore) own(l *promised, now time.Duration, h lease.Holder, t lease.Token, renews bool) error {
	switch {
	case l.holder != h || l.token != t || l.ended:
		return &lease.LostError{}
	case !s.held(l, now) && !(renews && s.o.RenewAfterLapse):
		return &lease.LapsedError{}
	}
	return nil
}

func (s *promisedStore) Renew(_ context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.find(resource)
	if err := s.own(l, now, h, t, true); err != nil {
		return lease.Grant{}, err
	}
	l.until = max(l.until, now+s.ttl(ttl))
	return lease.Grant{Resource: resource, Holder: h, Token: t, TTL: s.ttl(ttl)}, nil
}

func (s *promisedStore) Release(_ context.Context, resource string, h lease.Holder, t lease.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.find(resource)
	if err := s.own(l, now, h, t, false); err != nil {
		return err
	}
	l.ended = true
	return nil
}

func (s *promisedStore) Get(_ context.Context, resource string) (lease.Observation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.find(resource)
	if !s.held(l, now) {
		return lease.Observation{Resource: resource, Token: l.token}, nil
	}
	return lease.Observation{Resource: resource, Holder: l.holder, Token: l.token}, nil
}

var promises = map[string]kit.Options{
	"rising tokens":      {Tokens: model.TokensRising},
	"whole seconds":      {Granularity: time.Second},
	"odd granularity":    {Granularity: 7 * time.Second, MinTTL: 12 * time.Second},
	"a minute at least":  {MinTTL: time.Minute},
	"lock delay":         {LockDelay: 5 * time.Second},
	"late":               {Late: 3 * time.Second},
	"late, lock delay":   {Late: 3 * time.Second, LockDelay: 30 * time.Second},
	"renews after lapse": {RenewAfterLapse: true},
	"terse":              {Terse: true, LockDelay: time.Second},
	"everything":         {Tokens: model.TokensRising, Granularity: 3 * time.Second, MinTTL: 20 * time.Second, LockDelay: time.Second, Late: time.Second, RenewAfterLapse: true, Terse: true},
	"few calls":          {Calls: 1},
}

func TestAStoreMayDoAllThatItsOptionsAllow(t *testing.T) {
	for name, o := range promises {
		t.Run(name, func(t *testing.T) {
			o.Calls = cmp.Or(o.Calls, 5000)
			mustHold(t, openPromised(o), o)
		})
	}
}

// What the options do not allow is found out, though each is only a matter of
// nanoseconds or of one token.
func TestAStoreMayDoNoMoreThanItsOptionsAllow(t *testing.T) {
	for name, does := range map[string]kit.Options{
		"skips tokens":       {Tokens: model.TokensRising},
		"lapses late":        {Late: 1},
		"has a lock delay":   {LockDelay: 1},
		"rounds TTLs":        {Granularity: 3 * time.Second},
		"renews after lapse": {RenewAfterLapse: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range all(openPromised(does), kit.Options{}, kit.Effort{}) {
				if c.Run().Failure != nil {
					return
				}
			}
			t.Error("nothing convicts it")
		})
	}
}

// lossy is a right store whose answer is now and then an error that says
// nothing: half of them come from before the call, the others from after it.
type lossy struct {
	lease.Store
	mu sync.Mutex
	n  int
}

var errLost = errors.New("connection reset\nby peer")

func (s *lossy) lose() (before, after error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	switch s.n % 14 {
	case 5:
		return errLost, nil
	case 11:
		return nil, errLost
	}
	return nil, nil
}

func (s *lossy) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	before, after := s.lose()
	if before != nil {
		return lease.Grant{}, before
	}
	g, err := s.Store.Acquire(ctx, resource, h, ttl)
	if after != nil {
		return lease.Grant{}, after
	}
	return g, err
}

func (s *lossy) Renew(ctx context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	before, after := s.lose()
	if before != nil {
		return lease.Grant{}, before
	}
	g, err := s.Store.Renew(ctx, resource, h, t, ttl)
	if after != nil {
		return lease.Grant{}, after
	}
	return g, err
}

func (s *lossy) Release(ctx context.Context, resource string, h lease.Holder, t lease.Token) error {
	before, after := s.lose()
	if before != nil {
		return before
	}
	return errors.Join(after, s.Store.Release(ctx, resource, h, t))
}

func TestAnErrorThatSaysNothingConvictsNobody(t *testing.T) {
	for name, open := range map[string]script.Open{"mutex": openMutex, "memory": openMemory} {
		t.Run(name, func(t *testing.T) {
			mustHold(t, func(e kit.Env) lease.Store { return &lossy{Store: open(e)} }, kit.Options{})
		})
	}
}
