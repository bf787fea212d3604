package livetest

import (
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// spans are the TTLs to look at, from the least that is promised: each is held
// for all of it. What whole seconds cannot say is among them.
func (o Options) spans() map[string]time.Duration {
	least := max(o.MinTTL, 50*time.Millisecond)
	spans := map[string]time.Duration{
		"minimum":                  least,
		"minimum-and-a-nanosecond": least + 1,
		"one-and-a-half-minimums":  least + least/2,
	}
	if least <= 1500*time.Millisecond {
		spans["1.5s"] = 1500 * time.Millisecond
	}
	if least <= 2*time.Second {
		spans["1999ms"] = 1999 * time.Millisecond
	}
	if least > time.Second {
		spans["a-second-and-a-half-more"] = least + 1500*time.Millisecond
	}
	return spans
}

// lasts has a TTL held for all of it.
func lasts(ttl time.Duration) func(*trial) {
	return func(t *trial) {
		a, b := t.candidate("a", 0), t.candidate("b", 1)
		held := a.mustAcquire(ttl)
		if held.grant.TTL < ttl && t.o.MaxTTL == 0 {
			t.convict(model.RuleGrantTTL, "all of the TTL: it is not below the least that is promised, nor above the most")
		}
		b.mustLapse(a, held)
	}
}

// belowMinimum asks for less than the least TTL.
func (t *trial) belowMinimum() {
	if t.o.MinTTL <= time.Millisecond {
		panic(skipped("any TTL is granted: see Options.MinTTL"))
	}
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	for _, ttl := range []time.Duration{1, t.o.MinTTL / 2} {
		held := a.acquire(ttl)
		switch held.code {
		case lease.CodeInvalid:
			b.mustRelease(b.mustAcquire(t.ttl)) // nothing has changed
		case lease.CodeGranted:
			if held.grant.TTL < ttl {
				t.convict(model.RuleGrantTTL, "refused as invalid, or raised")
			}
			b.mustRelease(b.mustLapse(a, held))
		default:
			t.want(false, model.RuleAcquireFree, "refused as invalid, or granted for longer")
		}
	}
}
