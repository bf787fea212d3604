package sim_test

import (
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/sim"
)

// Worlds that nothing can tell apart have one key: here after each client by
// itself has asked for the lease, at different times.
func ExampleSpace() {
	cfg := sim.Config{Clients: 2, Lease: lease.Config{TTL: 4 * time.Second}}
	w, err := sim.NewWorld(cfg, sim.Builtin(), sim.Options{Monitor: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	space := sim.NewSpace(&w, sim.SpaceOptions{Reductions: sim.AllReductions, Grain: 100 * time.Millisecond, Keys: 1})
	one, other := w, w
	one.Apply(&sim.Action{ID: 1, Kind: sim.Tick, Who: sim.ClientNode(0)})
	other.Apply(&sim.Action{ID: 1, Kind: sim.Advance, D: time.Minute})
	other.Apply(&sim.Action{ID: 2, Kind: sim.Tick, Who: sim.ClientNode(1)})

	key := space.AppendKey(nil, &one)
	fmt.Println(string(key) == string(space.AppendKey(nil, &other)))

	var made sim.World
	space.Decode(key, &made)
	fmt.Println(made.InFlight(), "message in flight")
	// Output:
	// true
	// 1 message in flight
}
