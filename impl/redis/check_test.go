package redis

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/redis/internal/server"
)

// named are the settings that err objects to.
func named(err error) (settings []string) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range joined.Unwrap() {
		if s, ok := errors.AsType[*SettingError](err); ok {
			settings = append(settings, s.Setting)
		}
	}
	return settings
}

// Each setting that lets the server forget a token is named, and nothing else.
func TestCheckNamesTheSetting(t *testing.T) {
	s := server.Start(t, server.Durable...)
	ctx := t.Context()
	if err := Check(ctx, s.Control); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ setting, wrong, right string }{
		{"appendonly", "no", "yes"},
		{"appendfsync", "everysec", "always"},
		{"no-appendfsync-on-rewrite", "yes", "no"},
		{"maxmemory-policy", "allkeys-lru", "noeviction"},
	} {
		if err := s.Control.ConfigSet(ctx, c.setting, c.wrong).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := New(ctx, s.Control, Options{})
		if got := named(err); !slices.Equal(got, []string{c.setting}) {
			t.Errorf("with %s %s: %v; expected an objection to it alone", c.setting, c.wrong, err)
		}
		t.Logf("%v", err)
		if _, err := New(ctx, s.Control, Options{Accept: []string{c.setting}}); err != nil {
			t.Errorf("%s was accepted: %v", c.setting, err)
		}
		if err := s.Control.ConfigSet(ctx, c.setting, c.right).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// What spares keys without an expiry spares the counter.
	if err := s.Control.ConfigSet(ctx, "maxmemory-policy", "volatile-lru").Err(); err != nil {
		t.Fatal(err)
	}
	if err := Check(ctx, s.Control); err != nil {
		t.Error(err)
	}
}

// A managed service forbids CONFIG: it is said what then.
func TestCheckSaysWhatToDoWithoutConfig(t *testing.T) {
	s := server.Start(t, server.Durable...)
	ctx := t.Context()
	if err := s.Control.ACLSetUser(ctx, "app", "on", ">secret", "~*", "&*", "+@all", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	rdb := Dial(goredis.Options{Addr: s.Addr, Username: "app", Password: "secret"})
	defer rdb.Close()
	_, err := New(ctx, rdb, Options{})
	if got := named(err); !slices.Equal(got, []string{"CONFIG"}) || !strings.Contains(err.Error(), "ask the provider") {
		t.Errorf("%v; expected: CONFIG is refused, and whom to ask", err)
	}
	for _, o := range []Options{{Accept: []string{"CONFIG"}}, {Unchecked: true}} {
		if _, err := New(ctx, rdb, o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A replica is refused, and a primary that has one, too.
func TestCheckNamesReplicas(t *testing.T) {
	primary := server.Start(t, server.Durable...)
	host, port, _ := strings.Cut(primary.Addr, ":")
	replica := server.Start(t, append(slices.Clone(server.Durable), "--replicaof", host, port)...)
	ctx := t.Context()
	eventually(t, "the replica is connected", func() bool {
		info, err := primary.Control.Info(ctx, "replication").Result()
		return err == nil && fields(info)["connected_slaves"] == strconv.Itoa(1)
	})
	if got := named(Check(ctx, primary.Control)); !slices.Equal(got, []string{"connected_slaves"}) {
		t.Errorf("the primary: %v", got)
	}
	if got := named(Check(ctx, replica.Control)); !slices.Equal(got, []string{"role"}) {
		t.Errorf("the replica: %v", got)
	}
}
