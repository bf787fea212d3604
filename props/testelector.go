package props

import (
	"testing"

	"fencepost/props/electortest"
	"fencepost/props/kit"
)

type (
	// ElectorEnv is the world that one process of a client under test lives
	// in.
	ElectorEnv = electortest.Env
	// Candidate is a client under test: how it runs, and how it shows what it
	// believes.
	Candidate = electortest.Candidate
	// ElectorOptions are what a client promises where correct ones differ.
	ElectorOptions = electortest.Options
)

// TestElector checks the client that start makes: whether it ever believes
// that it leads while it does not hold the lease. It runs in testing/synctest
// bubbles, in which package time is fake, against a store whose calls hang, are
// slow, get lost, come twice and are refused, and whose clock drifts. As
// [TestStore] does, it runs a subtest for each rule, and keeps counterexamples.
func TestElector(t *testing.T, start func(ElectorEnv) Candidate, o ElectorOptions) {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	e, again := effortOf(real{t})
	c := conformance{again: again, replay: func(t tester, path string, data []byte) kit.Outcome {
		check, err := electortest.Replay(data, start, o)
		if err != nil {
			return kit.Outcome{Unknown: path + ": " + err.Error()}
		}
		return check.Run(t.(real).T)
	}}
	for _, one := range electortest.Checks(start, o, e) {
		c.checks = append(c.checks, check{one.Name, func(t tester) kit.Outcome { return one.Run(t.(real).T) }})
	}
	c.run(real{t})
}
