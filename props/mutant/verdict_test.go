package mutant

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

// unreduced is what exploration without one reduction made of a bug.
type unreduced struct {
	Mutant
	without  sim.Reductions
	shortest *sim.Schedule // as stored
	narrowed bool          // to the faults that it takes
	*explore.Report
	err error
}

// explore goes as deep as the stored counterexample is long, first in all that
// exploration does for the bug and then, if there are too many worlds, without
// the faults that the counterexample does not need: less can happen there, and
// the counterexample still can, so the shortest failure is no shorter and no
// longer. One goroutine does it, so that it is no matter of luck where a bound
// ends it.
func (x *unreduced) explore(maxStates uint64) {
	o := x.Explored()
	o.Reductions, o.MaxDepth, o.MaxStates, o.Workers = sim.AllReductions&^x.without, len(x.shortest.Actions), maxStates, 1
	x.Report, x.err = explore.Run(context.Background(), o)
	if needed := o.Faults & needs(x.shortest); x.err == nil && x.open() && needed != o.Faults {
		x.narrowed, o.Faults = true, needed
		x.Report, x.err = explore.Run(context.Background(), o)
	}
}

// open reports whether there were too many worlds to tell. A failure that is
// too short tells all the same.
func (x *unreduced) open() bool {
	found, depth := &x.Found, len(x.shortest.Actions)
	switch {
	case found.Bounded != "states" || found.Failed && found.FailDepth < depth:
		return false
	case found.Failed && found.FailDepth == depth:
		return found.Depth < depth-1 // shorter paths are left
	}
	return found.Depth < depth
}

// needs are the faults in a schedule.
func needs(s *sim.Schedule) (f explore.Faults) {
	for _, a := range s.Actions {
		switch a.Kind {
		case sim.Advance:
			if a.Rates != [model.MaxNodes]int32{} {
				f |= explore.Drifting
			}
		case sim.Drop:
			f |= explore.Loss
		case sim.Duplicate:
			f |= explore.Duplication
		case sim.Put:
			f |= explore.Writes
		case sim.Resign:
			f |= explore.Resignation
		case sim.WorkBegin, sim.WorkEnd:
			f |= explore.Work
		case sim.Crash, sim.Restart:
			switch a.Who {
			case sim.StoreNode:
				f |= explore.StoreCrash
			case sim.StorageNode:
				f |= explore.StorageCrash
			default:
				f |= explore.ClientCrash
			}
		case sim.Suspend, sim.Resume:
			f |= explore.Suspension
		case sim.Delete:
			f |= explore.Deletion
		case sim.Jump:
			f |= explore.WallJumps
		}
	}
	return f
}

// TestTheVerdictIsTheSameWithoutEachReduction: a key that takes worlds for one
// that differ may hide a bug, or show it later. For every bug and each
// reduction the shortest failure is as long without the reduction as with it.
// Without some of them there are too many worlds to go so deep for some bugs;
// then at least nothing fails before. FENCEPOST_LONG=1 goes deeper.
func TestTheVerdictIsTheSameWithoutEachReduction(t *testing.T) {
	maxStates := uint64(20_000)
	if os.Getenv("FENCEPOST_LONG") != "" {
		maxStates = 5_000_000
	}
	reductions := sim.AllReductions.All()
	var runs []unreduced
	for _, m := range All() {
		s := stored(t, m)
		if (race || testing.Short()) && len(s.Actions) > 5 {
			continue // the shallow ones take no time
		}
		for _, r := range reductions {
			runs = append(runs, unreduced{Mutant: m, without: r, shortest: s})
		}
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(runs); i = next.Add(1) - 1 {
				runs[i].explore(maxStates)
			}
		})
	}
	wg.Wait()

	settled, narrowed, open := 0, 0, map[sim.Reductions]int{}
	for i := range runs {
		x := &runs[i]
		switch depth := len(x.shortest.Actions); {
		case x.err != nil:
			t.Errorf("%s without %v: %v", x.Name, x.without, x.err)
		case x.open():
			open[x.without]++
		case !x.Found.Failed:
			t.Errorf("%s without %v: nothing fails in %d actions; with all reductions something does after %d", x.Name, x.without, x.Found.Depth, depth)
		case x.Found.FailDepth != depth || x.Violated&^shows(x.Mutant) != 0:
			t.Errorf("%s without %v violates %v after %d actions; with all reductions %v after %d\n%v",
				x.Name, x.without, x.Violated, x.Found.FailDepth, x.shortest.Expect, depth, x.Counterexample.Actions)
		default:
			if settled++; x.narrowed {
				narrowed++
			}
		}
	}
	for _, r := range reductions {
		t.Logf("without %-17v %d of %d bugs are open", r, open[r], len(runs)/len(reductions))
	}
	t.Logf("%d of %d are settled (%.1f%%), %d of them with no more faults than needed", settled, len(runs), 100*float64(settled)/float64(len(runs)), narrowed)
	if 100*settled < 80*len(runs) {
		t.Errorf("only %d of %d are settled", settled, len(runs))
	}
}
