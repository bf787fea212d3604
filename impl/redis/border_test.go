package redis

import (
	"errors"
	"math"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
)

// Lua's numbers cannot tell 2^53 from 2^53+1. Tokens are told apart there.
func TestTokensAreExactBeyondDoubles(t *testing.T) {
	s := server.Start(t, server.Durable...)
	ctx := t.Context()
	const border = 1 << 53
	store := open(t, s, Options{FirstToken: border})
	for i, holder := range []lease.Holder{alice, bob, alice.Next(), bob.Next()} {
		want := lease.Token(border + i)
		g, err := store.Acquire(ctx, "r", holder, time.Minute)
		if err != nil || g.Token != want {
			t.Fatalf("acquire %d: token %d, %v; expected: %d", i, g.Token, err, want)
		}
		for _, other := range []lease.Token{want - 1, want + 1} {
			if _, err := store.Renew(ctx, "r", holder, other, time.Minute); !errors.Is(err, lease.ErrNotHeld) {
				t.Errorf("renewal under %d of the tenure under %d: %v; expected: refused", other, want, err)
			}
		}
		if err := store.Release(ctx, "r", holder, want); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheLastTokenIsTheLast(t *testing.T) {
	s := server.Start(t, server.Durable...)
	ctx := t.Context()
	store := open(t, s, Options{FirstToken: math.MaxInt64})
	g, err := store.Acquire(ctx, "r", alice, time.Minute)
	if err != nil || g.Token != math.MaxInt64 {
		t.Fatalf("token %d, %v; expected: 2^63-1", g.Token, err)
	}
	if err := store.Release(ctx, "r", alice, g.Token); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Acquire(ctx, "r", bob, time.Minute); lease.Refusal(err) != lease.CodeInvalid {
		t.Errorf("acquire after the last token: %v; expected: invalid", err)
	}
	if got, err := store.Get(ctx, "r"); err != nil || got.Token != math.MaxInt64 || !got.Holder.IsZero() {
		t.Errorf("%+v, %v; expected: nobody, token 2^63-1", got, err)
	}
	if _, err := New(ctx, store.rdb, Options{FirstToken: math.MaxInt64 + 1}); err == nil {
		t.Error("a first token of 2^63 was accepted")
	}
}

// The longest TTL is "for ever", not "in the past".
func TestTheLongestTTLIsForEver(t *testing.T) {
	s := server.Start(t, server.Durable...)
	store := open(t, s, Options{})
	g, err := store.Acquire(t.Context(), "r", alice, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	if g.TTL < 200*365*24*time.Hour {
		t.Errorf("granted for %v", g.TTL)
	}
	var held *lease.HeldError
	if _, err := store.Acquire(t.Context(), "r", bob, time.Second); !errors.As(err, &held) || held.Remaining < 200*365*24*time.Hour {
		t.Errorf("%v; expected: held for two hundred years", err)
	}
}

// The guard compares tokens as what they are: by length, then by digits.
func TestGuardComparesTokensExactly(t *testing.T) {
	s := server.Start(t, server.Durable...)
	ctx := t.Context()
	kv := NewStorage(dial(t, s), "", "r")
	for _, c := range []struct {
		token lease.Token
		lands bool
	}{
		{0, false}, {9, true}, {10, true}, {9, false},
		{1 << 53, true}, {1<<53 + 1, true}, {1 << 53, false}, {1<<53 + 1, true},
		{math.MaxUint64, true}, {math.MaxUint64 - 1, false}, {math.MaxUint64, true},
	} {
		err := kv.Write(ctx, c.token, "k", "v")
		if c.lands != (err == nil) || !c.lands && !errors.Is(err, lease.ErrStale) {
			t.Errorf("write under %d: %v; expected to land: %v", c.token, err, c.lands)
		}
	}
}

// A guard that compares Lua's numbers lets a stale write land at the border:
// what the strings are for.
func TestAGuardOfDoublesWouldLetAStaleWriteLand(t *testing.T) {
	s := server.Start(t, server.Durable...)
	doubles := goredis.NewScript(`
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1`)
	var landed []int64
	for _, token := range []lease.Token{1<<53 + 1, 1 << 53} {
		n, err := doubles.Run(t.Context(), s.Control, []string{"guard"}, decimal(token)).Int64()
		if err != nil {
			t.Fatal(err)
		}
		landed = append(landed, n)
	}
	if landed[1] != 1 {
		t.Fatalf("%v: doubles are exact there after all", landed)
	}
}

// A refusal by the guard says what was seen.
func TestStaleTellsTheHighestToken(t *testing.T) {
	s := server.Start(t, server.Durable...)
	kv := NewStorage(dial(t, s), "", "r")
	if err := kv.Fence(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	err := kv.Write(t.Context(), 6, "k", "v")
	var stale *fence.StaleTokenError
	if !errors.As(err, &stale) || *stale != (fence.StaleTokenError{Token: 6, Highest: 7}) {
		t.Errorf("%v; expected: 6 is stale, 7 was seen", err)
	}
	if _, ok, err := kv.Read(t.Context(), "k"); ok || err != nil {
		t.Errorf("it landed: %v, %v", ok, err)
	}
}
