package timeline_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"fencepost/model"
	"fencepost/props/sim"
	"fencepost/props/timeline"
)

// The story alone, for where a drawing has no room.
func ExampleLines() {
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
	lines, err := timeline.Lines(trace.Events, sim.Names(), timeline.Options{MaxRows: 6})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Join(lines, "\n"))
	// Output:
	//        (4 more moments)
	//  0.0s  C1 acquires: granted 33 for 5s, leads for 4.5s
	//  4.5s  C1's term under 33 runs out while it stands still
	//  5.0s  the tenure of C1 under 33 lapses
	//  5.0s  C2 acquires: granted 34 for 5s, leads for 4.5s
	//  7.0s  C2 renews 34 for 5s, leads for 4.5s more
	// 11.0s  C1 writes x=1 under 33: refused, 34 was seen
}

func TestLinesEndWithTheViolation(t *testing.T) {
	_, events, res := run(t, "frozen-client-unfenced")
	all, err := timeline.Lines(events, sim.Names(), timeline.Options{Violation: res.First})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(all)+2; n++ {
		lines, err := timeline.Lines(events, sim.Names(), timeline.Options{Violation: res.First, MaxRows: n})
		if err != nil {
			t.Fatal(err)
		}
		last := lines[len(lines)-1]
		if len(lines) > n+1 || !strings.HasSuffix(last, "writes x=1 under 33: lands  ◄") {
			t.Errorf("of %d moments: %d lines, the last %q", n, len(lines), last)
		}
		if strings.Count(strings.Join(lines, "\n"), "◄") != 1 {
			t.Errorf("marks in\n%s", strings.Join(lines, "\n"))
		}
	}
}

func TestLinesOfEventsThatNoRunHas(t *testing.T) {
	if _, err := timeline.Lines([]model.Event{{Kind: model.KindLead, Node: model.MaxNodes}}, nil, timeline.Options{}); err == nil {
		t.Error("no error")
	}
	if lines, err := timeline.Lines(nil, nil, timeline.Options{MaxRows: 3}); err != nil || len(lines) != 0 {
		t.Errorf("nothing is told as %q, %v", lines, err)
	}
}
