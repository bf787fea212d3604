package storetest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// Checks are all there are for the store that open makes, the plainest first:
// whoever mends what the first failure says has mended most of the others. A
// call that takes [kit.Silence] ends them all: those after it are skipped.
func Checks(open script.Open, o kit.Options, e kit.Effort) []kit.Check {
	return checks(open, o, e, kit.Silence)
}

// checks are those of a store whose calls return within limit, or never do.
func checks(open script.Open, o kit.Options, e kit.Effort, limit time.Duration) []kit.Check {
	o = paced(open, o, kit.NewWatch(limit))
	w := kit.NewWatch(limit)
	open = kit.Watched(w, open)
	checks := slices.Concat(
		Rules(open, o),
		[]kit.Check{Many(open, o, e)},
		Malformed(open, o),
		Watch(open, o),
		Lockstep(open, o, e),
		[]kit.Check{Exploration(open, o, e)},
		Random(open, o, e),
		Concurrency(open, o, e),
		[]kit.Check{Linearizability(open, o, e)},
		Shared(open, o, e),
	)
	for i, c := range checks {
		checks[i].Run = func() kit.Outcome { return hinted(o, c.Run()) }
	}
	return w.Over(checks)
}

// watched is one check of what open makes, by itself.
func watched(open script.Open, check func(script.Open) kit.Outcome) kit.Outcome {
	w := kit.NewWatch(kit.Silence)
	return w.Run(func() kit.Outcome { return check(kit.Watched(w, open)) })
}

// hinted is out with what to declare if it is no fault.
func hinted(o kit.Options, out kit.Outcome) kit.Outcome {
	if f := out.Failure; f != nil && f.Hint == "" {
		f.Hint = meant[f.Rule]
		if o.SteadyClock {
			f.Hint = strings.TrimPrefix(f.Hint, hintSteady)
		}
	}
	return out
}

const hintSteady = "A store whose clock goes on over a restart, such as a database server's, declares it: Options.SteadyClock. "

// meant is what to declare where a rule is broken on purpose.
var meant = func() map[string]string {
	const (
		volatile = "A store that is to forget everything with its process declares it: Options.Volatile. What is to survive a crash belongs into Env.Dir or Durable."
		terse    = "Refusals without details are declared: Options.Terse."
	)
	const background = "A store that reads any clock but Env.Clock never sees the TTL pass. One that ends leases in the background offers Settle (kit.Settler), and is waited for. "
	h := map[string]string{}
	for rule, hint := range map[model.Rule]string{
		model.RuleRestartTenure:  hintSteady + volatile,
		model.RuleRestartCounter: volatile,
		model.RuleRestartLapse:   volatile,
		model.RuleRestartRelease: volatile,
		model.RuleNamesHolder:    terse,
		model.RuleRemaining:      "A remaining time that is off by a little comes from another clock than Env.Clock. " + terse + " TTLs that are rounded up: Options.Granularity.",
		model.RuleTokenNext:      "Tokens that rise by more than one, such as revisions of a database, are declared: Options.Tokens = model.TokensRising.",
		model.RuleOnTime:         background + "Leases that end a while after their TTL, by a sweep for example, are declared: Options.Late; TTLs that are rounded up: Options.Granularity.",
		model.RuleRestartEnds:    hintSteady + "Leases that end a while after their TTL, by a sweep for example, are declared: Options.Late; TTLs that are rounded up: Options.Granularity.",
		model.RuleRenewHeld:      "A store that lets the last holder renew what nobody took meanwhile declares it: Options.RenewAfterLapse.",
		model.RuleAcquireFree:    "A pause after a lapse is declared: Options.LockDelay; TTLs that are too short or too long for the store: Options.MinTTL, Options.MaxTTL.",
		model.RuleMalformed:      "TTLs that are too short or too long for the store are declared: Options.MinTTL, Options.MaxTTL.",
	} {
		h[rule.String()] = hint
	}
	h[forever.name] = "Leases that end a while after their TTL, by a sweep for example, are declared: Options.Late."
	return h
}()

// once is f for many checks: the first that asks runs it. (sync.OnceValue panics
// where open has ended the goroutine; here the next one runs it again.)
func once[T any](f func() T) func() T {
	var mu sync.Mutex
	var ran *T
	return func() T {
		mu.Lock()
		defer mu.Unlock()
		if ran == nil {
			v := f()
			ran = &v
		}
		return *ran
	}
}
