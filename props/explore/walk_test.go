package explore

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/sim"
)

// plain walks by applying every action by itself, where walker joins the keys of
// many, and leaves out those that lead where another does.
type plain struct {
	s     *system
	space *sim.Space
}

func (p plain) Walker() model.Walker { return plain{p.s, p.s.space()} }

func (p plain) Begin(out *model.Steps) { out.Add(0, p.space.AppendKey(nil, &p.s.start)) }

func (p plain) Expand(state []byte, out *model.Steps) {
	var base, w sim.World
	p.space.Decode(state, &base)
	w.CopyFrom(&base)
	p.s.moves(&base, id, nil, func(a *sim.Action) bool {
		if w.Apply(a) {
			if w.Violated() != 0 {
				out.Fail(uint8(a.Kind), 0)
			} else {
				out.Add(uint8(a.Kind), p.space.AppendKey(nil, &w))
			}
			w.CopyFrom(&base)
		}
		return true
	})
}

// What is joined or left out loses no state: the plain walk finds as many, at
// the same depths, and fails where the other does.
func TestJoinedAndLeftOutStepsLoseNothing(t *testing.T) {
	three, crash, exactly, tenth := Default(), Default(), Default(), Default()
	three.Clients, three.Messages = 3, 1
	crash.Messages, crash.Faults = 1, crash.Faults|ClientCrash|StoreCrash|StorageCrash|Work
	exactly.Drift, exactly.Faults = 0, exactly.Faults&^Drifting
	tenth.Drift, tenth.TTL, tenth.Messages, tenth.Barrier = 10, 2, 1, true
	bug := Default()
	bug.Subject.Name, bug.Subject.Client = "lingers", lingering{}
	sets := map[string]Options{"three": three, "crash": crash, "true clocks": exactly, "a tenth": tenth, "bug": bug}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		t.Run(name, func(t *testing.T) {
			o := sets[name]
			o.Judged = Judgeable &^ model.SetOf(model.Availability, model.Lockstep)
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			s, err := newSystem(&o)
			if err != nil {
				t.Fatal(err)
			}
			want := model.Explore(context.Background(), plain{s, s.space()}, model.ExploreOptions{})
			if want.Failed != r.Found.Failed || want.FailDepth != r.Found.FailDepth || want.States != r.Found.States || len(want.Levels) != len(r.Found.Levels) {
				t.Fatalf("%d states, failed %v at %d; plainly %d, %v at %d", r.Found.States, r.Found.Failed, r.Found.FailDepth, want.States, want.Failed, want.FailDepth)
			}
			for d := range want.Levels {
				if want.Levels[d].States != r.Found.Levels[d].States {
					t.Errorf("depth %d: %d states, plainly %d", d, r.Found.Levels[d].States, want.Levels[d].States)
				}
			}
			if name != "bug" && r.Verdict != Holds || name == "bug" && r.Verdict != Violated {
				t.Errorf("%v", r.Verdict)
			}
			t.Logf("%d states; %d steps, plainly %d", r.Found.States, r.Found.Transitions, want.Transitions)
		})
	}
}

// lingering leads at its deadline, and not only before it.
type lingering struct{ sim.Client }

func (lingering) Acting(c *sim.ClientState, now sim.Clocks) bool {
	s := c.State()
	return s.Phase >= lease.Leading && now.Boot <= s.Deadline
}

func (lingering) Ends(c *sim.ClientState, now sim.Clocks, _ bool) time.Duration {
	return c.State().Deadline + 1 - now.Boot
}
