package storetest

import (
	"strings"

	"fencepost/model"
	"fencepost/props/kit"
)

// What to declare where a rule is broken on purpose.
const (
	hintSteady     = "A store whose clock goes on over a restart, such as a database server's, declares it: Options.SteadyClock. "
	hintForgets    = "A store that is to forget everything with its process declares it: Options.Volatile."
	hintDurable    = hintForgets + " What is to survive a crash belongs into Env.Dir or Durable."
	hintRising     = "Tokens that rise by more than one, such as revisions of a database, are declared: Options.Tokens = model.TokensRising. "
	hintRenewed    = "A store that lets the last holder renew what nobody took meanwhile declares it: Options.RenewAfterLapse. "
	hintLate       = "Leases that end a while after their TTL are declared: Options.Late, Granularity or MinTTL; a pause after a lapse: Options.LockDelay. "
	hintSweep      = "Leases that end a while after their TTL, by a sweep for example, are declared: Options.Late."
	hintTerse      = "Refusals without details are declared: Options.Terse. "
	hintRounded    = "TTLs that are rounded up are declared: Options.Granularity."
	hintTTLs       = "TTLs that are too short or too long for the store are declared: Options.MinTTL, Options.MaxTTL."
	hintClock      = "A remaining time that is off by a little comes from another clock than Env.Clock. "
	hintBackground = "A store that reads any clock but Env.Clock never sees the TTL pass. One that ends leases in the background offers Settle (kit.Settler), and is waited for. "
	hintDelay      = "A pause after a lapse is declared: Options.LockDelay. "
)

// meant are the hints by rule.
var meant = func() map[string]string {
	h := map[string]string{forever.name: hintSweep}
	for rule, hint := range map[model.Rule]string{
		model.RuleRestartTenure:  hintSteady + hintDurable,
		model.RuleRestartCounter: hintDurable,
		model.RuleRestartLapse:   hintDurable,
		model.RuleRestartRelease: hintDurable,
		model.RuleNamesHolder:    hintTerse,
		model.RuleRemaining:      hintClock + hintTerse + hintRounded,
		model.RuleTokenNext:      hintRising,
		model.RuleOnTime:         hintBackground + hintSweep + " " + hintRounded,
		model.RuleRestartEnds:    hintSteady + hintSweep + " " + hintRounded,
		model.RuleRenewHeld:      hintRenewed,
		model.RuleAcquireFree:    hintDelay + hintTTLs,
		model.RuleMalformed:      hintTTLs,
	} {
		h[rule.String()] = hint
	}
	return h
}()

// hinted is out with what to declare if it is no fault.
func hinted(o kit.Options, out kit.Outcome) kit.Outcome {
	if f := out.Failure; f != nil && f.Hint == "" {
		f.Hint = strings.TrimSpace(meant[f.Rule])
		if o.SteadyClock {
			f.Hint = strings.TrimPrefix(f.Hint, hintSteady)
		}
	}
	return out
}
