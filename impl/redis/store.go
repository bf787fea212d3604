package redis

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/lease"
)

//go:embed clock.lua
var clockLua string

//go:embed lease.lua
var leaseLua string

// Store is a [lease.Store] on one Redis server. It also tells of changes, see
// [Store.Watch], takes many calls at once, see [Store.Batch], and deletes leases,
// see [Store.Delete].
//
// TTLs are in whole microseconds, others rounded up. One whose end lies beyond
// the year 2255 ends then.
type Store struct {
	rdb    goredis.UniversalClient
	script *goredis.Script
	opts   Options
	tick   time.Duration // the unit of the script's times
	hub    *hub
}

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Batcher = (*Store)(nil)
	_ lease.Watcher = (*Store)(nil)
)

// New is a store on the server of rdb, which stays the caller's: [Dial] makes
// one. The error is a *[lease.ConfigError] that names the option, or that of
// [Check] for what is not in Options.Accept.
func New(ctx context.Context, rdb goredis.UniversalClient, opts Options) (*Store, error) {
	if rdb == nil {
		return nil, &lease.ConfigError{Field: "client", Reason: "must be set"}
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if !opts.Unchecked {
		if err := check(ctx, rdb, opts.accepts); err != nil {
			return nil, err
		}
	}
	return newStore(rdb, clockLua, time.Microsecond, opts), nil
}

// newStore is a store whose script gets `now`, in ticks, from what clock sets,
// which is Lua too.
func newStore(rdb goredis.UniversalClient, clock string, tick time.Duration, opts Options) *Store {
	return &Store{
		rdb:    rdb,
		script: goredis.NewScript(clock + leaseLua),
		opts:   opts,
		tick:   tick,
		hub:    newHub(rdb, opts.prefix()+"changes"),
	}
}

// Dial is a client with the settings that a store wants: one call is one request,
// which ends with its context. go-redis as such sends a request anew when it
// does not know what became of it. The rules bear that, as any late copy, but a
// release may then be answered with a *[lease.LostError] though it is the one
// that took effect; and a call outlives its deadline. It connects when needed.
func Dial(o goredis.Options) *goredis.Client {
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	return goredis.NewClient(&o)
}

// Acquire grants resource to holder for ttl as [lease.Record.Acquire] decides.
// The refusals are *[lease.HeldError], *[lease.DelayError] and
// *[lease.InvalidError], the last also for a holder that cannot be read back,
// and once the token 2^63-1 was issued. Any other error leaves the outcome
// unknown, unless it matches [ErrNotDone].
func (s *Store) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	return lease.Handler(s.call).Acquire(ctx, resource, holder, ttl)
}

// Renew extends holder's tenure as [lease.Record.Renew] decides. The refusals
// are *[lease.LapsedError], *[lease.LostError] and *[lease.InvalidError]; other
// errors are as in [Store.Acquire].
func (s *Store) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	return lease.Handler(s.call).Renew(ctx, resource, holder, token, ttl)
}

// Release ends holder's tenure as [lease.Record.Release] decides. Its errors are
// those of [Store.Renew].
func (s *Store) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	return lease.Handler(s.call).Release(ctx, resource, holder, token)
}

// Get says who holds resource. It writes when it is the first to see a lapse, so
// it needs the primary.
func (s *Store) Get(ctx context.Context, resource string) (lease.Observation, error) {
	return lease.Handler(s.call).Get(ctx, resource)
}

// Delete removes the lease as an operator would: it is free at once, and its
// tokens go on where they were. Its holder finds out at the next renewal.
func (s *Store) Delete(ctx context.Context, resource string) error {
	_, err := s.run(ctx, resource, "delete", lease.Request{})
	return err
}

// Close ends all watches and returns once that is done. It leaves the client as
// it is.
func (s *Store) Close() { s.hub.close() }

