package mutant

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"fencepost/props/sim"
)

func TestZZSeeds(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SEEDS"))
	for _, m := range All() {
		sets := map[string]int{}
		most, maxk, sum := 0, 0, 0
		for seed := range n {
			for k := range 10000 {
				s := m.draw(m.Subject, uint64(seed+100), k, sim.Options{Monitor: true})
				r := monitor(s, m.Subject)
				if r.Violated == 0 {
					continue
				}
				if monitor(s, sim.Builtin()).Violated != 0 {
					sets["builtin too"]++
					continue
				}
				sets[r.Violated.String()]++
				if r.Violated&^m.May != 0 {
					sets["!!!!!"]++
				}
				maxk = max(maxk, k)
				sum += k
				break
			}
			if os.Getenv("MIN") != "" {
				c, err := m.Hunt(t.Context(), uint64(seed+100), 10000, nil)
				if err != nil {
					fmt.Println(err)
					continue
				}
				most = max(most, len(c.Schedule.Actions))
			}
		}
		fmt.Printf("%-32s max k %5d avg %5d most %2d/%2d %v\n", m.Name, maxk, sum/n, most, m.Actions, sets)
	}
}
