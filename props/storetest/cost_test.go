package storetest

import (
	"os"
	"fmt"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

func TestCostNow(t *testing.T) {
	opens, calls := 0, 0
	open := func(e kit.Env) lease.Store { opens++; return counting(right(0)(e), &calls) }
	by := map[string][3]int{}
	var order []string
	began := time.Now()
	for _, c := range Checks(open, kit.Options{}, kit.Effort{Seed: 1}) {
		o, n, at := opens, calls, time.Now()
		out := c.Run()
		if out.Failure != nil || out.Unknown != "" { t.Errorf("%s: %+v", c.Name, out) }
		g, _, _ := strings.Cut(c.Name, "/")
		if g == "lockstep" { g = c.Name }
		if _, ok := by[g]; !ok { order = append(order, g) }
		b := by[g]
		by[g] = [3]int{b[0] + opens - o, b[1] + calls - n, b[2] + int(time.Since(at).Microseconds())}
		if g == "explore" || os.Getenv("V") != "" { fmt.Println(c.Name, out.Covered) }
	}
	for _, g := range order { fmt.Printf("%-20s %v\n", g, by[g]) }
	fmt.Println(opens, calls, time.Since(began))
}
