package scenario_test

import (
	"fmt"
	"testing/fstest"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/scenario"
	"fencepost/props/sim"
	"fencepost/testdata"
)

// The named scenarios are inside the binary, those of a folder under os.DirFS.
func ExampleLoad() {
	all, err := scenario.Load(testdata.Schedules)
	if err != nil {
		panic(err)
	}
	for _, s := range all {
		if s.Name == "hung-call" {
			fmt.Println(s.Shows)
		}
	}
	// Output:
	// A renewal hangs and never returns: the leader steps down by its own clock, without waiting for the call.
}

// A counterexample that was found in a real subject says that nothing may be
// violated, so that it is red until the subject is mended.
func ExampleCheck() {
	s := zombie()
	fmt.Println("fenced:  ", scenario.Check(s, sim.Builtin()))

	subject := sim.Builtin()
	subject.Name, subject.Storage = "my-storage", unfenced{}
	fmt.Println("unfenced:", scenario.Check(s, subject))
	// Output:
	// fenced:   <nil>
	// unfenced: scenario zombie on my-storage: nothing may be violated, but storage-safety is, by action 9 at 5s: a write of R1 with token 1 landed after the storage had processed 2
}

// Whoever needs the run as well judges it by Judged, and asks Met afterwards.
func ExampleMet() {
	s := zombie()
	r := judge.Run(s, sim.Builtin(), scenario.Judged(s))
	fmt.Println(r.Counts.Landed, "landed,", r.Counts.StaleRefused, "refused")
	fmt.Println(scenario.Met(s, "builtin", r.Result))
	// Output:
	// 1 landed, 1 refused
	// <nil>
}

// The two leaders of this scenario are judged although the lease was lost
// before: by the invariant that the file expects, and by no other.
func ExampleJudged() {
	fmt.Println(scenario.Judged(&sim.Schedule{Expect: model.BeliefSafety}))
	fmt.Println(scenario.Judged(&sim.Schedule{Subject: sim.SubjectBuiltin}) == judge.All)
	// Output:
	// belief-safety
	// true
}

// zombie is R1, who writes under token 1 when the storage has seen R2's 2.
func zombie() *sim.Schedule {
	all, err := scenario.Load(fstest.MapFS{"zombie.json": {Data: []byte(`{
		"version": 1, "name": "zombie", "subject": "builtin", "expect": "none",
		"config": {"clients": 1, "lease": {"ttl": "5s"}},
		"actions": [
			{"id": 1, "do": "acquire", "who": "R1", "ttl": "5s"}, {"id": 2, "do": "deliver", "msg": "1.0"},
			{"id": 3, "do": "advance", "d": "5s"},
			{"id": 4, "do": "acquire", "who": "R2", "ttl": "5s"}, {"id": 5, "do": "deliver", "msg": "4.0"},
			{"id": 6, "do": "write", "who": "R2", "token": 2, "value": 2}, {"id": 7, "do": "deliver", "msg": "6.0"},
			{"id": 8, "do": "write", "who": "R1", "token": 1, "value": 1}, {"id": 9, "do": "deliver", "msg": "8.0"}
		]}`)}})
	if err != nil {
		panic(err)
	}
	return all[0]
}

// unfenced storage notes the token, and lands the write whatever it is.
type unfenced struct{ sim.Storage }

func (unfenced) Handle(s *sim.StorageState, _ *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	s.Guard, _ = s.Admit(req.Token)
	return s.Apply(req, true)
}
