package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// Guard is Lua to put before a script of your own that writes on the strength of
// a token. It defines
//
//	admit(key, token)
//
// where key is [Storage.GuardKey], passed in KEYS, and token is decimal, passed
// in ARGV. Call it before the first write, and return what it returns unless
// that is nil:
//
//	local stale = admit(KEYS[1], ARGV[1])
//	if stale then return stale end
//
// The check and the writes are then one atomic step. [Stale] makes the error of
// package fence of what such a script returns. All keys that it writes should
// belong to one resource, whose guard they share: Prefix{resource}:anything.
//
//go:embed guard.lua
var Guard string

var (
	fenceScript = goredis.NewScript(Guard + `return admit(KEYS[1], ARGV[1])`)
	writeScript = goredis.NewScript(Guard + `
local stale = admit(KEYS[1], ARGV[1])
if stale then return stale end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])`)
)

// Stale is the *[fence.StaleTokenError] that err of a script with [Guard] stands
// for, token being the one that was passed; any other err is returned as it is.
func Stale(err error, token lease.Token) error {
	if !goredis.HasErrorPrefix(err, "STALETOKEN ") {
		return err
	}
	_, after, _ := strings.Cut(err.Error(), "STALETOKEN ")
	digits, _, _ := strings.Cut(after, " ") // Redis may add which script it was
	highest, perr := strconv.ParseUint(digits, 10, 64)
	if perr != nil {
		return errors.Join(err, perr)
	}
	return &fence.StaleTokenError{Token: token, Highest: lease.Token(highest)}
}

// Storage is a [fence.KV] in one hash, whose guard stands beside it. It belongs
// to one resource: tokens of two leases cannot be compared. The server needs the
// settings that a [Store] needs: one that forgets the highest token lets an old
// leader write.
type Storage struct {
	rdb   goredis.UniversalClient
	guard string
	data  string
}

var _ fence.KV = (*Storage)(nil)

// NewStorage is the storage under the lease on resource, at the keys
// prefix{resource}:guard and prefix{resource}:data; an empty prefix is
// "fencepost:". The lease may be kept on another server. It asks the server
// nothing: see [Check].
func NewStorage(rdb goredis.UniversalClient, prefix, resource string) *Storage {
	tag := Options{Prefix: prefix}.prefix() + "{" + resource + "}"
	return &Storage{rdb: rdb, guard: tag + ":guard", data: tag + ":data"}
}

// GuardKey is the key of the highest token seen, for scripts with [Guard].
func (s *Storage) GuardKey() string { return s.guard }

// Fence bars all tokens below token from now on. The error is a
// *[fence.StaleTokenError], or matches [ErrNotDone], or leaves the outcome open.
func (s *Storage) Fence(ctx context.Context, token lease.Token) error {
	if err := ctx.Err(); err != nil {
		return notDone("fence", s.guard, err)
	}
	err := fenceScript.Run(ctx, s.rdb, []string{s.guard}, decimal(token)).Err()
	return s.told("fence", s.guard, err, token)
}

// Write lands value under key if no higher token came before. Its errors are
// those of [Storage.Fence].
func (s *Storage) Write(ctx context.Context, token lease.Token, key, value string) error {
	if err := ctx.Err(); err != nil {
		return notDone("write", key, err)
	}
	err := writeScript.Run(ctx, s.rdb, []string{s.guard, s.data}, decimal(token), key, value).Err()
	return s.told("write", key, err, token)
}

// Read gives the value that landed last under key.
func (s *Storage) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	value, err = s.rdb.HGet(ctx, s.data, key).Result()
	switch {
	case errors.Is(err, goredis.Nil):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("read of %q: %w", key, err)
	}
	return value, true, nil
}

func (s *Storage) told(op, what string, err error, token lease.Token) error {
	if err == nil || errors.Is(err, goredis.Nil) {
		return nil // a script that returns nothing answers nil
	}
	if stale := Stale(err, token); errors.Is(stale, lease.ErrStale) {
		return stale
	}
	return outcome(op, what, err)
}
