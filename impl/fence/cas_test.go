package fence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

func TestCarriesOnlyTheTokenOfATenureThatWasNotEnded(t *testing.T) {
	c := lease.Holder{Node: "c", Seq: 1}
	for _, test := range []struct {
		name    string
		d       lease.Durable
		carried []lease.Token // of 0 to 35
	}{
		{"never held", lease.Durable{}, nil},
		{"running", lease.Durable{Token: 34, Holder: c, TTL: ttl, Status: lease.Running}, []lease.Token{34}},
		{"lapse answered", lease.Durable{Token: 34, Holder: c, TTL: ttl, Status: lease.Lapsed}, []lease.Token{34}},
		{"released", lease.Durable{Token: 34, Holder: c, TTL: ttl, Status: lease.Free}, nil},
		{"deleted", lease.Durable{Token: 34}, nil},
		{"no token", lease.Durable{Holder: c, TTL: ttl, Status: lease.Running}, nil},
	} {
		var got []lease.Token
		for token := range lease.Token(36) {
			if fence.Carries(test.d, token) {
				got = append(got, token)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(test.carried) {
			t.Errorf("%s: carries %v, want %v", test.name, got, test.carried)
		}
	}
}

func TestNotCarriedErrorSaysWhy(t *testing.T) {
	l := &lockedLease{record: lease.Record{Durable: lease.Durable{Token: 34}}} // released
	s := fence.NewCompareAndSwap(l, resource)
	for token, why := range map[lease.Token]string{
		33: "the last one issued is 34",
		34: "it was released or deleted",
		35: "the last one issued is 34",
	} {
		want := fmt.Sprintf(`lease "shard-1" does not carry token %d: %s; stop, and acquire the lease anew`, token, why)
		for name, err := range map[string]error{"write": s.Write(t.Context(), token, "x", "1"), "fence": s.Fence(t.Context(), token)} {
			not, ok := errors.AsType[*fence.NotCarriedError](err)
			if !ok || *not != (fence.NotCarriedError{Resource: resource, Token: token, Latest: 34}) || !errors.Is(err, fence.ErrStale) {
				t.Errorf("%s under %d: %#v", name, token, err)
			} else if err.Error() != want {
				t.Errorf("%s under %d:\ngot  %v\nwant %s", name, token, err, want)
			}
		}
	}
}

type viewFunc func(f func(lease.Durable)) error

func (v viewFunc) View(_ context.Context, _ string, f func(lease.Durable)) error { return v(f) }

func TestNothingLandsUnlessTheLeaseWasSeen(t *testing.T) {
	errDown := errors.New("connection refused")
	for name, test := range map[string]struct {
		carrier viewFunc
		want    error
	}{
		"a carrier that fails":        {func(func(lease.Durable)) error { return errDown }, errDown},
		"a carrier that shows no one": {func(func(lease.Durable)) error { return nil }, fence.ErrStale},
	} {
		s := fence.NewCompareAndSwap(test.carrier, resource)
		if err := s.Write(t.Context(), 33, "x", "1"); !errors.Is(err, test.want) {
			t.Errorf("%s: write: %v", name, err)
		}
		if err := s.Fence(t.Context(), 33); !errors.Is(err, test.want) {
			t.Errorf("%s: fence: %v", name, err)
		}
		if v, ok, err := s.Read(t.Context(), "x"); ok || err != nil {
			t.Errorf("%s: x is %q, %v", name, v, err)
		}
	}
}

// While a holder writes as fast as it can, the lease is granted to the next.
// From the answer to that grant on, nothing of the old holder's lands.
func TestNothingLandsUnderATokenOnceTheNextIsGranted(t *testing.T) {
	ctx := t.Context()
	l := new(lockedLease)
	s := fence.NewCompareAndSwap(l, resource)
	acquire := func(seq uint64) lease.Token {
		rep := l.do(lease.Request{Op: lease.OpAcquire, Holder: lease.Holder{Node: "c", Seq: seq}, TTL: ttl})
		if rep.Code != lease.CodeGranted {
			t.Fatalf("acquire answered %v", rep.Code)
		}
		return rep.Token
	}
	token := acquire(1)
	for seq := uint64(2); seq <= 100; seq++ {
		wrote, granted, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			tooLate := 0
			for i := 0; tooLate < 2; i++ {
				select {
				case <-granted:
					tooLate++
				default:
				}
				err := s.Write(ctx, token, "x", fmt.Sprintf("%d.%d", token, i))
				if i == 0 {
					close(wrote)
				}
				if err != nil {
					ended <- err
					return
				}
			}
			ended <- errors.New("it was never refused")
		}()
		<-wrote
		l.mu.Lock()
		l.now += ttl
		l.mu.Unlock()
		next := acquire(seq)
		atGrant, _, err := s.Read(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		close(granted)
		if err := <-ended; !errors.Is(err, fence.ErrStale) {
			t.Fatalf("writer under %d ended with %v", token, err)
		}
		if later, _, err := s.Read(ctx, "x"); err != nil || later != atGrant {
			t.Fatalf("x went from %q to %q (%v) after token %d was granted", atGrant, later, err, next)
		}
		token = next
	}
}
