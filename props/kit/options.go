package kit

import (
	"fmt"
	"time"

	"fencepost/model"
)

// Options are what a lease store promises where correct stores differ. The
// zero Options are the strictest, and those of lease.Memory with a journal:
// each token the next integer, TTLs exact to the nanosecond, no lock delay,
// nothing forgotten at a restart.
type Options struct {
	// Tokens is the rule for the token of each new ownership:
	// [model.TokensNext], one more than the last, or [model.TokensRising], any
	// higher one, as where tokens are revisions of a database.
	Tokens model.TokenRule
	// Granularity is the unit of TTLs: others are rounded up to a multiple of
	// it, and what refusals say remains is rounded either way. 0: exact. (A store that rounds down lapses before its clients
	// believe, and is wrong.)
	Granularity time.Duration
	// MinTTL is the shortest TTL. Shorter ones are refused as invalid or
	// raised to it. 0: any above zero is granted.
	MinTTL time.Duration
	// MaxTTL is the longest TTL that anybody asks for; longer ones may be
	// refused. 0: any. At least a minute, and four times MinTTL and Granularity.
	// (A store that caps TTLs and says so in its grants needs none.)
	MaxTTL time.Duration
	// LockDelay is how long after a lapse, not after a release, the store
	// grants the lease to nobody. It counts from the lapse itself, which Late
	// may put off.
	LockDelay time.Duration
	// Late is how long after its TTL has run out a tenure may still be held,
	// as where a sweep ends leases now and then. 0: it lapses on time.
	Late time.Duration
	// RenewAfterLapse lets the last holder renew a lapsed tenure that nobody
	// else was granted meanwhile, as Kubernetes does.
	RenewAfterLapse bool
	// SteadyClock says that the store's clock goes on over a restart, such as
	// that of a database server which is never set back: a tenure goes on as if
	// there had been none. Without it each process has a clock of its own, and
	// a tenure is held for its whole TTL from the restart.
	SteadyClock bool
	// Volatile says that the store forgets everything with its process, its
	// tokens too, and whoever uses it knows: restarts are not tested.
	Volatile bool
	// Shared says that several processes use one durable state at once, as those
	// of a library over a database do: two at a time are checked as well, opened
	// in one Env, whose Durable then has to stand being shared. Without it a
	// process is the only one while it lives.
	Shared bool
	// Terse says that refusals carry no details: neither the holder nor how
	// long it has, nor what tells a lapse from a loss. A [Funcs] is terse.
	Terse bool
	// NoGet says that the store cannot say who holds a lease, as [Funcs]
	// without Get.
	NoGet bool
	// Calls is about how many calls of the store the quick mode makes, beside
	// some 200 of open, and the long mode a hundred times as many; where calls
	// take a few microseconds, races go on for some milliseconds more. Default
	// 20,000, or what [Pace] makes of some calls at the beginning where those
	// take long: say it for the same number on every machine. Below 2,000 some
	// checks learn too little to pass, and say so.
	Calls int
}

// DefaultCalls is [Options].Calls where that is zero and calls are cheap.
const DefaultCalls = 20_000

// OptionsError says which field of the options makes no sense.
type OptionsError struct{ Field, Reason string }

func (e *OptionsError) Error() string { return fmt.Sprintf("options: %s: %s", e.Field, e.Reason) }

// Validate returns an *[OptionsError] for the first field that makes no sense,
// or nil.
func (o Options) Validate() error {
	if o.Tokens != model.TokensNext && o.Tokens != model.TokensRising {
		return &OptionsError{"Tokens", fmt.Sprintf("%v is neither %v nor %v; a store without fencing tokens has nothing that a storage could check", o.Tokens, model.TokensNext, model.TokensRising)}
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"Granularity", o.Granularity}, {"MinTTL", o.MinTTL}, {"LockDelay", o.LockDelay}, {"Late", o.Late}} {
		if f.d < 0 || f.d > 24*time.Hour {
			return &OptionsError{f.name, fmt.Sprintf("%v is not between 0 and 24h", f.d)}
		}
	}
	if least := max(time.Minute, 4*o.MinTTL, 4*o.Granularity); o.MaxTTL != 0 && o.MaxTTL < least {
		return &OptionsError{"MaxTTL", fmt.Sprintf("%v is less than %v, a minute or four times MinTTL or Granularity", o.MaxTTL, least)}
	}
	if o.Calls < 0 {
		return &OptionsError{"Calls", fmt.Sprintf("%d is negative", o.Calls)}
	}
	return nil
}

// Effort is how hard to look.
type Effort struct {
	Long bool   // the nightly mode: a hundred times the calls
	Seed uint64 // of everything random
}

// Budget is how many calls of the store may be made under e, of those that
// are the given part of a whole of 100.
func (o Options) Budget(e Effort, part int) int {
	n := o.Calls
	if n == 0 {
		n = DefaultCalls
	}
	if e.Long {
		n *= 100
	}
	return max(n*part/100, 1)
}

// Promise is o as the model knows it.
func (o Options) Promise() model.Promise {
	return model.Promise{
		Tokens:          o.Tokens,
		Granularity:     int64(o.Granularity),
		MinTTL:          int64(o.MinTTL),
		LockDelay:       int64(o.LockDelay),
		Late:            int64(o.Late),
		RenewAfterLapse: o.RenewAfterLapse,
		SteadyClock:     o.SteadyClock,
		Terse:           o.Terse,
	}
}
