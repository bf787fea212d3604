package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/props/kit"
)

// The home-made locks that people put on Redis, each with the one flaw that it
// is known for, and otherwise as right as that lets it be: compare and delete,
// and compare and expire, are scripts, tokens come from a counter that is raised
// by whoever got the lock.

var (
	delIfMine    = goredis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	expireIfMine = goredis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
	// extendIfMine never shortens.
	extendIfMine = goredis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1`)
	// acquireAgain is what makes a retry by the holder idempotent.
	acquireAgain = goredis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[2])`)
	// setAndCount takes a free lock and its token in one step.
	setAndCount = goredis.NewScript(`
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return redis.call('INCR', KEYS[2])`)
)

// homemade is a lock made of SET NX PX. Its value is the holder and the token,
// as the caller has it.
type homemade struct {
	rdb    *goredis.Client
	prefix string
}

func (h homemade) lock(resource string) string  { return h.prefix + resource }
func (h homemade) count(resource string) string { return h.prefix + resource + ":count" }

func millis(ttl time.Duration) int64 { return max(1, int64((ttl+time.Millisecond-1)/time.Millisecond)) }

// acquire is the way to do it on one server, but for what nobody's counter
// survives.
func (h homemade) acquire(ctx context.Context, resource, holder string, ttl time.Duration) (token uint64, ok bool, err error) {
	keys := []string{h.lock(resource), h.count(resource)}
	for _, script := range []*goredis.Script{acquireAgain, setAndCount} {
		token, err := script.Run(ctx, h.rdb, keys, holder, millis(ttl)).Uint64()
		if err != nil || token > 0 {
			return token, err == nil, err
		}
	}
	return 0, false, nil
}

// mine is whether holder has the lock, and then under token.
func (h homemade) counted(ctx context.Context, resource string, token uint64) (bool, error) {
	latest, err := h.rdb.Get(ctx, h.count(resource)).Uint64()
	if errors.Is(err, goredis.Nil) {
		return false, nil
	}
	return latest == token, err
}

func (h homemade) renew(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (bool, error) {
	if ok, err := h.counted(ctx, resource, token); !ok || err != nil {
		return false, err
	}
	return extendIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, holder, millis(ttl)).Bool()
}

func (h homemade) release(ctx context.Context, resource, holder string, token uint64) (bool, error) {
	if ok, err := h.counted(ctx, resource, token); !ok || err != nil {
		return false, err
	}
	return delIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, holder).Bool()
}

// right has no flaw that a single server without restarts would show.
func (h homemade) right() kit.Funcs {
	return kit.Funcs{Acquire: h.acquire, Renew: h.renew, Release: h.release}
}

// deleting releases by DEL, whoever has the lock by then.
func (h homemade) deleting() kit.Funcs {
	f := h.right()
	f.Release = func(ctx context.Context, resource, _ string, _ uint64) (bool, error) {
		n, err := h.rdb.Del(ctx, h.lock(resource)).Result()
		return n > 0, err
	}
	return f
}

// comparing looks whose the lock is, and deletes it in a second step; gap is
// what a pause of the process makes of the time between the two.
func (h homemade) comparing(gap func(context.Context)) kit.Funcs {
	f := h.right()
	f.Release = func(ctx context.Context, resource, holder string, token uint64) (bool, error) {
		if ok, err := h.counted(ctx, resource, token); !ok || err != nil {
			return false, err
		}
		owner, err := h.rdb.Get(ctx, h.lock(resource)).Result()
		if errors.Is(err, goredis.Nil) || err == nil && owner != holder {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		gap(ctx)
		n, err := h.rdb.Del(ctx, h.lock(resource)).Result()
		return n > 0, err
	}
	return f
}

// tokenless has the same token for everybody, as a lock without one has.
func (h homemade) tokenless() kit.Funcs {
	f := h.right()
	f.Acquire = func(ctx context.Context, resource, holder string, ttl time.Duration) (uint64, bool, error) {
		_, ok, err := h.acquire(ctx, resource, holder, ttl)
		return 1, ok, err
	}
	f.Renew = func(ctx context.Context, resource, holder string, _ uint64, ttl time.Duration) (bool, error) {
		return extendIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, holder, millis(ttl)).Bool()
	}
	f.Release = func(ctx context.Context, resource, holder string, _ uint64) (bool, error) {
		return delIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, holder).Bool()
	}
	return f
}

// random takes the random value, which says whose a lock is, for a token: the
// value of the lock is that number.
func (h homemade) random() kit.Funcs {
	return kit.Funcs{
		Acquire: func(ctx context.Context, resource, holder string, ttl time.Duration) (uint64, bool, error) {
			// Equal holders have equal numbers, so that a retry is idempotent.
			mine := h.prefix + resource + ":value:" + holder
			if err := h.rdb.SetNX(ctx, mine, rand.Uint64()>>1|1, time.Minute).Err(); err != nil {
				return 0, false, err
			}
			value, err := h.rdb.Get(ctx, mine).Uint64()
			if err != nil {
				return 0, false, err
			}
			if again, err := extendIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, value, millis(ttl)).Bool(); again || err != nil {
				return value, again, err
			}
			ok, err := h.rdb.SetNX(ctx, h.lock(resource), value, ttl).Result()
			return value, ok, err
		},
		Renew: func(ctx context.Context, resource, _ string, token uint64, ttl time.Duration) (bool, error) {
			return extendIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, token, millis(ttl)).Bool()
		},
		Release: func(ctx context.Context, resource, _ string, token uint64) (bool, error) {
			return delIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, token).Bool()
		},
	}
}

// early draws the token before it tries to get the lock, so that whoever is
// late has a lower one than the holder before. The lock's value is holder and
// token.
func (h homemade) early() kit.Funcs {
	value := func(holder string, token uint64) string { return fmt.Sprintf("%s %d", holder, token) }
	return kit.Funcs{
		Acquire: func(ctx context.Context, resource, holder string, ttl time.Duration) (uint64, bool, error) {
			token, err := h.rdb.Incr(ctx, h.count(resource)).Uint64()
			if err != nil {
				return 0, false, err
			}
			ok, err := h.rdb.SetNX(ctx, h.lock(resource), value(holder, token), ttl).Result()
			return token, ok, err
		},
		Renew: func(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (bool, error) {
			return extendIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, value(holder, token), millis(ttl)).Bool()
		},
		Release: func(ctx context.Context, resource, holder string, token uint64) (bool, error) {
			return delIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, value(holder, token)).Bool()
		},
	}
}

// seconds has TTLs in whole seconds, cut off.
func (h homemade) seconds() kit.Funcs {
	f := h.right()
	f.Acquire = func(ctx context.Context, resource, holder string, ttl time.Duration) (uint64, bool, error) {
		return h.acquire(ctx, resource, holder, time.Duration(int(ttl.Seconds()))*time.Second)
	}
	f.Renew = func(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (bool, error) {
		return h.renew(ctx, resource, holder, token, time.Duration(int(ttl.Seconds()))*time.Second)
	}
	return f
}

// shortening renews by PEXPIRE, whatever is left.
func (h homemade) shortening() kit.Funcs {
	f := h.right()
	f.Renew = func(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (bool, error) {
		if ok, err := h.counted(ctx, resource, token); !ok || err != nil {
			return false, err
		}
		return expireIfMine.Run(ctx, h.rdb, []string{h.lock(resource)}, holder, millis(ttl)).Bool()
	}
	return f
}
