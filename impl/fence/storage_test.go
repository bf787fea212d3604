package fence_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// flaky is a journal that can fail at its next entry, before or after the entry
// has become durable.
type flaky struct {
	entries
	next fault
}

type fault int

const (
	works fault = iota
	failsEmpty
	failsDurable
	panics
)

var errDisk = errors.New("disk full")

func (j *flaky) Append(e fence.Entry) error {
	switch j.next {
	case failsEmpty:
		return errDisk
	case panics:
		panic(errDisk)
	}
	_ = j.entries.Append(e) // never fails
	if j.next == failsDurable {
		return errDisk
	}
	return nil
}

// Every sequence of five steps (writes, fences, a restart, a crash in the middle
// of the step that follows) against the rule stated over the whole past: a
// write lands iff its token is at least every token that became durable before,
// and a read gives the write that landed last.
func TestStorageObeysTheRuleAcrossRestartsAndCrashes(t *testing.T) {
	type step struct {
		op    string
		token lease.Token
		fault fault
	}
	steps := []step{
		{"write", 1, works}, {"write", 2, works}, {"write", 3, works},
		{"fence", 1, works}, {"fence", 2, works},
		{"restart", 0, works},
		{"write", 2, failsEmpty}, {"write", 2, failsDurable}, {"fence", 3, failsDurable},
	}
	ctx := t.Context()
	seen := map[string]int{}
	for seq := range sequences(steps, 5) {
		j := new(flaky)
		s := fence.Restore(fence.Durable{}, j)
		var past []lease.Token // durable
		value, stopped := "", false
		var unread *string // durable, and shown only after a restart
		restart := func() {
			d, err := j.replay()
			if err != nil {
				t.Fatalf("%v: replay: %v", seq, err)
			}
			s = fence.Restore(d, j)
			if stopped = false; unread != nil {
				value, unread = *unread, nil
			}
		}
		for i, st := range seq {
			if st.op == "restart" {
				restart()
				continue
			}
			id := strconv.Itoa(i)
			j.next = st.fault
			var err error
			if st.op == "write" {
				err = s.Write(ctx, st.token, "x", id)
			} else {
				err = s.Fence(ctx, st.token)
			}
			low := slices.ContainsFunc(past, func(p lease.Token) bool { return p > st.token })
			known := st.op == "fence" && slices.Contains(past, st.token) // nothing to make durable
			want := "ok"
			switch {
			case stopped:
				want = "stopped"
			case low:
				want = "stale"
			case st.fault != works && !known:
				want, stopped = "stopped", true
				if st.fault == failsDurable {
					past = append(past, st.token)
					if st.op == "write" {
						unread = &id
					}
				}
			default:
				past = append(past, st.token)
				if st.op == "write" {
					value = id
				}
			}
			got := "ok"
			switch {
			case errors.Is(err, fence.ErrStale):
				got = "stale"
			case errors.Is(err, fence.ErrStopped):
				got = "stopped"
			case err != nil:
				got = err.Error()
			}
			if got != want {
				t.Fatalf("%v: step %d answered %s, want %s", seq, i, got, want)
			}
			if v, _, err := s.Read(ctx, "x"); v != value || err != nil {
				t.Fatalf("%v: after step %d x is %q (%v), want %q", seq, i, v, err, value)
			}
			seen[want]++
		}
		restart()
		if v, _, err := s.Read(ctx, "x"); v != value || err != nil {
			t.Fatalf("%v: after a last restart x is %q (%v), want %q", seq, v, err, value)
		}
		if values := s.Durable().Values; len(values) > 1 {
			t.Fatalf("%v: only x was ever written, and there is %v", seq, values)
		}
		if len(past) > 0 && s.Highest() != slices.Max(past) {
			t.Fatalf("%v: after a last restart the highest is %d", seq, s.Highest())
		}
	}
	for _, outcome := range []string{"ok", "stale", "stopped"} {
		if seen[outcome] == 0 {
			t.Errorf("no step was %s: %v", outcome, seen)
		}
	}
}

