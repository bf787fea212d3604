package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"fencepost/props/kit"
	"fencepost/props/script"
)

const (
	lockstepSteps = 40 // of a script: long enough for a few tenures to follow one another
	lockstepPart  = 15 // of a hundred calls, for each of the two checks
)

// Lockstep are random scripts played beside the model, which judges each
// answer: "lockstep/requests", and "lockstep/restarts" where the store crashes
// in between, apart so that a fault at restarts hides no other. The scripts are
// those of effort.Seed, and as many as the options' Calls allow. The first that
// breaks a rule is made as short as possible, and told. A batch that never got
// to see, say, a takeover has not checked it and is Unknown.
//
// The options must be valid: [kit.Options.Validate].
func Lockstep(open script.Open, o kit.Options, effort kit.Effort) []kit.Check {
	requests := func() kit.Outcome {
		out, _ := lockstep(open, running(o), effort, 1)
		return out
	}
	return []kit.Check{
		{Name: "lockstep/requests", Run: requests},
		{Name: "lockstep/restarts", Run: func() kit.Outcome {
			if why := restarts.missing(o); why != "" {
				return kit.Outcome{Skipped: why}
			}
			out, steps := lockstep(open, o, effort, 2)
			if out.Failure != nil && !slices.ContainsFunc(steps, func(s script.Step) bool { return s.Do == script.Restart }) {
				// Nothing that a restart has to do with, nor worth telling twice.
				if requests().Failure != nil {
					return kit.Outcome{Skipped: fmt.Sprintf("not reached: the store breaks %s without a restart, see lockstep/requests", out.Failure.Rule)}
				}
			}
			return out
		}},
	}
}

// lockstep plays the scripts of one stream of random numbers.
func lockstep(open script.Open, o kit.Options, effort kit.Effort, stream uint64) (out kit.Outcome, steps []script.Step) {
	out = kit.Try(func() kit.Outcome {
		seen, r := played(open, o, effort, stream)
		if r != nil && r.Others > 0 {
			r = alone(open, o, effort, stream, *r)
		}
		if r != nil {
			f := failure(*r)
			if r.Others == 0 { // else it is no script by itself
				file := script.File(*r, r.Breach.Rule.String(), "", o)
				f.File = &file
			}
			steps = stepsOf(*r)
			return kit.Outcome{Failure: f}
		}
		if missed := seen.Missed(o); len(missed) > 0 {
			return kit.Outcome{Unknown: "the scripts never came to " + strings.Join(missed, ", ") + ": raise Options.Calls"}
		}
		return kit.Outcome{Covered: seen.String()}
	})
	return out, steps
}

// played is what the scripts have seen, and the first that breaks a rule: made
// as short as possible, unless that takes other leases on the same store.
func played(open script.Open, o kit.Options, effort kit.Effort, stream uint64) (seen script.Coverage, broken *script.Result) {
	series := script.NewSeries(open, o)
	defer series.Close()
	stays := script.NewSeries(open, running(o))
	defer stays.Close()
	src := rand.NewPCG(effort.Seed, stream)
	for i := range scripts(o, effort) {
		on := series
		if !crashes(i) {
			on = stays
		}
		r := on.RunRandom(src, lockstepSteps)
		if r.Breach == nil {
			seen.Add(r)
			continue
		}
		for _, before := range beginnings(r, o) {
			if again := script.Run(open, o, append(before, stepsOf(r)...)); again.Breach != nil {
				r = minimized(open, o, again)
				break
			}
		}
		return seen, &r
	}
	return seen, nil
}

// scripts is how many there are.
func scripts(o kit.Options, effort kit.Effort) int {
	return max(o.Budget(effort, lockstepPart)/lockstepSteps, 1)
}

// crashes reports whether the store may crash in script number i. To open it
// again may take as long as a hundred calls.
func crashes(i int) bool { return i%5 == 0 }

// running are the options with which the store never crashes.
func running(o kit.Options) kit.Options {
	o.Volatile = true
	return o
}

// beginnings are what may stand for the scripts that were played on the store of
// r before: nothing, and a restart, since of every two processes one has a clock
// that begins low.
func beginnings(r script.Result, o kit.Options) [][]script.Step {
	if o.Volatile || r.Others == 0 {
		return [][]script.Step{nil}
	}
	return [][]script.Step{nil, {{Do: script.Restart}}}
}

// alone plays the scripts once more, each on a fresh store, up to the first that
// breaks a rule there; if none does, what is left is r, which took other leases.
func alone(open script.Open, o kit.Options, effort kit.Effort, stream uint64, r script.Result) *script.Result {
	src := rand.NewPCG(effort.Seed, stream)
	for i := range scripts(o, effort) {
		with := o
		if !crashes(i) {
			with = running(o)
		}
		if fresh := script.RunRandom(open, with, src, lockstepSteps); fresh.Breach != nil {
			fresh = minimized(open, o, fresh)
			return &fresh
		}
	}
	return &r
}

// minimized is the shortest script that breaks the rule that r breaks.
func minimized(open script.Open, o kit.Options, r script.Result) script.Result {
	steps := script.Minimize(open, o, stepsOf(r), r.Breach.Rule)
	if short := script.Run(open, o, steps); short.Breach != nil {
		return short
	}
	return r // the store does not do the same twice
}

func stepsOf(r script.Result) []script.Step {
	steps := make([]script.Step, len(r.Lines))
	for i, l := range r.Lines {
		steps[i] = l.Step
	}
	return steps
}