// call makes c, or refuses it where no state could make sense of it.
func (s *Store) call(ctx context.Context, c lease.Call) (lease.Reply, error) {
	if malformed(c.Request) {
		return c.To(lease.CodeInvalid), nil
	}
	return s.run(ctx, c.Resource, c.Op.String(), c.Request)
}

func (s *Store) run(ctx context.Context, resource, op string, req lease.Request) (lease.Reply, error) {
	if err := ctx.Err(); err != nil {
		return lease.Reply{}, notDone(op, resource, err)
	}
	cmd := s.script.Run(ctx, s.rdb, s.keys(resource), s.args(resource, op, req)...)
	return s.read(cmd, op, resource, req)
}

func (s *Store) keys(resource string) []string {
	tag := s.opts.prefix() + "{" + resource + "}"
	return []string{tag + ":lease", tag + ":token"}
}

// args are the arguments of lease.lua.
func (s *Store) args(resource, op string, req lease.Request) []any {
	before := max(s.opts.FirstToken, 1) - 1
	return []any{
		op, req.Holder.String(), decimal(req.Token), s.ticks(req.TTL), s.ticks(s.opts.LockDelay), decimal(before),
		s.hub.channel, resource,
	}
}

// malformed is whether req makes no sense whatever the state, as
// [lease.Record.Handle] has it. A holder whose text another has, too, would be
// taken for that one.
func malformed(req lease.Request) bool {
	if req.Op == lease.OpGet {
		return false
	}
	return !req.Holder.Valid() || req.Op != lease.OpAcquire && req.Token == 0 || req.Op != lease.OpRelease && req.TTL <= 0
}

// read is the reply in what lease.lua has answered.
func (s *Store) read(cmd *goredis.Cmd, op, resource string, req lease.Request) (lease.Reply, error) {
	answer, err := cmd.StringSlice()
	if err != nil {
		return lease.Reply{}, outcome(op, resource, err)
	}
	rep, err := s.parse(answer, req)
	if err != nil {
		return lease.Reply{}, fmt.Errorf("%s of %q: outcome unknown: the script answered %q: %w", op, resource, answer, err)
	}
	return rep, nil
}

var codes = map[string]lease.Code{
	"granted": lease.CodeGranted, "released": lease.CodeReleased,
	"held": lease.CodeHeld, "delayed": lease.CodeDelayed, "free": lease.CodeFree,
	"lapsed": lease.CodeLapsed, "lost": lease.CodeLost, "invalid": lease.CodeInvalid,
}

func (s *Store) parse(answer []string, req lease.Request) (lease.Reply, error) {
	if len(answer) != 4 {
		return lease.Reply{}, fmt.Errorf("4 values expected, not %d", len(answer))
	}
	code, ok := codes[answer[0]]
	if !ok {
		return lease.Reply{}, fmt.Errorf("no such code")
	}
	token, err := strconv.ParseUint(answer[1], 10, 64)
	if err != nil {
		return lease.Reply{}, err
	}
	current, err := lease.ParseHolder(answer[2])
	if err != nil {
		return lease.Reply{}, err
	}
	remaining, err := strconv.ParseInt(answer[3], 10, 64)
	if err != nil {
		return lease.Reply{}, err
	}
	rep := req.To(code)
	rep.Token, rep.Current, rep.Remaining = lease.Token(token), current, s.duration(remaining)
	if code == lease.CodeGranted {
		rep.TTL = s.duration(s.ticks(req.TTL))
	}
	return rep, nil
}

func decimal(t lease.Token) string { return strconv.FormatUint(uint64(t), 10) }

// ticks rounds up: a TTL cut short would lapse before its holder believes.
func (s *Store) ticks(d time.Duration) int64 {
	n := int64(d / s.tick)
	if d%s.tick > 0 {
		n++
	}
	return n
}

// duration saturates, as "for ever" does.
func (s *Store) duration(ticks int64) time.Duration {
	return time.Duration(min(ticks, math.MaxInt64/int64(s.tick))) * s.tick
}
