package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"fencepost/impl/clock"
)

// idle is the loop of an elector for "db" at 0s, which nobody runs.
func idle(t *testing.T, ctx context.Context, fencers ...Fencer) *loop {
	t.Helper()
	clk := clock.NewManual(0)
	e, err := NewElector(newMemory(t, clk, MemoryOptions{}), ElectorConfig{Resource: "db", Node: "alice", Timing: tenSeconds, Clock: clk, Fencers: fencers})
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLoop(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Whoever notices that the deadline has passed, by whatever event: the term lapsed.
func TestElectorCallsItALapseOnceTheDeadlineHasPassed(t *testing.T) {
	for _, c := range []struct {
		now  time.Duration
		want error
		ends time.Duration
	}{{9*sec - 1, ErrResigned, 9*sec - 1}, {9 * sec, ErrLapsed, 9 * sec}, {30 * sec, ErrLapsed, 9 * sec}} {
		l := idle(t, t.Context())
		l.beginTerm(0, ClientState{Holder: alice, Token: 7, Deadline: 9 * sec})
		j := <-l.begin
		l.warden.end(c.now, ErrResigned)
		if cause := context.Cause(j.ctx); !errors.Is(cause, c.want) {
			t.Errorf("at %v: %v, want %v", c.now, cause, c.want)
		}
		diff(t, "end", j.Deadline(), c.ends)
	}
}

func TestElectorBeginsNoTermAfterItsContextEnded(t *testing.T) {
	for _, ended := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := idle(t, ctx)
		if ended {
			cancel()
		}
		l.client.Receive(0, granted(l.client.Tick(0).Store, 7, 10*sec))
		l.settle(0, nil)
		diff(t, fmt.Sprintf("context ended %v: terms", ended), len(l.begin), map[bool]int{false: 1, true: 0}[ended])
	}
}

func TestElectorTakesAnOldAcknowledgementForNoStepBack(t *testing.T) {
	l := idle(t, t.Context(), fencerFunc(nil))
	for _, token := range []Token{2, 1} {
		l.take(result{to: &l.storages[0], call: &call{req: Request{Op: OpFence, Token: token}, cancel: func() {}}})
	}
	diff(t, "acknowledged", l.storages[0].acked, Token(2))
}

// How a Store's grant and error become the reply that the client takes.
func TestAnswersOfStoresAndStoragesAsReplies(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("rpc: %w", err) }
	for _, c := range []struct {
		op    Op
		err   error
		code  Code
		known bool
	}{
		{OpAcquire, nil, CodeGranted, true},
		{OpRenew, nil, CodeGranted, true},
		{OpRelease, nil, CodeReleased, true},
		{OpFence, nil, CodeFenced, true},
		{OpAcquire, wrap(&HeldError{}), CodeHeld, true},
		{OpRenew, wrap(&HeldError{}), CodeHeld, true}, // ends the term, not "try again"
		{OpAcquire, wrap(&DelayError{}), CodeDelayed, true},
		{OpRenew, wrap(&LapsedError{}), CodeLapsed, true},
		{OpRenew, wrap(&LostError{}), CodeLost, true},
		{OpRenew, wrap(ErrNotHeld), CodeLost, true},
		{OpAcquire, wrap(&InvalidError{}), CodeInvalid, true},
		{OpFence, wrap(ErrStale), CodeStale, true},
		{OpFence, wrap(ErrNotHeld), CodeNone, false},
		{OpRenew, wrap(ErrStale), CodeNone, false},
		{OpRenew, errLost, CodeNone, false},
		{OpAcquire, context.DeadlineExceeded, CodeNone, false},
		{OpFence, context.Canceled, CodeNone, false},
	} {
		req := Request{Op: c.op, Holder: alice, Token: 7, TTL: 10 * sec, Sent: 5 * sec}
		rep, known := answer(req, Grant{"db", alice, 7, 8 * sec}, c.err)
		want := Reply{Op: c.op, Code: c.code, Holder: alice, Asked: 7, Sent: 5 * sec}
		if c.code == CodeGranted {
			want.Token, want.TTL, want.Current = 7, 8*sec, alice
		}
		diff(t, fmt.Sprintf("%v, %v", c.op, c.err), rep, want)
		diff(t, "known", known, c.known)
	}
}
