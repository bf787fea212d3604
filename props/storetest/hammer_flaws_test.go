package storetest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/storetest"
)

// flawed is a store under one lock, with one flaw in what it answers: each of
// the sentences of the checks with several callers is true of one.
type flawed struct {
	e    kit.Env
	flaw string

	mu   sync.Mutex
	rows map[string]row
	all  int // grants of all leases
}

func (s *flawed) Acquire(_ context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := s.rows[resource], s.e.Clock.Now()
	held := !r.holder.IsZero() && now < r.until
	switch s.flaw {
	case "a retry is a new ownership":
		if held && r.holder == h {
			r.holder = lease.Holder{}
		}
	case "a retry is refused":
		if held && r.holder == h {
			return lease.Grant{}, &lease.HeldError{Resource: resource, Holder: h, Token: r.token}
		}
	case "a refusal names whoever asks":
		if held && r.holder != h {
			return lease.Grant{}, &lease.HeldError{Resource: resource, Holder: h, Token: r.token}
		}
	case "a refusal tells the next token":
		if held && r.holder != h {
			return lease.Grant{}, &lease.HeldError{Resource: resource, Holder: r.holder, Token: r.token + 1}
		}
	case "lapses early":
		if held && now >= r.until-1 {
			r.holder = lease.Holder{}
		}
	case "grants a lease to two":
		if held && r.holder != h {
			return lease.Grant{Resource: resource, Holder: h, Token: r.token + 1, TTL: ttl}, nil
		}
	case "keeps what was released":
		if r.holder.IsZero() && r.token > 0 {
			return lease.Grant{}, &lease.HeldError{Resource: resource}
		}
	}
	next, g, err := r.acquire(now, resource, h, ttl)
	if err == nil && next.token != r.token {
		switch s.flaw {
		case "a token is skipped":
			next.token++
		case "tokens begin anew":
			next.token = 1
		case "tokens fall":
			next.token = 1000 - r.token
			if r.token > 0 {
				next.token = r.token - 1
			}
		}
		if s.all++; s.flaw == "a grant is forgotten" && s.all%3 == 0 {
			next = row{token: next.token}
		}
		g.Token = next.token
	}
	s.rows[resource] = next
	return g, err
}

func (s *flawed) Renew(_ context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := s.rows[resource], s.e.Clock.Now()
	switch s.flaw {
	case "renews what has lapsed":
		if r.holder == h && r.token == t && now >= r.until {
			r.until = now + 1
		}
	case "renews anything":
		return lease.Grant{Resource: resource, Holder: h, Token: t, TTL: ttl}, nil
	case "renews too short":
		if now >= r.until-1 {
			return lease.Grant{}, &lease.LapsedError{}
		}
	}
	next, g, err := r.renew(now, resource, h, t, ttl)
	s.rows[resource] = next
	return g, err
}

func (s *flawed) Release(_ context.Context, resource string, h lease.Holder, t lease.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := s.rows[resource], s.e.Clock.Now()
	switch s.flaw {
	case "releases twice":
		if r.token == t && r.holder.IsZero() {
			return nil
		}
	case "refuses releases":
		return &lease.LostError{}
	case "releases nothing":
		return nil
	}
	next, err := r.release(now, resource, h, t)
	s.rows[resource] = next
	return err
}

func (s *flawed) Get(_ context.Context, resource string) (lease.Observation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[resource].get(s.e.Clock.Now(), resource), nil
}

func TestEachFlawIsConvictedInItsWords(t *testing.T) {
	for _, c := range []struct{ flaw, by, says string }{
		{"a retry is a new ownership", "retry-in-flight-keeps-the-token", "a asked twice for one lease, and got two tokens"},
		{"a retry is refused", "retry-in-flight-keeps-the-token", "was refused the lease that it was granted at the same time"},
		{"a retry is refused", "release-is-final", "a was refused a lease that nobody else had"},
		{"a refusal names whoever asks", "one-of-many-acquires-wins", "was told that"},
		{"a refusal tells the next token", "one-of-many-acquires-wins", "was told that the lease was held under token 2, and it was granted under 1"},
		{"lapses early", "renew-against-takeover", "was granted the lease 1ns before the lapse of a's tenure"},
		{"grants a lease to two", "one-of-many-acquires-wins", "were both granted the lease, under the tokens 1 and 2"},
		{"grants a lease to two", "release-against-acquire", ""},
		{"grants a lease to two", "tokens-rise", ""},
		{"keeps what was released", "release-against-acquire", "a has released it, and d is refused the lease"},
		{"keeps what was released", "leases-are-apart", "has released it, and d is refused the lease"},
		{"a token is skipped", "release-against-acquire", "it must get token 3"},
		{"a token is skipped", "tokens-rise", "it must get token"},
		{"tokens begin anew", "renew-against-takeover", "it must get token 2"},
		{"tokens begin anew", "tokens-rise", "token 1 was granted twice"},
		{"tokens fall", "tokens-rise", "had been granted to"},
		{"a grant is forgotten", "one-of-many-acquires-wins", "were both granted the lease"},
		{"renews what has lapsed", "renew-against-takeover", "a's tenure was renewed after its lapse"},
		{"renews anything", "renew-against-takeover", "a's tenure was renewed, and"},
		{"renews too short", "renew-against-takeover", "a's renewal was refused 1ns before the lapse"},
		{"releases twice", "release-against-acquire", "one tenure was released twice"},
		{"refuses releases", "release-against-acquire", "a had the lease, and could not release it"},
		{"refuses releases", "release-is-final", "a had the lease, and could not release it"},
		{"refuses releases", "tokens-rise", "had the lease, and could not release it"},
		{"refuses releases", "leases-are-apart", "was granted this lease under token 1, and does not have it"},
		{"releases nothing", "release-is-final", "a has released it, and d is refused the lease"},
		{"lapses early", "linearizability", ""},
		{"renews what has lapsed", "linearizability", ""},
		{"tokens begin anew", "linearizability", "token 1 of p"},
		{"a token is skipped", "linearizability", ""},
		{"a retry is a new ownership", "linearizability", ""},
	} {
		t.Run(c.flaw+"/"+c.by, func(t *testing.T) {
			open := func(e kit.Env) lease.Store { return &flawed{e: e, flaw: c.flaw, rows: map[string]row{}} }
			checks := append(storetest.Concurrency(open, kit.Options{}, kit.Effort{}), storetest.Linearizability(open, kit.Options{}, kit.Effort{}))
			for _, check := range checks {
				if strings.TrimPrefix(check.Name, "concurrency/") != c.by {
					continue
				}
				out := check.Run()
				if out.Failure == nil || !strings.Contains(out.Failure.What, c.says) {
					t.Errorf("want %q: %+v\n%s", c.says, out, tale(out))
				} else {
					t.Log(tale(out))
				}
			}
		})
	}
}

func TestTheFlawedStoreIsRightWithoutAFlaw(t *testing.T) {
	mustHold(t, func(e kit.Env) lease.Store { return &flawed{e: e, rows: map[string]row{}} }, kit.Options{})
}
