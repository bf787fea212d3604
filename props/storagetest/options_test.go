package storagetest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

func TestOptionsThatMakeNoSenseNameTheField(t *testing.T) {
	for field, o := range map[string]Options{
		"MaxToken": {MaxToken: 999},
		"Calls":    {Calls: -1},
		"NoRead":   {NoRead: true, NoFence: true},
	} {
		var bad *kit.OptionsError
		if err := o.Validate(); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%+v: %v, want it to name %s", o, err, field)
		}
	}
	if err := (Options{MaxToken: DefaultMaxToken + 1}).Validate(); err == nil {
		t.Error("a MaxToken above the default is accepted")
	}
	for _, o := range []Options{{}, {MaxToken: 1000}, {Volatile: true, NoRead: true}, {Carry: carry, NoFence: true}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// counting counts the calls of a storage.
type counting struct {
	fence.KV
	n *atomic.Int64
}

func (c counting) Write(ctx context.Context, token lease.Token, key, value string) error {
	c.n.Add(1)
	return c.KV.Write(ctx, token, key, value)
}

func (c counting) Fence(ctx context.Context, token lease.Token) error {
	c.n.Add(1)
	return c.KV.Fence(ctx, token)
}

func (c counting) Read(ctx context.Context, key string) (string, bool, error) {
	c.n.Add(1)
	return c.KV.Read(ctx, key)
}

// calls is how many calls the checks in a group make.
func calls(t *testing.T, o Options, e kit.Effort, group string) int64 {
	var n atomic.Int64
	for _, c := range Checks(func(env kit.Env) fence.KV { return counting{fromScratch(env), &n} }, o, e) {
		if strings.HasPrefix(c.Name, group) {
			if out := c.Run(); out.Failure != nil || out.Unknown != "" {
				t.Fatalf("%s came to %+v", c.Name, out)
			}
		}
	}
	return n.Load()
}

// All checks together keep to the budget, but for the fixed ones, which are few.
func TestTheQuickModeKeepsToItsCalls(t *testing.T) {
	if n := calls(t, Options{}, effort, ""); n < kit.DefaultCalls/4 || n > kit.DefaultCalls {
		t.Errorf("%d calls, want up to %d", n, kit.DefaultCalls)
	}
	if n := calls(t, Options{Calls: 1}, effort, ""); n > 1500 {
		t.Errorf("%d calls of the fixed checks", n)
	}
}

func TestTheLongModeAsksAHundredTimesAsMuch(t *testing.T) {
	few := calls(t, Options{Calls: 1000}, kit.Effort{}, "lockstep")
	many := calls(t, Options{Calls: 1000}, kit.Effort{Long: true}, "lockstep")
	if few == 0 || many < 50*few || many > 150*few {
		t.Errorf("%d calls and %d", few, many)
	}
}
