package storetest

import (
	"slices"

	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// Checks are all there are for the store that open makes, the plainest first:
// whoever mends what the first failure says has mended most of the others.
func Checks(open script.Open, o kit.Options, e kit.Effort) []kit.Check {
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
	)
	for i, c := range checks {
		checks[i].Run = func() kit.Outcome {
			out := c.Run()
			if f := out.Failure; f != nil && f.Hint == "" {
				f.Hint = meant[f.Rule]
			}
			return out
		}
	}
	return checks
}

// meant is what to declare where a rule is broken on purpose.
var meant = func() map[string]string {
	const (
		volatile = "A store that is to forget everything with its process declares it: Options.Volatile. What is to survive a crash belongs into Env.Dir or Durable."
		terse    = "Refusals without details are declared: Options.Terse."
	)
	h := map[string]string{}
	for rule, hint := range map[model.Rule]string{
		model.RuleRestartTenure:  volatile,
		model.RuleRestartCounter: volatile,
		model.RuleRestartLapse:   volatile,
		model.RuleRestartRelease: volatile,
		model.RuleNamesHolder:    terse,
		model.RuleRemaining:      terse + " TTLs that are rounded up: Options.Granularity.",
		model.RuleTokenNext:      "Tokens that rise by more than one, such as revisions of a database, are declared: Options.Tokens = model.TokensRising.",
		model.RuleOnTime:         "Leases that end a while after their TTL, by a sweep for example, are declared: Options.Late; TTLs that are rounded up: Options.Granularity.",
		model.RuleRestartEnds:    "Leases that end a while after their TTL, by a sweep for example, are declared: Options.Late; TTLs that are rounded up: Options.Granularity.",
		model.RuleRenewHeld:      "A store that lets the last holder renew what nobody took meanwhile declares it: Options.RenewAfterLapse.",
		model.RuleAcquireFree:    "A pause after a lapse is declared: Options.LockDelay; TTLs that are too short for the store: Options.MinTTL.",
		model.RuleMalformed:      "TTLs that are too short for the store are declared: Options.MinTTL.",
	} {
		h[rule.String()] = hint
	}
	return h
}()
