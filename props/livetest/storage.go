package livetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/storagetest"
)

// The rules of storages that are looked at, by their names in package
// storagetest.
const (
	lowerTokenIsRefused   = "lower-token-is-refused"
	equalTokenLands       = "equal-token-lands"
	higherTokenLands      = "higher-token-lands"
	oneGuardForAllKeys    = "one-guard-for-all-keys"
	fenceBars             = "fence-bars-lower-tokens"
	fenceIsRefused        = "fence-of-a-lower-token-is-refused"
	fenceWritesNothing    = "fence-writes-nothing"
	tokenZeroIsRefused    = "token-zero-is-refused"
	refusedWriteNothing   = "refused-write-changes-nothing"
	readGivesLast         = "read-gives-what-landed-last"
	afterAReleaseNothing  = "after-a-release-nothing-lands"
	onlyTheCarriedToken   = "only-the-carried-token-lands"
	restartKeepsToken     = "restart-keeps-the-highest-token"
	restartKeepsData      = "restart-keeps-what-landed"
	concurrentCallsLinear = "linearizable"
)

// storage is a fenced storage under check, whose tokens only ever rise: it is
// the same data for all checks.
type storage struct {
	w      *world[fence.KV]
	leases *world[lease.Store] // nil: tokens are counted
	o      StorageOptions

	highest lease.Token
	holder  lease.Holder // of the lease, if anybody
	granted time.Duration
	lines   []line
	began   time.Duration
	keys    int
}

// begin begins a check.
func (s *storage) begin() {
	s.began, s.lines = s.w.clk.Now(), nil
}

// grant is the token of a new leader. The one before it is superseded.
func (s *storage) grant() lease.Token {
	if s.leases == nil {
		s.count()
		s.tell("a new leader", fmt.Sprintf("token %d", s.highest))
		return s.highest
	}
	s.release()
	store := plain{s.leases.process(0), s.w.clk}
	h := s.leases.holder("leader")
	s.granted = s.w.clk.Now()
	g, err := store.Acquire(context.Background(), s.o.Resource, h, s.o.TTL)
	for end := s.granted + s.o.TTL; lease.Refusal(err) == lease.CodeHeld && s.w.clk.Now() < end; {
		// Somebody's of an earlier run.
		sleep(s.w.clk, s.w.clk.Now()+s.o.TTL/20)
		s.granted = s.w.clk.Now()
		g, err = store.Acquire(context.Background(), s.o.Resource, h, s.o.TTL)
	}
	if err != nil {
		panic(unproved(fmt.Sprintf("no lease was granted to write under: %v", err)))
	}
	s.holder, s.highest = h, g.Token
	s.tell("the lease is granted", fmt.Sprintf("token %d", g.Token))
	return g.Token
}

// count is the next token where no lease gives them: above all that an earlier
// run may have used, as far as the storage tells.
func (s *storage) count() {
	if s.highest++; s.highest > 1 {
		return
	}
	err := s.call(0, func(ctx context.Context, kv fence.KV) error {
		if s.o.NoFence {
			return kv.Write(ctx, s.highest, s.key(), "first")
		}
		return kv.Fence(ctx, s.highest)
	})
	if stale, ok := errors.AsType[*fence.StaleTokenError](err); ok {
		s.highest = stale.Highest
	}
	s.highest++ // one that nobody has written under
}

// release ends the tenure of the leader, if there is one.
func (s *storage) release() {
	if s.leases == nil || s.holder.IsZero() {
		return
	}
	err := plain{s.leases.process(0), s.w.clk}.Release(context.Background(), s.o.Resource, s.holder, s.highest)
	if err != nil && lease.Refusal(err) == lease.CodeNone {
		panic(unproved(fmt.Sprintf("the lease was not released: %v", err)))
	}
	s.holder = lease.Holder{}
	s.tell("its holder releases the lease", "released")
}

// key is one that nobody has used.
func (s *storage) key() string {
	s.keys++
	return fmt.Sprintf("k-%s-%d", s.w.name, s.keys)
}

