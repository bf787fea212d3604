package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/props/kit"
	"fencepost/props/script"
	"fencepost/props/storetest"
)

func TestAFailureFitsOnAScreenAndMarksTheAnswer(t *testing.T) {
	convicted := 0
	for _, open := range []script.Open{openCheckThenSet, openShared} {
		for _, c := range all(open, kit.Options{}, kit.Effort{}) {
			f := c.Run().Failure
			if f == nil {
				continue
			}
			convicted++
			if f.Rule == "" || f.Says == "" || f.What == "" || f.Read == "" || strings.Contains(f.What, "\n") {
				t.Errorf("%s: says too little, or too much: %+v", c.Name, f)
			}
			if want := strings.TrimPrefix(c.Name, "concurrency/"); f.Rule != want {
				t.Errorf("%s: the rule is called %s, not %s", c.Name, f.Rule, want)
			}
			story := strings.Join(f.Story, "\n")
			if len(f.Story) > 10 || strings.Count(story, "◄") != 1 {
				t.Errorf("%s: want at most 10 lines, one of them marked:\n%s", c.Name, story)
			}
			if strings.Contains(story, "#") || strings.Contains(f.What, "#") {
				t.Errorf("%s: candidates have names, not identities:\n%s\n%s", c.Name, f.What, story)
			}
		}
	}
	if convicted < 8 {
		t.Errorf("only %d convictions", convicted)
	}
}

func TestAConvictingHistoryIsAFileThatConvicts(t *testing.T) {
	f := storetest.Linearizability(openCheckThenSet, kit.Options{}, kit.Effort{}).Run().Failure
	if f == nil || f.File == nil {
		t.Fatalf("no file: %+v", f)
	}
	if !strings.HasPrefix(f.File.Name, "linearizability-") || !strings.HasSuffix(f.File.Name, ".jsonl") {
		t.Errorf("the file is called %s", f.File.Name)
	}
	h, err := linearizability.Read(bytes.NewReader(f.File.Data), f.File.Name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := linearizability.Check(context.Background(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelAuto}})
	if err != nil || v.Result != linearizability.Violated {
		t.Errorf("the file is found %v: %v", v, err)
	}
	if n := len(h.Ops()); n > 9 {
		t.Errorf("%d operations where two are enough", n)
	}
}

// refusing is a right store that answers every refusal with an error of its own.
type refusing struct{ lease.Store }

var errNo = errors.New("no")

func (s refusing) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, h, ttl)
	if err != nil {
		err = errNo
	}
	return g, err
}

func TestNothingIsKnownOfAStoreThatHidesItsRefusals(t *testing.T) {
	open := func(e kit.Env) lease.Store { return refusing{openMutex(e)} }
	for _, c := range all(open, kit.Options{}, kit.Effort{}) {
		switch out := c.Run(); c.Name {
		case "concurrency/one-of-many-acquires-wins":
			if out.Failure != nil || out.Covered != "" || !strings.Contains(out.Unknown, "no") {
				t.Errorf("%s: %+v", c.Name, out)
			}
		default:
			if out.Failure != nil {
				t.Errorf("%s: %+v", c.Name, out)
			}
		}
	}
}

// silent never does anything.
type silent struct{ lease.Store }

func (silent) Acquire(_ context.Context, resource string, _ lease.Holder, _ time.Duration) (lease.Grant, error) {
	return lease.Grant{}, &lease.HeldError{Resource: resource}
}

func (silent) Get(_ context.Context, resource string) (lease.Observation, error) {
	return lease.Observation{Resource: resource}, nil
}

func TestAStoreThatGrantsNothingIsConvicted(t *testing.T) {
	for _, c := range all(func(kit.Env) lease.Store { return silent{} }, kit.Options{}, kit.Effort{}) {
		if out := c.Run(); out.Failure == nil {
			t.Errorf("%s: %+v", c.Name, out)
		}
	}
}

// A store that gives up while it is called, on a goroutine that is not the
// check's.
type failing struct {
	lease.Store
	e kit.Env
}

func (s failing) Acquire(context.Context, string, lease.Holder, time.Duration) (lease.Grant, error) {
	s.e.Fatal(errors.New("no such table"))
	return lease.Grant{}, nil
}

func TestNothingIsKnownOfAStoreThatCannotBeSetUp(t *testing.T) {
	for name, open := range map[string]script.Open{
		"at once": func(e kit.Env) lease.Store { e.Fatal(errors.New("no such table")); return nil },
		"later":   func(e kit.Env) lease.Store { return failing{openMutex(e), e} },
	} {
		for _, c := range all(open, kit.Options{}, kit.Effort{}) {
			if out := c.Run(); out.Failure != nil || out.Covered != "" || !strings.Contains(out.Unknown, "no such table") {
				t.Errorf("%s: %s: %+v", name, c.Name, out)
			}
		}
	}
}

// ofFuncs is a store of plain functions, without a Get.
func ofFuncs(open script.Open) script.Open {
	return func(e kit.Env) lease.Store {
		s := open(e)
		holder := func(text string) lease.Holder {
			h, err := lease.ParseHolder(text)
			if err != nil {
				e.Fatal(err)
			}
			return h
		}
		refused := func(err error) (bool, error) {
			var held *lease.HeldError
			if errors.As(err, &held) || errors.Is(err, lease.ErrNotHeld) {
				return false, nil
			}
			return err == nil, err
		}
		return kit.Funcs{
			Acquire: func(ctx context.Context, resource, h string, ttl time.Duration) (uint64, bool, error) {
				g, err := s.Acquire(ctx, resource, holder(h), ttl)
				ok, err := refused(err)
				return uint64(g.Token), ok, err
			},
			Renew: func(ctx context.Context, resource, h string, token uint64, ttl time.Duration) (bool, error) {
				_, err := s.Renew(ctx, resource, holder(h), lease.Token(token), ttl)
				return refused(err)
			},
			Release: func(ctx context.Context, resource, h string, token uint64) (bool, error) {
				return refused(s.Release(ctx, resource, holder(h), lease.Token(token)))
			},
		}.Store()
	}
}

func TestAStoreOfFunctionsNeedsNoGet(t *testing.T) {
	mustHold(t, ofFuncs(openMemory), kit.Options{})
	for _, c := range all(ofFuncs(openCheckThenSet), kit.Options{}, kit.Effort{}) {
		if out := c.Run(); out.Failure == nil && c.Name != "concurrency/leases-are-apart" {
			t.Errorf("%s: not convicted: %+v", c.Name, out)
		}
	}
}

func ExampleConcurrency() {
	// A store that looks whether the lease is free, and takes it, in two steps.
	open := openCheckThenSet
	for _, check := range storetest.Concurrency(open, kit.Options{}, kit.Effort{}) {
		if f := check.Run().Failure; f != nil {
			fmt.Println(check.Name)
		}
	}
	// Output:
	// concurrency/one-of-many-acquires-wins
	// concurrency/retry-in-flight-keeps-the-token
	// concurrency/renew-against-takeover
	// concurrency/release-against-acquire
	// concurrency/release-is-final
	// concurrency/tokens-rise
}

func ExampleLinearizability() {
	open := func(e kit.Env) lease.Store {
		store, err := lease.NewMemory(e.Clock, lease.MemoryOptions{})
		if err != nil {
			e.Fatal(err)
		}
		return store
	}
	out := storetest.Linearizability(open, kit.Options{}, kit.Effort{}).Run()
	fmt.Println(out.Failure == nil, out.Unknown == "", out.Covered != "")
	// Output: true true true
}
