package objectstore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/impl/objectstore"
	"fencepost/props"
	"fencepost/props/kit"
	"fencepost/props/livetest"
)

// unconditional writes whatever is there.
type unconditional struct{ objectstore.Objects }

func (u unconditional) PutObject(ctx context.Context, in *s3.PutObjectInput, o ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	in.IfMatch, in.IfNoneMatch = nil, nil
	return u.Objects.PutObject(ctx, in, o...)
}

// forcing releases whoever holds the lease: a write that looks at nothing.
type forcing struct{ *objectstore.Store }

func (s forcing) Release(ctx context.Context, resource string, _ lease.Holder, _ lease.Token) error {
	return s.Delete(ctx, resource)
}

// drawing takes its token from a counter before it asks for the lease.
type drawing struct {
	lease.Store
	counter *atomic.Uint64
	drawn   *sync.Map // what was drawn by holder, and the store's token
}

type drawn struct{ mine, real lease.Token }

func (s drawing) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	token := lease.Token(s.counter.Add(1))
	g, err := s.Store.Acquire(ctx, resource, holder, ttl)
	if err == nil {
		s.drawn.Store(holder, drawn{token, g.Token})
		g.Token = token
	}
	return g, err
}

// dated judges a lapse by Last-Modified, on a clock that is ahead.
type dated struct {
	*objectstore.Store
	objects *s3.Client
	ahead   time.Duration
}

func (s dated) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, holder, ttl)
	if lease.Refusal(err) != lease.CodeHeld {
		return g, err
	}
	name, key := bucket, s.Key(resource)
	out, err := s.objects.GetObject(ctx, &s3.GetObjectInput{Bucket: &name, Key: &key})
	if err != nil {
		return g, err
	}
	out.Body.Close()
	if time.Now().Add(s.ahead).After(out.LastModified.Add(ttl)) {
		if err := s.Delete(ctx, resource); err != nil {
			return g, err
		}
	}
	return s.Store.Acquire(ctx, resource, holder, ttl)
}

// caught runs the check of that name, which must convict.
func caught(t *testing.T, checks []kit.Check, name string) {
	t.Helper()
	f, err := kit.Convict(checks, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("caught: %v", f)
}

// Each wrong store is caught by the check that is about its fault.
func TestWrongStoresAreCaught(t *testing.T) {
	s := startServer(t)
	var counter atomic.Uint64
	var tokens sync.Map
	for _, wrong := range []struct {
		name, check string
		open        func(n int64) lease.Store
	}{
		{"a PUT without condition after a GET", "storm/all-at-once", func(int64) lease.Store {
			return mustStore(t, unconditional{s.client()}, objectstore.Options{})
		}},
		{"a release of whoever holds it", "rules/release-only-by-the-holder", func(int64) lease.Store {
			return forcing{mustStore(t, s.client(), objectstore.Options{})}
		}},
		{"a token drawn before the acquire", "rules/acquire-again-keeps-the-token", func(int64) lease.Store {
			return drawing{mustStore(t, s.client(), objectstore.Options{}), &counter, &tokens}
		}},
		{"Last-Modified judged on a clock ahead", "rules/acquire-held-is-refused", func(n int64) lease.Store {
			c := s.client()
			return dated{mustStore(t, c, objectstore.Options{}), c, time.Duration(n) * 10 * time.Second}
		}},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int64
			caught(t, livetest.StoreChecks(func(props.LiveEnv) lease.Store { return wrong.open(opened.Add(1)) }, livetest.Options{Options: promises()}), wrong.check)
		})
	}
}

func TestWrongStorageIsCaught(t *testing.T) {
	s := startServer(t)
	caught(t, livetest.StorageChecks(func(props.LiveEnv) fence.KV {
		return objectstore.NewStorage(unconditional{s.client()}, bucket, "unconditional")
	}, livetest.StorageOptions{}), "race/a-fence-in-the-middle")
}
