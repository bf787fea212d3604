package model_test

import (
	"context"
	"fmt"

	"fencepost/model"
)

// jugs is two jugs that hold 3 and 5 litres, a tap and a drain. Its states are
// two bytes, what is in each jug.
type jugs struct{ forbidden byte } // litres that must never be in the large one

const (
	fill = iota
	empty
	pour
)

var jugSteps = [...]string{"fill", "empty", "pour"}

func (j jugs) Walker() model.Walker { return j }

func (j jugs) Begin(out *model.Steps) { out.Add(0, []byte{0, 0}) }

func (j jugs) Expand(state []byte, out *model.Steps) {
	step := func(label uint8, small, large byte) {
		if large == j.forbidden {
			out.Fail(label, 0)
			return
		}
		out.Add(label, []byte{small, large})
		if small == 3 && large == 5 {
			out.Sometimes(0)
		}
	}
	small, large := state[0], state[1]
	step(fill, 3, large)
	step(fill, small, 5)
	step(empty, 0, large)
	step(empty, small, 0)
	n := min(small, 5-large)
	step(pour, small-n, large+n)
	n = min(large, 3-small)
	step(pour, small+n, large-n)
}

// Every state that two jugs can be in: one of them is always full or empty.
func ExampleExplore() {
	x := model.Explore(context.Background(), jugs{forbidden: 6}, model.ExploreOptions{Width: 2, Sometimes: 1})
	fmt.Println(x.States, "states", x.Transitions, "transitions", "complete:", x.Complete)
	fmt.Println("both were full after", x.Sometimes[0].Depth, "steps")

	x = model.Explore(context.Background(), jugs{forbidden: 4}, model.ExploreOptions{Width: 2, Sometimes: 1})
	fmt.Println("4 litres can be reached:", x.Failed, "by", x.FailDepth, "steps")
	// Output:
	// 16 states 96 transitions complete: true
	// both were full after 2 steps
	// 4 litres can be reached: true by 6 steps
}

// How to measure 4 litres: "never 4" is what is violated.
func ExampleShortest() {
	path, _ := model.Shortest(context.Background(), jugs{forbidden: 4}, model.ExploreOptions{Width: 2, Sometimes: 1})
	for i, step := range path.Steps {
		fmt.Println(path.States[i], jugSteps[step.Label])
	}
	// Output:
	// [0 0] fill
	// [0 5] pour
	// [3 2] empty
	// [0 2] pour
	// [2 0] fill
	// [2 5] pour
}

// How far an exploration got that a bound ended.
func ExampleExploration() {
	x := model.Explore(context.Background(), jugs{forbidden: 6}, model.ExploreOptions{Width: 2, Sometimes: 1, MaxDepth: 2})
	fmt.Printf("bounded (%s) at %d states: every path of up to %d steps was covered\n", x.Bounded, x.States, x.Depth)
	for depth, level := range x.Levels {
		fmt.Println(depth, level.States, level.Steps)
	}
	// Output:
	// bounded (depth) at 6 states: every path of up to 2 steps was covered
	// 0 1 [2 2 2]
	// 1 2 [4 4 4]
	// 2 3 []
}
