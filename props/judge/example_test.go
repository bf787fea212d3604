package judge_test

import (
	"context"
	"fmt"
	"time"

	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

// A storage that checks no token lets a zombie's write land.
func ExampleRun() {
	s := &sim.Schedule{
		Config: sim.RandomConfig(judge.Source(1, 1)),
		Actions: []sim.Action{
			{ID: 1, Kind: sim.Fence, Who: sim.RawNode(0), Token: 2},
			{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
			{ID: 3, Kind: sim.Write, Who: sim.RawNode(1), Token: 1, Value: 7},
			{ID: 4, Kind: sim.Deliver, Msg: model.Msg{Action: 3}},
		},
	}
	unfenced, err := mutant.Subject("mutant:unfenced")
	if err != nil {
		fmt.Println(err)
		return
	}
	r := judge.Run(s, unfenced, model.SetOf(model.StorageSafety))
	fmt.Println(r.First.Invariant)
	fmt.Println(r.First.Describe(sim.Names()))
	fmt.Println("built in:", judge.Run(s, sim.Builtin(), judge.All).Violated == 0)
	// Output:
	// storage-safety
	// a write of R2 with token 1 landed after the storage had processed 2
	// built in: true
}

func ExampleSweep() {
	s := judge.Sweep{Subject: sim.Builtin(), Profiles: []sim.Profile{sim.Chaos(), sim.Raw()}, Seed: 1,
		Schedules: 100, MinSteps: 100, MaxSteps: 150, Want: judge.All}
	r := s.Run(context.Background(), func() time.Duration { return 0 })
	fmt.Println("schedules:", r.Counts.Runs, "histories:", r.Histories, "failed:", r.Failure != nil)
	// Output: schedules: 100 histories: 100 failed: false
}
