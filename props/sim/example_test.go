package sim_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/sim"
)

// zombie is a schedule in which a write of the leader before arrives late.
const zombie = `{
  "version": 1, "name": "zombie", "subject": "builtin", "expect": "none",
  "config": {"clients": 2, "lease": {"ttl": "5s"}},
  "actions": [
    {"id": 1, "do": "tick", "who": "C1"},
    {"id": 2, "do": "deliver", "msg": "1.0"},
    {"id": 3, "do": "deliver", "msg": "2.0"},
    {"id": 4, "do": "put", "who": "C1", "value": 1, "note": "this one takes its time"},
    {"id": 5, "do": "advance", "d": "5s"},
    {"id": 6, "do": "tick", "who": "C2"},
    {"id": 7, "do": "deliver", "msg": "6.0"},
    {"id": 8, "do": "deliver", "msg": "7.0"},
    {"id": 9, "do": "put", "who": "C2", "value": 2},
    {"id": 10, "do": "deliver", "msg": "9.0"},
    {"id": 11, "do": "deliver", "msg": "4.0"}
  ]
}`

func ExampleReadSchedule() {
	s, err := sim.ReadSchedule(strings.NewReader(zombie), "zombie.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Name, "has", len(s.Actions), "actions; the fifth is:", s.Actions[4])

	_, err = sim.ReadSchedule(strings.NewReader(strings.Replace(zombie, `"5s"}`, `"soon"}`, 1)), "zombie.json")
	fmt.Println(err)
	// Output:
	// zombie has 11 actions; the fifth is: advance 5s
	// zombie.json:3: config.lease.ttl: "soon" is not a duration such as "1.5s"
}

func ExampleSchedule_Run() {
	s, err := sim.ReadSchedule(strings.NewReader(zombie), "zombie.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	var trace sim.Trace
	r := s.Run(sim.Builtin(), sim.Options{Monitor: true, Trace: &trace})
	fmt.Printf("violated: %q after %d actions, x = %d\n", r.Violated, r.Applied, r.World.Value(0))
	fmt.Println(strings.TrimSpace(sim.Line(&trace.Events[len(trace.Events)-1])))
	// Output:
	// violated: "" after 11 actions, x = 2
	// 5s  #11   storage  [4.0] of C1: write x=1 token 1: stale, highest is 2
}

// A schedule made by hand is checked as a file is.
func ExampleSchedule_Validate() {
	s := sim.Schedule{Config: sim.Config{Clients: 1, Lease: lease.Config{TTL: 5 * time.Second}}, Actions: []sim.Action{
		{ID: 1, Kind: sim.Tick, Who: sim.ClientNode(0)},
		{ID: 1, Kind: sim.Advance, D: time.Second},
	}}
	fmt.Println(s.Validate())
	s.Actions[1].ID = 2
	fmt.Println(s.Validate())
	// Output:
	// actions[1].id: 1 is not a number above 0 of its own
	// <nil>
}

// Ids survive deletions; before a file is written they are made 1, 2, 3.
func ExampleSchedule_Renumber() {
	s := sim.Schedule{Actions: []sim.Action{
		{ID: 7, Kind: sim.Tick, Who: sim.ClientNode(0)},
		{ID: 12, Kind: sim.Deliver, Msg: model.Msg{Action: 7}},
	}}
	s.Renumber()
	for _, a := range s.Actions {
		fmt.Println(a.ID, a)
	}
	// Output:
	// 1 tick C1
	// 2 deliver 1.0
}

// What a run reached says what it has put to the test.
func ExampleWorld_Counts() {
	w, err := sim.NewWorld(sim.Config{Clients: 1, Lease: lease.Config{TTL: 5 * time.Second}}, sim.Builtin(), sim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range []sim.Action{
		{ID: 1, Kind: sim.Tick, Who: sim.ClientNode(0)},
		{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
		{ID: 3, Kind: sim.Deliver, Msg: model.Msg{Action: 2}},
		{ID: 4, Kind: sim.Resume, Who: sim.ClientNode(0)}, // it does not stand still
	} {
		w.Apply(&a)
	}
	c := w.Counts()
	effective, all := c.Actions()
	fmt.Printf("%d of %d actions did something; %d term, %d takeovers\n", effective, all, c.Terms, c.Takeovers)
	// Output:
	// 3 of 4 actions did something; 1 term, 0 takeovers
}

func ExampleWorld_Record() {
	w, err := sim.NewWorld(sim.Config{Clients: 1, Lease: lease.Config{TTL: 5 * time.Second}, FirstToken: 33}, sim.Builtin(), sim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range []sim.Action{
		{ID: 1, Kind: sim.Acquire, Who: sim.RawNode(0), TTL: 5 * time.Second},
		{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
	} {
		w.Apply(&a)
	}
	r, held := w.Record()
	fmt.Println(r.Holder.Node, r.Token, held)
	w.Apply(&sim.Action{ID: 3, Kind: sim.Advance, D: 5 * time.Second})
	r, held = w.Record()
	fmt.Println(r.Holder.Node, r.Token, held)
	// Output:
	// R1 33 true
	// R1 33 false
}

// A failure found by judges of one's own is minimised by FailsBy.
func ExampleFailsBy() {
	subject := sim.Builtin()
	subject.Storage = lax{}
	s, err := sim.ReadSchedule(strings.NewReader(zombie), "zombie.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	fails := sim.FailsBy(func(s *sim.Schedule) sim.Result {
		return s.Run(subject, sim.Options{Monitor: true, Only: model.SetOf(model.Barrier, model.StorageSafety)})
	}, model.StorageSafety)
	for _, a := range sim.Minimize(s, fails).Actions {
		fmt.Println(a)
	}
	// Output:
	// write R1 token 1 x = 1
	// write R1 token 2 x = 2
	// deliver 2.0
	// deliver 1.0
}

// A World can also be moved by hand, one action after the other.
func ExampleWorld_Apply() {
	cfg := sim.Config{Clients: 1, Lease: lease.Config{TTL: 5 * time.Second}}
	w, err := sim.NewWorld(cfg, sim.Builtin(), sim.Options{Monitor: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range []sim.Action{
		{ID: 1, Kind: sim.Tick, Who: sim.ClientNode(0)},
		{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}}, // the request
		{ID: 3, Kind: sim.Deliver, Msg: model.Msg{Action: 2}}, // its answer
		{ID: 4, Kind: sim.Deliver, Msg: model.Msg{Action: 2}}, // it has arrived already
	} {
		fmt.Println(a, w.Apply(&a))
	}
	saved := w // a snapshot
	w.Apply(&sim.Action{ID: 5, Kind: sim.Advance, D: 5 * time.Second})
	_, before := saved.Client(0)
	_, after := w.Client(0)
	fmt.Println("leads:", before, "and five seconds later:", after)
	// Output:
	// tick C1 true
	// deliver 1.0 true
	// deliver 2.0 true
	// deliver 2.0 false
	// leads: true and five seconds later: false
}

// Equal numbers give equal schedules: the seed is all there is to keep.
func ExampleGenerate() {
	draw := func() *sim.Schedule {
		src := rand.NewPCG(1, 2)
		cfg := sim.RandomConfig(src)
		w, err := sim.NewWorld(cfg, sim.Builtin(), sim.Options{Monitor: true, Lockstep: true})
		if err != nil {
			panic(err)
		}
		profile := sim.Chaos()
		s := &sim.Schedule{Name: "drawn", Subject: sim.SubjectBuiltin, Config: cfg, Actions: sim.Generate(src, &profile, &w, 100, nil)}
		fmt.Printf("%d actions, violated: %q\n", len(s.Actions), w.Violated())
		return s
	}
	one, two := draw(), draw()
	fmt.Println(one.FileName() == two.FileName())
	// Output:
	// 103 actions, violated: ""
	// 103 actions, violated: ""
	// true
}

// lax is a storage that takes whatever comes.
type lax struct{ sim.Storage }

func (lax) Handle(s *sim.StorageState, _ *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	return s.Apply(req, true)
}

// A failing schedule becomes the shortest that fails alike.
func ExampleMinimize() {
	noise := `
    {"id": 20, "do": "advance", "d": "1s"},
    {"id": 21, "do": "get", "who": "R1"},
    {"id": 22, "do": "pause", "who": "C2"},
    {"id": 23, "do": "resume", "who": "C2"},
    {"id": 9,`
	s, err := sim.ReadSchedule(strings.NewReader(strings.Replace(zombie, `{"id": 9,`, strings.TrimSpace(noise), 1)), "zombie.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	subject := sim.Builtin()
	subject.Storage = lax{}
	short := sim.Minimize(s, sim.FailsOn(subject, model.StorageSafety))
	fmt.Println("from", len(s.Actions), "actions to", len(short.Actions))
	r := short.Run(subject, sim.Options{Monitor: true})
	fmt.Println(r.First.Describe(sim.Names()))
	// Output:
	// from 15 actions to 4
	// a write of R1 with token 1 landed after the storage had processed 2
}

func ExampleTrace_WriteTo() {
	s := sim.Schedule{Config: sim.Config{Clients: 1, Lease: lease.Config{TTL: 5 * time.Second}}, Actions: []sim.Action{
		{ID: 1, Kind: sim.Tick, Who: sim.ClientNode(0)},
		{ID: 2, Kind: sim.Crash, Who: sim.StoreNode},
		{ID: 3, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
	}}
	var trace sim.Trace
	s.Run(sim.Builtin(), sim.Options{Trace: &trace})
	var text bytes.Buffer
	trace.WriteTo(&text)
	for line := range strings.Lines(text.String()) {
		fmt.Println(strings.TrimSpace(line))
	}
	// Output:
	// 0s  #1    C1 -> store  [1.0] acquire as C1#1 ttl 5s
	// 0s  #2    store  crash
	// 0s  #3    [1.0] from C1 to store is lost: down
}

func ExampleSchedule_WriteFile() {
	s, err := sim.ReadSchedule(strings.NewReader(zombie), "zombie.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "fencepost")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path, err := s.WriteFile(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := os.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	again, err := sim.ReadSchedule(f, path)
	fmt.Println(again.Name, len(again.Actions), err)
	// Output:
	// zombie 11 <nil>
}

func ExampleNodeNamed() {
	fmt.Println(sim.NodeNamed("C2") == sim.ClientNode(1), sim.NodeNamed("R1") == sim.RawNode(0), sim.NodeNamed("C9"))
	// Output:
	// true true 0
}
