package mutant

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/sim"
)

func jf(m Mutant) Judge {
	if !m.May.Has(model.Linearizability) {
		return nil
	}
	return func(s *sim.Schedule, subject sim.Subject) sim.Result {
		return judge.Run(s, subject, judge.All&^model.SetOf(model.Lockstep))
	}
}

func TestZZ(t *testing.T) {
	for _, m := range All() {
		if n := os.Getenv("ONLY"); n != "" && !strings.Contains(n, m.Name) {
			continue
		}
		t0 := time.Now()
		c, err := m.Hunt(t.Context(), 1, 3000, jf(m))
		d := time.Since(t0)
		if err != nil {
			fmt.Println("!!", m.Name, err, d)
			continue
		}
		flag := ""
		if len(c.Schedule.Actions) != m.Actions {
			flag = "<<"
		}
		fmt.Printf("%-32s %6d %-26v %2d/%d %v %s\n", m.Name, c.Schedules, c.Invariant, len(c.Schedule.Actions), m.Actions, d, flag)
		for _, a := range c.Schedule.Actions {
			fmt.Println("      ", a.ID, a)
		}
		fmt.Printf("       cfg %+v\n", c.Schedule.Config)
	}
}
