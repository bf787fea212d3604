package electortest_test

import (
	"context"
	"fmt"
	"testing"

	"fencepost/impl/lease"
	"fencepost/props/electortest"
	"fencepost/props/kit"
)

// start makes the client under test, here fencepost's own, for one process.
func start(env electortest.Env) electortest.Candidate {
	e, err := lease.NewElector(env.Store, lease.ElectorConfig{
		Resource: env.Resource, Node: env.Node, Nonce: env.Nonce, Timing: env.Config, Clock: env.Clock, Logger: env.Logger,
	})
	if err != nil {
		panic(err)
	}
	return electortest.Candidate{
		Run: func(ctx context.Context) error {
			return e.Run(ctx, func(ctx context.Context, term lease.Term) error {
				return env.Lead(ctx, uint64(term.Token))
			})
		},
		IsLeader: e.IsLeader,
	}
}

// In a test function, each check is a subtest.
func ExampleChecks() {
	test := func(t *testing.T) {
		for _, c := range electortest.Checks(start, electortest.Options{}, kit.Effort{Seed: 1}) {
			t.Run(c.Name, func(t *testing.T) {
				if out := c.Run(t); out.Failure != nil {
					t.Error(out.Failure)
				}
			})
		}
	}
	_ = test // go test calls it

	for _, c := range electortest.Checks(start, electortest.Options{}, kit.Effort{}) {
		fmt.Println(c.Name)
	}
	// Output:
	// acquire/leads-when-free
	// belief/only-what-was-granted
	// belief/counts-from-the-send
	// belief/ends-while-a-call-hangs
	// belief/ends-at-a-refusal
	// belief/not-revived-by-a-late-answer
	// belief/one-term-one-token
	// belief/ends-with-a-fast-store-clock
	// belief/late-grant-is-no-lead
	// identity/new-incarnation-after-each-term
	// identity/two-processes-differ
	// belief/grant-with-a-shorter-ttl
	// acquire/keeps-campaigning
	// acquire/takes-over-after-lapse
	// acquire/takes-over-after-release
	// acquire/unknown-outcome-then-granted
	// acquire/waits-between-attempts
	// renew/in-time
	// renew/survives-a-lost-renewal
	// renew/carries-the-granted-token
	// release/after-the-work-has-ended
	// release/under-its-own-token
	// release/at-shutdown
	// random
}

func ExampleReplay() {
	data := []byte(`{
  "kind": "elector-plan", "version": 1,
  "config": {"ttl": "10s", "maxDriftRate": 0.1, "safetyMargin": "1s"},
  "clients": 1, "store": "true", "until": "60s",
  "calls": [
    {"client": 0, "call": 1, "answer": "4s", "lost": "reply"}
  ]
}`)
	fmt.Println(electortest.IsPlan(data))
	_, err := electortest.Replay(data, start, electortest.Options{})
	fmt.Println(err)
	// Output:
	// true
	// calls[0].lost: "reply" is not "request" or "answer"
}

func ExampleOptions_Validate() {
	o := electortest.Options{TakeoverWithin: -1}
	fmt.Println(o.Validate())
	// Output:
	// options: TakeoverWithin: -1ns is not between 0 and a hundred TTLs, 16m40s
}
