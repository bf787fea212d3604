package nats_test

import (
	"context"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/impl/nats"
	"fencepost/model"
	"fencepost/props"

	"github.com/nats-io/nats.go/jetstream"
)

// promises are those of the store: TTLs are exact, and the clock is one that goes
// on while a server is down.
func promises() props.Options {
	return props.Options{Tokens: model.TokensRising, RenewAfterLapse: true, SteadyClock: true}
}

func open(env props.LiveEnv, url string) jetstream.JetStream {
	js, err := dial(url)
	if err != nil {
		env.Fatal(err)
	}
	context.AfterFunc(env.Context, js.Conn().Close)
	return js
}

func opener(url string, opts nats.Options) func(props.LiveEnv) lease.Store {
	return func(env props.LiveEnv) lease.Store {
		s, err := nats.New(env.Context, open(env, url), leases, opts)
		if err != nil {
			env.Fatal(err)
		}
		return s
	}
}

// deleter deletes a key as "nats kv del" does.
func deleter(t *testing.T, url string) func(context.Context, string) error {
	js := connect(t, url)
	return func(ctx context.Context, resource string) error {
		kv, err := js.KeyValue(ctx, leases)
		if err != nil {
			return err
		}
		return kv.Delete(ctx, nats.Key(resource))
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	props.TestLiveStore(t, opener(c.url(), nats.Options{}), props.LiveOptions{
		Options: promises(),
		Restart: func(ctx context.Context) error { return c.restart(ctx, 0) },
		Delete:  deleter(t, c.url()),
	})
}

func TestStorage(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	props.TestLiveStorage(t, func(env props.LiveEnv) fence.KV {
		s, err := nats.NewStorage(env.Context, open(env, c.url()), data, "accounts")
		if err != nil {
			env.Fatal(err)
		}
		return s
	}, props.LiveStorageOptions{Restart: func(ctx context.Context) error { return c.restart(ctx, 0) }})
}
