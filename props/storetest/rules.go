package storetest

import (
	"fmt"
	"slices"

	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// rule is one line of what a lease store has to do, as a script that a store
// without it gets wrong.
type rule struct {
	name string // of the check
	// own are the rules that the script is about: breaking one of them convicts
	// the store here. One that breaks another is convicted where that is at
	// home, if anywhere.
	own    []model.Rule
	needs  need
	script string // durations have names: see times
}

// need is what a script is meaningless without.
type need uint8

const (
	restarts    need = 1 << iota // the store outlives its process
	aDelay                       // there is a lock delay
	newClock                     // its clock starts anew with each process
	steadyClock                  // its clock goes on over a restart
	noRenewal                    // a lapsed tenure cannot be renewed
)

func (n need) missing(o kit.Options) string {
	switch {
	case n&restarts != 0 && o.Volatile:
		return "Options.Volatile: the store forgets everything with its process"
	case n&aDelay != 0 && o.LockDelay == 0:
		return "Options.LockDelay is 0: the store has no lock delay"
	case n&newClock != 0 && o.SteadyClock:
		return "Options.SteadyClock: the store's clock goes on over a restart"
	case n&steadyClock != 0 && !o.SteadyClock:
		return "no Options.SteadyClock: the store's clock starts anew with each process"
	case n&noRenewal != 0 && o.RenewAfterLapse:
		return "Options.RenewAfterLapse: the last holder may renew a lapsed tenure"
	}
	return ""
}

// Rules are the checks of each rule by itself, each in a short script: the
// groups "rules", "restarts" and "delete". A store that breaks a rule fails the
// checks that are named after it; those that did not get to their own rule for
// that are skipped, and say where to look first.
//
// The options must be valid: [kit.Options.Validate].
func Rules(open script.Open, o kit.Options) []kit.Check {
	all := slices.Concat(requestRules, restartRules, deleteRules)
	c := court{open: open, o: o, rules: all}
	batch := once(c.batch)
	checks := make([]kit.Check, 0, len(all))
	for i, r := range all {
		checks = append(checks, kit.Check{Name: r.name, Run: func() kit.Outcome {
			if result := batch()[i]; holds(result) {
				return covered(result)
			}
			return c.try(r)
		}})
	}
	return checks
}

// batch plays the scripts without restarts on one store, each on leases of its
// own: it would take ten times as long to open one for each. A rule that is
// kept so is kept, and any other is tried on a store of its own.
func (c court) batch() []script.Result {
	results := make([]script.Result, len(c.rules))
	kit.Attempt(func() { // what cannot be opened here cannot be opened there
		series := script.NewSeries(c.open, c.o)
		defer series.Close()
		for i, r := range c.rules {
			if r.needs&restarts == 0 && r.needs.missing(c.o) == "" {
				results[i] = series.Run(timesOf(c.o).steps(r.script))
			}
		}
	})
	return results
}

// holds reports whether r was played, and all of it was right.
func holds(r script.Result) bool {
	return len(r.Lines) > 0 && r.Breach == nil && !slices.ContainsFunc(r.Lines, func(l script.Line) bool { return l.NoOp })
}

func covered(r script.Result) kit.Outcome {
	return kit.Outcome{Covered: fmt.Sprintf("%d steps", len(r.Lines))}
}

// court tries one store by each rule.
type court struct {
	open  script.Open
	o     kit.Options
	rules []rule
}

func (c court) try(r rule) kit.Outcome {
	return kit.Try(func() kit.Outcome {
		result, skipped := c.run(r)
		switch {
		case skipped != "":
			return kit.Outcome{Skipped: skipped}
		case result.Breach == nil:
			return covered(result)
		case slices.Contains(r.own, result.Breach.Rule):
			return kit.Outcome{Failure: failure(result)}
		}
		// A check that is skipped here names one that fails, so that no breach
		// goes unreported.
		if home, ok := c.home(result.Breach.Rule); ok {
			return kit.Outcome{Skipped: notReached(result.Breach.Rule.String(), home)}
		}
		return kit.Outcome{Failure: failure(result)}
	})
}

// run plays r's script, unless the store has no use for it.
func (c court) run(r rule) (result script.Result, skipped string) {
	if why := r.needs.missing(c.o); why != "" {
		return result, why
	}
	result = script.Run(c.open, c.o, timesOf(c.o).steps(r.script))
	for _, l := range result.Lines {
		switch {
		case !l.NoOp:
		case l.Step.Do == script.Get:
			return result, "the store cannot say who holds a lease"
		case l.Step.Do == script.Delete:
			return result, "the store has no Delete: see kit.Deleter"
		default:
			return result, fmt.Sprintf("%q means nothing to this store", l.Step)
		}
	}
	return result, ""
}

// home is the check that is about broken and that the store fails for it.
func (c court) home(broken model.Rule) (name string, ok bool) {
	for _, r := range c.rules {
		if !slices.Contains(r.own, broken) {
			continue
		}
		if result, skipped := c.run(r); skipped == "" && result.Breach != nil && result.Breach.Rule == broken {
			return r.name, true
		}
	}
	return "", false
}

// first is the first check of those named that the store fails.
func (c court) first(named func(string) bool) (broken, home string, ok bool) {
	for _, r := range c.rules {
		if !named(r.name) {
			continue
		}
		if out := c.try(r); out.Failure != nil {
			return out.Failure.Rule, r.name, true
		}
	}
	return "", "", false
}

func notReached(broken, home string) string {
	return fmt.Sprintf("not reached: the store breaks %s first, see %s", broken, home)
}

// failure tells what the last line of r breaks.
func failure(r script.Result) *kit.Failure {
	last := r.Lines[len(r.Lines)-1]
	what := fmt.Sprintf("%s was answered \"%s\"; expected: %s", script.Said(last.Step), last.Answer, r.Breach.Want)
	if r.Others > 0 {
		what += amongOthers
	}
	return &kit.Failure{
		Rule:  r.Breach.Rule.String(),
		Says:  r.Breach.Says(),
		What:  what,
		Story: script.Story(r),
		Read:  read(r.Breach.Rule, last.Step.Do, r.Breach.SteadyClock),
		Log:   r.Log,
	}
}

// amongOthers is said of what does not happen again on a fresh store.
const amongOthers = "; but only where other leases are used on the same store, and on a fresh one the same steps break no rule: what do leases have in common?"

// read is where the rule is documented that an answer to a step of this kind
// broke, for a store whose clock is steady or not.
func read(broken model.Rule, kind script.Kind, steady bool) string {
	const lease = "go doc fencepost/impl/lease "
	switch broken {
	case model.RuleRestartTenure, model.RuleRestartEnds, model.RuleRestartLapse, model.RuleRestartRelease:
		if steady {
			return "go doc fencepost/props/kit Options.SteadyClock"
		}
		return lease + "Restore"
	case model.RuleRestartCounter, model.RuleTokenNext:
		return lease + "Token"
	case model.RuleDeleteFrees, model.RuleDeleteCounter:
		return "go doc fencepost/props/kit Deleter"
	}
	switch kind {
	case script.Acquire:
		return lease + "Record.Acquire"
	case script.Renew:
		return lease + "Record.Renew"
	case script.Release:
		return lease + "Record.Release"
	case script.Get:
		return lease + "Record.Get"
	}
	return lease + "Store"
}
