package mutant

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestZZLong(t *testing.T) {
	for _, name := range strings.Split(os.Getenv("NAMES"), ",") {
		m, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		var worst Catch
		for seed := range 20 {
			c, err := m.Hunt(t.Context(), uint64(seed+100), 10000, nil)
			if err == nil && (worst.Schedule == nil || len(c.Schedule.Actions) > len(worst.Schedule.Actions)) {
				worst = c
			}
		}
		fmt.Println(name, worst.Invariant, len(worst.Schedule.Actions), worst.Schedule.Config)
		for _, a := range worst.Schedule.Actions {
			fmt.Println("      ", a.ID, a)
		}
	}
}