func TestStaleTokenErrorNamesBothTokens(t *testing.T) {
	var s fence.Storage
	if err := s.Fence(t.Context(), 34); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"write": s.Write(t.Context(), 33, "x", "1"),
		"fence": s.Fence(t.Context(), 33),
	} {
		stale, ok := errors.AsType[*fence.StaleTokenError](err)
		if !ok || *stale != (fence.StaleTokenError{Token: 33, Highest: 34}) || !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

func TestTokenZeroIsRefusedByName(t *testing.T) {
	var s fence.Storage
	cas := fence.NewCompareAndSwap(new(lockedLease), resource)
	for _, test := range []struct {
		err  error
		want string
	}{
		{s.Write(t.Context(), 0, "x", "1"), "token 0 is refused: no lease grants it; use the token of the grant"},
		{cas.Write(t.Context(), 0, "x", "1"), `lease "shard-1" does not carry token 0: no lease grants it; use the token of the grant`},
	} {
		if !errors.Is(test.err, fence.ErrStale) || test.err.Error() != test.want {
			t.Errorf("got  %v\nwant %s", test.err, test.want)
		}
	}
}

func TestEndedContextDoesNothing(t *testing.T) {
	var log entries
	l := &lockedLease{record: lease.Record{Durable: lease.Durable{Token: 33, Status: lease.Running}}}
	storage := fence.Restore(fence.Durable{}, &log)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, kv := range map[string]fence.KV{
		"Storage": storage, "CompareAndSwap": fence.NewCompareAndSwap(l, resource), "Unfenced": new(fence.Unfenced),
	} {
		if err := kv.Write(ended, 33, "x", "1"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: write: %v", name, err)
		}
		if err := kv.Fence(ended, 33); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: fence: %v", name, err)
		}
		if _, _, err := kv.Read(ended, "x"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: read: %v", name, err)
		}
		if v, ok, err := kv.Read(t.Context(), "x"); v != "" || ok || err != nil {
			t.Errorf("%s: x is %q, %v, %v", name, v, ok, err)
		}
	}
	if storage.Highest() != 0 || len(log) != 0 {
		t.Errorf("highest is %d, the journal has %v", storage.Highest(), log)
	}
}

func TestJournalFailureStopsTheStorageUntilItIsRestored(t *testing.T) {
	ctx := t.Context()
	j := new(flaky)
	s := fence.Restore(fence.Durable{}, j)
	if err := s.Write(ctx, 33, "x", "old"); err != nil {
		t.Fatal(err)
	}
	j.next = failsDurable
	err := s.Write(ctx, 34, "x", "new")
	want := `fenced storage has stopped: write of "x" under token 34 is not acknowledged: its journal failed: disk full; restore it from what the journal holds`
	if !errors.Is(err, fence.ErrStopped) || !errors.Is(err, errDisk) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if s.Highest() != 33 {
		t.Errorf("the state is ahead of the answer: %d", s.Highest())
	}

	// Were 33 admitted now, a replay would find it after 34.
	j.next = works
	if err := s.Write(ctx, 33, "x", "older"); !errors.Is(err, fence.ErrStopped) {
		t.Errorf("write after the failure: %v", err)
	}
	if err := s.Fence(ctx, 33); !errors.Is(err, fence.ErrStopped) {
		t.Errorf("fence after the failure: %v", err)
	}
	if v, _, err := s.Read(ctx, "x"); v != "old" || err != nil {
		t.Errorf("x is %q, %v", v, err)
	}
	d, err := j.replay()
	if err != nil || d.Highest != 34 || d.Values["x"] != "new" {
		t.Errorf("the journal holds %v, %v", d, err)
	}
}

func TestJournalPanicStopsTheStorage(t *testing.T) {
	j := &flaky{next: panics}
	s := fence.Restore(fence.Durable{}, j)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of the journal was swallowed")
			}
		}()
		_ = s.Write(t.Context(), 33, "x", "1") // does not return
	}()
	j.next = works
	if err := s.Write(t.Context(), 33, "x", "1"); !errors.Is(err, fence.ErrStopped) {
		t.Errorf("write after the panic: %v", err)
	}
}

