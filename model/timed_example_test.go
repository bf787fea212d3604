package model_test

import (
	"fmt"
	"time"

	"fencepost/model"
)

// Two clients recorded what a store answered them. Was that right?
func ExampleTimedParams() {
	p := model.TimedParams{
		DriftPPB: 200_000, // the store's clock is within 0.02% of ours
		First:    33,
	}
	const ms, ttl = int64(time.Millisecond), int64(5 * time.Second)
	history := []model.TimedOp{
		{Kind: model.TimedAcquire, Owner: 1, TTL: ttl, Token: 33, Call: 0, Return: 2 * ms},
		{Kind: model.TimedAcquire, Owner: 2, TTL: ttl, Outcome: model.TimedHeld, Holder: 1, Call: 1000 * ms, Return: 1001 * ms},
		{Kind: model.TimedAcquire, Owner: 2, TTL: ttl, Token: 34, Call: 4990 * ms, Return: 4998 * ms},
	}
	states := p.Init()
	for _, op := range history {
		var next []model.TimedState
		for _, s := range states {
			next = p.AppendStep(next, s, op)
		}
		if len(next) == 0 {
			fmt.Printf("cannot be: %v\n  after: %v\n", op, states)
			return
		}
		states = next
	}
	fmt.Println("legal:", states)
	// Output:
	// cannot be: 2: acquire for 5s token 34 -> ok
	//   after: [held by 1, token 33, 5s from [0s, 2ms], now >= 1s]
}

func ExampleTimedParams_Validate() {
	p := model.TimedParams{DriftPPB: -1}
	fmt.Println(p.Validate())
	// Output:
	// timed lease: DriftPPB is -1: want 0 to 999999999
}

func ExampleTimedParams_Init() {
	fmt.Println(model.TimedParams{First: 1}.Init())
	fmt.Println(model.TimedParams{}.Init()) // any first token
	// Output:
	// [free, token 0]
	// [free, token >= 0]
}

// An operation without an answer may have happened or not: two states.
func ExampleTimedParams_Step() {
	p := model.TimedParams{First: 1}
	acquire := model.TimedOp{Kind: model.TimedAcquire, Outcome: model.TimedUnknown, Owner: 1, TTL: 10, Call: 3}
	for _, s := range p.Step(p.Init()[0], acquire) {
		fmt.Println(s)
	}
	// Output:
	// free, token 0
	// held by 1, token 1, 10ns from [3ns, inf), now >= 3ns
}

// What two histories have in common can be gone on with once.
func ExampleTimedParams_AppendStep() {
	p := model.TimedParams{First: 1}
	get := func(call, ret int64) model.TimedOp {
		return model.TimedOp{Kind: model.TimedGet, Call: call, Return: ret}
	}
	var states []model.TimedState
	for _, s := range p.Init() {
		states = p.AppendStep(states, s, get(5, 9))
		states = p.AppendStep(states, s, get(2, 9)) // covers the first
	}
	fmt.Println(states)
	// Output:
	// [free, token 0, now >= 2ns]
}

func ExampleTimedOp_String() {
	fmt.Println(model.TimedOp{Kind: model.TimedAcquire, Outcome: model.TimedHeld, Owner: 2, TTL: 5e9, Holder: 1})
	fmt.Println(model.TimedOp{Kind: model.TimedGet})
	// Output:
	// 2: acquire for 5s -> held by 1
	// get -> ok by nobody
}

// States are plain values: equal states have equal hashes, so that a search
// knows where it has been.
func ExampleTimedState() {
	p := model.TimedParams{First: 1}
	acquire := model.TimedOp{Kind: model.TimedAcquire, Owner: 1, TTL: 10, Token: 1, Return: 4}
	a, b := p.Step(p.Init()[0], acquire)[0], p.Step(p.Init()[0], acquire)[0]
	fmt.Println(a == b, a.Equal(b), a.Hash() == b.Hash())
	// Output:
	// true true true
}
