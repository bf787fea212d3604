package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
)

func recorder(t testing.TB, b *bytes.Buffer, now func() time.Duration) *linearizability.Recorder {
	t.Helper()
	meta := linearizability.DefaultMeta()
	meta.Late = 0
	r, err := linearizability.NewRecorder(b, meta, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var a, b = lease.Holder{Node: "a", Seq: 1, Nonce: 10}, lease.Holder{Node: "b", Seq: 1, Nonce: 11}

// TestRecordedRunOfTheLibraryHolds takes a lease through all that can happen to
// it, and a storage through all that it answers.
func TestRecordedRunOfTheLibraryHolds(t *testing.T) {
	var out bytes.Buffer
	clk := clock.NewManual(time.Hour)
	r := recorder(t, &out, clk.Now)
	memory, err := lease.NewMemory(clk, lease.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store := record.Store(memory, r)
	disk := record.NewStorage(&fence.Storage{}, "disk", r)
	ctx := t.Context()
	step := func(what string, want error, err error) {
		t.Helper()
		if !errors.Is(err, want) && !(want == nil && err == nil) {
			t.Fatalf("%s: got %v, want %v", what, err, want)
		}
		clk.Advance(100 * time.Millisecond)
	}
	get := func() error { _, err := store.Get(ctx, "shard"); return err }
	acquire := func(h lease.Holder) error { _, err := store.Acquire(ctx, "shard", h, time.Second); return err }
	renew := func(h lease.Holder, t lease.Token) error {
		_, err := store.Renew(ctx, "shard", h, t, time.Second)
		return err
	}
	read := func() error { _, _, err := disk.Read(ctx, "x"); return err }

	step("get", nil, get())
	step("acquire", nil, acquire(a))
	step("get", nil, get())
	var held *lease.HeldError
	if err := acquire(b); !errors.As(err, &held) || held.Holder != a {
		t.Fatalf("acquire of a held lease: %v", err)
	}
	step("renew", nil, renew(a, 1))
	step("renew", lease.ErrNotHeld, renew(b, 1))
	step("read", nil, read())
	step("fence", nil, disk.As(a).Fence(ctx, 1))
	step("write", nil, disk.As(a).Write(ctx, 1, "x", "old"))
	clk.Advance(time.Second)
	step("renew", lease.ErrNotHeld, renew(a, 1))
	step("acquire", nil, acquire(b))
	step("write", nil, disk.As(b).Write(ctx, 2, "x", "new"))
	step("write", lease.ErrStale, disk.As(a).Write(ctx, 1, "x", "zombie"))
	step("read", nil, read())
	step("release", nil, store.Release(ctx, "shard", b, 2))
	step("release", lease.ErrNotHeld, store.Release(ctx, "shard", b, 2))
	var invalid *lease.InvalidError
	if _, err := store.Acquire(ctx, "shard", a, 0); !errors.As(err, &invalid) {
		t.Fatalf("acquire for no time: %v", err)
	}

	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	h, err := linearizability.Read(&out, "run")
	if err != nil {
		t.Fatal(err)
	}
	v, err := linearizability.Check(ctx, h, linearizability.Options{
		Model:   linearizability.Model{Name: linearizability.ModelFencepost},
		AtLeast: linearizability.Activity{Operations: 17, Takeovers: 1, Writes: 2, Stale: 1},
	})
	if err != nil || v.Result != linearizability.Holds || len(v.Findings) > 0 {
		t.Errorf("%s %v", v, err)
	}
}

// answers is a store and a storage that give one answer to everything.
type answers struct{ err error }

func (s answers) Acquire(context.Context, string, lease.Holder, time.Duration) (lease.Grant, error) {
	return lease.Grant{Token: 7, TTL: time.Second}, s.err
}

func (s answers) Renew(context.Context, string, lease.Holder, lease.Token, time.Duration) (lease.Grant, error) {
	return lease.Grant{Token: 7, TTL: time.Second}, s.err
}
func (s answers) Release(context.Context, string, lease.Holder, lease.Token) error { return s.err }
func (s answers) Get(context.Context, string) (lease.Observation, error) {
	return lease.Observation{Holder: a, Token: 7}, s.err
}
func (s answers) Fence(context.Context, lease.Token) error                 { return s.err }
func (s answers) Write(context.Context, lease.Token, string, string) error { return s.err }
func (s answers) Read(context.Context, string) (string, bool, error)       { return "v", true, s.err }

func TestEveryAnswerIsRecordedAsWhatItProves(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("on the way: %w", err) }
	for _, c := range []struct {
		err                    error
		acquire, renew, others string
	}{
		{nil, `"ok","f":"acquire","token":7,"ttl":1000000000}`, `"ok","f":"renew","ttl":1000000000}`, `"ok","f":`},
		{&lease.HeldError{Holder: b}, `"fail","f":"acquire","error":"held","holder":"b#1.b"}`, ``, ``},
		{&lease.DelayError{}, `"fail","f":"acquire","error":"delay"}`, ``, ``},
		{&lease.LapsedError{}, ``, `"fail","f":"renew","error":"lapsed"}`, ``},
		{&lease.LostError{}, ``, `"fail","f":"renew","error":"lost"}`, ``},
		{&lease.InvalidError{}, `"fail","f":"acquire","error":"invalid"}`, `"fail","f":"renew","error":"invalid"}`, ``},
		{context.Canceled, `"info","f":"acquire","error":"on the way: context canceled"}`, `"info","f":"renew","error":"on the way: context canceled"}`, `"info","f":`},
	} {
		var out bytes.Buffer
		r := recorder(t, &out, func() time.Duration { return 0 })
		fake := answers{}
		if c.err != nil {
			fake.err = wrap(c.err)
		}
		s := record.Store(fake, r)
		kv := record.NewStorage(fake, "disk", r).As(a)
		last := func() string {
			if err := r.Flush(); err != nil {
				t.Error(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			_, end, _ := strings.Cut(lines[len(lines)-1], `"type":`)
			return end
		}
		expect := func(what, want string, err error) {
			t.Helper()
			if !errors.Is(err, c.err) {
				t.Errorf("%s: the caller gets %v, want %v", what, err, c.err)
			}
			if want != "" && !strings.HasPrefix(last(), want) {
				t.Errorf("%v: recorded %s, want %s", c.err, last(), want)
			}
		}
		_, err := s.Acquire(t.Context(), "shard", a, time.Second)
		expect("acquire", c.acquire, err)
		_, err = s.Renew(t.Context(), "shard", a, 7, time.Second)
		expect("renew", c.renew, err)
		expect("release", c.others, s.Release(t.Context(), "shard", a, 7))
		_, err = s.Get(t.Context(), "shard")
		expect("get", c.others, err)
		expect("fence", c.others, kv.Fence(t.Context(), 7))
		expect("write", c.others, kv.Write(t.Context(), 7, "k", "v"))
		_, _, err = kv.Read(t.Context(), "k")
		expect("read", c.others, err)
	}
}

func TestStaleIsRecordedWithTheHighest(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fence.StaleTokenError{Token: 1, Highest: 9}, `"type":"fail","f":"write","error":"stale","highest":9}`},
		{&fence.NotCarriedError{Token: 1}, `"type":"fail","f":"write","error":"not-carried"}`},
	} {
		var out bytes.Buffer
		r := recorder(t, &out, func() time.Duration { return 0 })
		if err := record.NewStorage(answers{c.err}, "disk", r).Write(t.Context(), 1, "k", "v"); !errors.Is(err, c.err) {
			t.Errorf("the caller gets %v", err)
		}
		if err := r.Flush(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), `"owner"`) {
			t.Errorf("recorded\n%swant %s, and no owner", out.String(), c.want)
		}
	}
}

// hung is a store that answers when its context ends, and no sooner.
type hung struct{ lease.Store }

func (hung) Acquire(ctx context.Context, _ string, _ lease.Holder, _ time.Duration) (lease.Grant, error) {
	<-ctx.Done()
	return lease.Grant{}, context.Cause(ctx)
}

func TestAContextThatEndsLeavesInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var out bytes.Buffer
		r := recorder(t, &out, func() time.Duration { return time.Since(start) })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := record.Store(hung{}, r).Acquire(ctx, "shard", a, time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller gets %v", err)
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		h, err := linearizability.Read(&out, "h")
		if err != nil {
			t.Fatal(err)
		}
		if ops := h.Ops(); len(ops) != 1 || ops[0].Type != linearizability.Info || h.Events[ops[0].Return].Time != int64(3*time.Second) {
			t.Errorf("got %+v, want one operation, unknown after 3s", h.Events)
		}
	})
}

func TestLeadEndsWithItsContextOrItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var out bytes.Buffer
		r := recorder(t, &out, func() time.Duration { return time.Since(start) })
		term := lease.Term{Resource: "shard", Holder: a, Token: 3}
		failed := errors.New("no disk")

		ctx, cancel := context.WithCancel(t.Context())
		err := record.Lead(r, func(ctx context.Context, got lease.Term) error {
			time.Sleep(2 * time.Second)
			cancel()
			time.Sleep(time.Second) // the work lingers, the belief does not
			return failed
		})(ctx, term)
		if err != failed {
			t.Errorf("got %v, want the error of the work", err)
		}
		err = record.Lead(r, func(context.Context, lease.Term) error {
			time.Sleep(time.Second)
			return nil
		})(t.Context(), term)
		if err != nil {
			t.Error(err)
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		h, err := linearizability.Read(&out, "h")
		if err != nil {
			t.Fatal(err)
		}
		var times []time.Duration
		for _, e := range h.Events {
			times = append(times, time.Duration(e.Time))
		}
		if want := []time.Duration{0, 2 * time.Second, 3 * time.Second, 4 * time.Second}; fmt.Sprint(times) != fmt.Sprint(want) {
			t.Errorf("leads at %v, want %v", times, want)
		}
		e := h.Events[0]
		if token, _ := e.Field("token").Uint(); e.F != "lead" || token != 3 || e.Field("owner").String() != `"a#1.a"` {
			t.Errorf("got %+v", e)
		}
	})
}
