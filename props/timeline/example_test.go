package timeline_test

import (
	"fmt"
	"os"
	"strings"

	"fencepost/props/sim"
	"fencepost/props/timeline"
)

// The frozen client: it sleeps through its lease and writes under its old
// token, and the storage refuses.
func ExampleRender() {
	f, err := os.Open("testdata/frozen-client.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	schedule, err := sim.ReadSchedule(f, f.Name())
	if err != nil {
		fmt.Println(err)
		return
	}
	var trace sim.Trace
	result := schedule.Run(sim.Builtin(), sim.Options{Monitor: true, Trace: &trace})
	err = timeline.Render(os.Stdout, trace.Events, sim.Names(), timeline.Options{
		Title:     schedule.Name,
		Violation: result.First, // none: the timeline has no mark
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// frozen-client
	//
	//    time   store   storage     C1       C2
	//    0.0s  33 ╥◄───────┼───────►▄ 33     │      C1 acquires: granted 33 for 5s, leads for 4.5s
	//    1.0s     ║        │        ▓        │      C1 pauses
	//    4.5s     ║        │        ▀        │      C1's term under 33 runs out while it stands still
	//    5.0s     ╨        │        ░        │      the tenure of C1 under 33 lapses
	//          34 ╥◄───────┼────────░───────►▄ 34   C2 acquires: granted 34 for 5s, leads for 4.5s
	//    6.0s     ║        │◄───────░────────█      C2 reads x: 0
	//             ║     34 │◄───────░────────█      C2 writes x=2 under 34: lands
	//    7.0s     ║◄───────┼────────░───────►█      C2 renews 34 for 5s, leads for 4.5s more
	//   11.0s     ║        │        │        █      C1 goes on after 10s
	//             ║        │╳───────┤        █      C1 writes x=1 under 33: refused, 34 was seen
	//
	//   ║ tenure in the store (╥ begins, ╨ ends)   █ leads (▄ begins, ▀ ends)   ▓ leads, standing still
	//   ░ stands still   ╳ refused   33 token
}

// The same as a page to attach to a report.
func ExampleHTML() {
	f, err := os.Open("testdata/frozen-client.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	schedule, err := sim.ReadSchedule(f, f.Name())
	if err != nil {
		fmt.Println(err)
		return
	}
	var trace sim.Trace
	schedule.Run(sim.Builtin(), sim.Options{Trace: &trace})
	var page strings.Builder
	if err := timeline.HTML(&page, trace.Events, sim.Names(), timeline.Options{Title: schedule.Name}); err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(page.String()) {
		if strings.Contains(line, "refused") && strings.HasPrefix(line, "<tr") {
			fmt.Print(line)
		}
	}
	// Output:
	// <tr class="warning"><td class="n">10</td><td class="t"></td><td>C1 writes x=1 under 33: refused, 34 was seen</td></tr>
}