func (s *storage) tell(what, said string) {
	s.lines = append(s.lines, line{s.w.clk.Now() - s.began, what, said, 1})
}

func (s *storage) call(process int, f func(context.Context, fence.KV) error) error {
	kv := s.w.process(process)
	return guarded(context.Background(), s.w.clk, patience, func(ctx context.Context) error { return f(ctx, kv) })
}

// ended looks at what ends a check: a call that says nothing of its token.
func (s *storage) ended(err error) error {
	last := s.lines[len(s.lines)-1]
	if f := fault(last.asked, err); f != nil {
		f.Story, f.Log = layOut(s.lines, ""), s.w.log.String()
		panic(conviction{f})
	}
	if err != nil && !errors.Is(err, fence.ErrStale) {
		panic(unproved(fmt.Sprintf("%s: %v", last.asked, err)))
	}
	return err
}

func (s *storage) write(process int, token lease.Token, key, value string) error {
	err := s.call(process, func(ctx context.Context, kv fence.KV) error { return kv.Write(ctx, token, key, value) })
	s.tell(fmt.Sprintf("connection %d writes %s=%s under token %d", process, key, value, token), said(err, "landed"))
	return s.ended(err)
}

func (s *storage) fence(process int, token lease.Token) error {
	err := s.call(process, func(ctx context.Context, kv fence.KV) error { return kv.Fence(ctx, token) })
	s.tell(fmt.Sprintf("connection %d fences token %d", process, token), said(err, "fenced"))
	return s.ended(err)
}

func said(err error, done string) string {
	switch {
	case err == nil:
		return done
	case errors.Is(err, fence.ErrStale):
		return "refused as stale"
	}
	return "error: " + err.Error()
}

// finds is what a read finds, and has to: "" is nothing.
func (s *storage) finds(process int, key, value, rule string) {
	if s.o.NoRead {
		return
	}
	var got string
	var found bool
	err := s.call(process, func(ctx context.Context, kv fence.KV) (err error) {
		got, found, err = kv.Read(ctx, key)
		return err
	})
	is := "nothing"
	if found {
		is = got
	}
	s.tell(fmt.Sprintf("connection %d reads %s", process, key), said(err, is))
	s.ended(err)
	s.want(found == (value != "") && got == value, rule, "%s", orNothing(value))
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// lands wants the last call to have been admitted, unless its lease may be over.
func (s *storage) lands(err error, rule string) {
	if err != nil && s.leases != nil && s.w.clk.Now() > s.granted+s.o.TTL*9/10 {
		panic(unproved("the lease may have run out meanwhile: raise StorageOptions.TTL"))
	}
	s.want(err == nil, rule, "it lands: no higher token was granted")
}

func (s *storage) refused(err error, rule string) {
	s.want(err != nil, rule, "refused as stale")
}

// want is what a correct storage answers.
func (s *storage) want(ok bool, rule, format string, args ...any) {
	if ok {
		return
	}
	says, read := storagetest.Says(rule)
	last, want := s.lines[len(s.lines)-1], fmt.Sprintf(format, args...)
	panic(conviction{&kit.Failure{
		Rule: rule, Says: says, Read: read, Log: s.w.log.String(),
		What:  fmt.Sprintf("%s: %s; expected: %s", last.asked, last.answer, want),
		Story: layOut(s.lines, want),
	}})
}

// try makes a check of the storage, and again where it proves nothing.
func (s *storage) try(f func()) (out kit.Outcome) {
	for range attempts {
		if out = s.once(f); out.Unknown == "" {
			return out
		}
	}
	return out
}

func (s *storage) once(f func()) (out kit.Outcome) {
	s.begin()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case conviction:
			out = kit.Outcome{Failure: r.failure}
		case unproved:
			out = kit.Outcome{Unknown: string(r)}
		case skipped:
			out = kit.Outcome{Skipped: string(r)}
		default:
			panic(r)
		}
	}()
	f()
	return kit.Outcome{Covered: fmt.Sprintf("%d steps in %v", len(s.lines), (s.w.clk.Now() - s.began).Round(time.Millisecond))}
}
