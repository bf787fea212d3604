// Package redlock is the algorithm Redlock as it was published, a lock from a
// majority of independent Redis servers: a subject, to show what it cannot give.
// Protect nothing with it.
//
// It must not know how it is judged, and does no better than what was published.
// Start at [Lock.Acquire].
//
// # What it cannot give
//
// It issues no fencing token: the random value that says whose a lock is does
// not rise, and to number the grants across servers would take a consensus that
// the algorithm does without. And that only one holds it rests on time: each
// server forgets by a wall clock, so one that restarts without its data, or
// whose clock steps forward, gives its vote twice, and two votes of one server
// make two majorities.
//
// Kleppmann, "How to do distributed locking" (2016), says so; Sanfilippo, "Is
// Redlock safe?" (2016), answers that clocks need not step, that a server can be
// kept from coming back for as long as the longest TTL, and that a random value
// compared and set by the storage fences, too. The first two are promises that
// operators have to keep and nothing checks. The third orders nobody: a storage
// that takes the value of whoever comes last takes that of an old leader who
// comes last. The tests of this package show on real servers what a restart, a
// step of a clock and the lack of a number do.
package redlock

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/clock"
)

// Lock is a lock on a number of servers that know nothing of each other.
type Lock struct {
	servers []*goredis.Client
	clk     clock.Clock
	timeout time.Duration
}

// New is a lock on servers, five in the published text. Each is given timeout to
// answer, which is to be small against the TTL.
func New(servers []*goredis.Client, clk clock.Clock, timeout time.Duration) *Lock {
	return &Lock{servers, clk, timeout}
}

// drift is what the published text takes off for the rates of the clocks: a
// hundredth, and 2 ms for the precision of an expiry.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

var (
	unlock = goredis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)
	extend = goredis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`)
)

// Acquire asks all servers, one after the other, to set resource to value, which
// nobody else ever used. With a majority of them, and time left, the lock is had
// for validity from now; otherwise what was set is taken back everywhere.
func (l *Lock) Acquire(ctx context.Context, resource, value string, ttl time.Duration) (validity time.Duration, ok bool) {
	return l.majority(ctx, resource, value, ttl, func(ctx context.Context, s *goredis.Client) bool {
		set, err := s.SetNX(ctx, resource, value, ttl).Result()
		return set && err == nil
	})
}

// Extend is an Acquire by whoever has the lock, under the same value.
func (l *Lock) Extend(ctx context.Context, resource, value string, ttl time.Duration) (validity time.Duration, ok bool) {
	return l.majority(ctx, resource, value, ttl, func(ctx context.Context, s *goredis.Client) bool {
		done, err := extend.Run(ctx, s, []string{resource}, value, ttl.Milliseconds()).Bool()
		return done && err == nil
	})
}

// Release takes value back wherever it still stands, and tells whether that was
// a majority.
func (l *Lock) Release(ctx context.Context, resource, value string) bool {
	return l.votes(ctx, func(ctx context.Context, s *goredis.Client) bool {
		done, err := unlock.Run(ctx, s, []string{resource}, value).Bool()
		return done && err == nil
	}) >= l.quorum()
}

func (l *Lock) majority(ctx context.Context, resource, value string, ttl time.Duration, vote func(context.Context, *goredis.Client) bool) (time.Duration, bool) {
	began := l.clk.Now()
	votes := l.votes(ctx, vote)
	validity := ttl - (l.clk.Now() - began) - drift(ttl)
	if votes >= l.quorum() && validity > 0 {
		return validity, true
	}
	l.Release(ctx, resource, value)
	return 0, false
}

func (l *Lock) quorum() int { return len(l.servers)/2 + 1 }

func (l *Lock) votes(ctx context.Context, vote func(context.Context, *goredis.Client) bool) (n int) {
	for _, s := range l.servers {
		ctx, cancel := context.WithTimeout(ctx, l.timeout)
		if vote(ctx, s) {
			n++
		}
		cancel()
	}
	return n
}
