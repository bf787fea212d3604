package model_test

import (
	"fmt"
	"testing"

	"fencepost/model"
)

// One command holds the explorer against Spin, on the same states:
//
//	go test -run '^$' -bench 'ExploreReference|Spin' -benchtime 1x ./model
//
// The number of workers is set by the benchmark and not by -cpu: with a list of
// those and -benchtime 1x, package testing reports its trial run, which it made
// with the last number of the list, under the name of the first.

func BenchmarkExploreReference(b *testing.B) {
	for _, c := range []struct {
		name    string
		config  reference
		workers int
	}{{"M", refM, 1}, {"M", refM, 2}, {"L", refL, 1}, {"L", refL, 2}} {
		b.Run(fmt.Sprintf("%s/workers=%d", c.name, c.workers), func(b *testing.B) {
			var states, transitions, memory float64
			for b.Loop() {
				x := model.Explore(b.Context(), c.config, model.ExploreOptions{Width: 8, Workers: c.workers})
				if !x.Complete {
					b.Fatalf("failed %v, bounded %q", x.Failed, x.Bounded)
				}
				states += float64(x.States)
				transitions += float64(x.Transitions)
				memory = float64(x.Memory) / float64(x.States)
			}
			b.ReportMetric(states/b.Elapsed().Seconds(), "states/s")
			b.ReportMetric(transitions/b.Elapsed().Seconds(), "transitions/s")
			b.ReportMetric(memory, "B/state")
		})
	}
}

// BenchmarkSpin runs Spin's verifier: the usual one, its two-core depth-first
// one and its parallel breadth-first one, each as its documentation says for
// this size. Times are pan's own, so compiling and starting it is not counted.
func BenchmarkSpin(b *testing.B) {
	for _, c := range []struct {
		name  string
		flags []string
		args  []string
	}{
		{"L/cores=1", nil, nil},
		{"L/cores=2/dfs", []string{"-DNCORE=2", "-DMEMLIM=6000", "-DVMAX=32"}, nil},
		{"L/cores=2/bfs", []string{"-DBFS_PAR"}, []string{"-u2"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := buildSpin(b, refL, c.flags...)
			var states, transitions, seconds float64
			for b.Loop() {
				s.verify(b, append([]string{"-m3000000", "-w25"}, c.args...)...)
				states += float64(s.states)
				transitions += float64(s.transitions)
				seconds += s.seconds
			}
			b.ReportMetric(states/seconds, "states/s")
			b.ReportMetric(transitions/seconds, "transitions/s")
			b.ReportMetric(s.megabytes*(1<<20)/float64(s.states), "B/state")
		})
	}
}