func TestJournalGetsEachChangeOnce(t *testing.T) {
	ctx := t.Context()
	var log entries
	s := fence.Restore(fence.Durable{}, &log)
	for _, err := range []error{
		s.Fence(ctx, 33), s.Fence(ctx, 33), s.Write(ctx, 33, "x", "1"), s.Fence(ctx, 33), s.Write(ctx, 33, "x", "1"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Write(ctx, 32, "x", "0"); !errors.Is(err, fence.ErrStale) {
		t.Fatal(err)
	}
	// A repeated fence and a refusal change nothing.
	want := entries{{Token: 33, Fence: true}, {Token: 33, Key: "x", Value: "1"}, {Token: 33, Key: "x", Value: "1"}}
	if !slices.Equal(log, want) {
		t.Errorf("the journal has %v, want %v", log, want)
	}
}

func TestApplyRefusesAnEntryOutOfOrder(t *testing.T) {
	d := fence.Durable{Guard: fence.Guard{Highest: 34}, Values: map[string]string{"x": "2"}}
	for _, e := range []fence.Entry{{Token: 33, Key: "x", Value: "1"}, {Token: 33, Fence: true}, {Token: 0, Key: "x"}} {
		if err := d.Apply(e); !errors.Is(err, fence.ErrStale) {
			t.Errorf("%v: %v", e, err)
		}
	}
	if d.Highest != 34 || d.Values["x"] != "2" {
		t.Errorf("a refused entry left %v", d)
	}
}

func TestDurableSharesNothingWithItsStorage(t *testing.T) {
	ctx := t.Context()
	given := fence.Durable{Values: map[string]string{"x": "1"}}
	s := fence.Restore(given, nil)
	taken := s.Durable()
	given.Values["x"], taken.Values["x"] = "given", "taken"
	if v, _, err := s.Read(ctx, "x"); v != "1" || err != nil {
		t.Errorf("x is %q, %v", v, err)
	}
	taken = s.Durable()
	if err := s.Write(ctx, 33, "x", "2"); err != nil {
		t.Fatal(err)
	}
	if taken.Highest != 0 || !maps.Equal(taken.Values, map[string]string{"x": "1"}) {
		t.Errorf("the snapshot moved to %v", taken)
	}
}

// Writers under several tokens at once: whatever the interleaving, the journal
// is in order, has exactly the acknowledged writes, and ends in the state.
func TestConcurrentWritersKeepTheTokensInOrder(t *testing.T) {
	const writers, writes = 8, 200
	var log entries
	s := fence.Restore(fence.Durable{}, &log)
	landed := make([]int, writers+1)
	var wg sync.WaitGroup
	for token := 1; token <= writers; token++ {
		wg.Go(func() {
			for i := range writes {
				err := s.Write(t.Context(), lease.Token(token), "x", fmt.Sprintf("%d.%d", token, i))
				stale, isStale := errors.AsType[*fence.StaleTokenError](err)
				switch {
				case err == nil:
					landed[token]++
				case !isStale || stale.Highest <= lease.Token(token):
					t.Errorf("write under %d: %v", token, err)
				}
				if h := s.Highest(); h < lease.Token(token) {
					t.Errorf("the highest is %d after %d was processed", h, token)
				}
				if _, _, err := s.Read(t.Context(), "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()

	journaled := make([]int, writers+1)
	for _, e := range log {
		journaled[e.Token]++
	}
	if !slices.Equal(journaled, landed) {
		t.Errorf("acknowledged by token: %v, in the journal: %v", landed, journaled)
	}
	if landed[writers] != writes {
		t.Errorf("%d of %d writes under the highest token landed", landed[writers], writes)
	}
	d, err := log.replay()
	if got := s.Durable(); err != nil || got.Guard != d.Guard || !maps.Equal(got.Values, d.Values) {
		t.Errorf("the state is %v, the journal says %v, %v", got, d, err)
	}
}
