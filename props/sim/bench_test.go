package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fencepost/model"
)

// benchSchedules are as the properties draw them, without the calm, whose one
// action is hundreds.
func benchSchedules(b testing.TB) (schedules []*Schedule, actions int) {
	p := Chaos()
	p.Calm = false
	for seed := range uint64(64) {
		s := generated(b, p, seed, 125)
		schedules, actions = append(schedules, s), actions+len(s.Actions)
	}
	return schedules, actions
}

// replay applies every action of the schedules to fresh Worlds made before.
func replay(schedules []*Schedule, worlds []World, scratch *World) {
	for i, s := range schedules {
		*scratch = worlds[i]
		if t := scratch.setup.opts.Trace; t != nil {
			t.Events = t.Events[:0]
		}
		for k := range s.Actions {
			scratch.Apply(&s.Actions[k])
		}
	}
}

func worldsOf(schedules []*Schedule, opts Options) (worlds []World) {
	for _, s := range schedules {
		worlds = append(worlds, newWorld(newSetup(s.Config, Builtin(), opts)))
	}
	return worlds
}

func benchmarkApply(b *testing.B, opts Options) {
	schedules, actions := benchSchedules(b)
	worlds := worldsOf(schedules, opts)
	scratch := new(World)
	b.ReportAllocs()
	for b.Loop() {
		replay(schedules, worlds, scratch)
	}
	b.ReportMetric(float64(actions)*float64(b.N)/b.Elapsed().Seconds(), "actions/s")
}

func BenchmarkApply(b *testing.B) { benchmarkApply(b, Options{}) }

func BenchmarkApplyMonitored(b *testing.B) {
	benchmarkApply(b, Options{Monitor: true, Trace: &Trace{Events: make([]model.Event, 0, 1<<12)}})
}

func BenchmarkApplyLockstep(b *testing.B) {
	benchmarkApply(b, Options{Monitor: true, Lockstep: true})
}

// BenchmarkGenerate draws, runs and judges a schedule of 125 actions and a calm.
func BenchmarkGenerate(b *testing.B) {
	p := Raw()
	src := rand.NewPCG(1, 1)
	worlds := make([]World, 64)
	for i := range worlds {
		w, err := NewWorld(RandomConfig(src), Builtin(), Options{Monitor: true, Lockstep: true})
		if err != nil {
			b.Fatal(err)
		}
		worlds[i] = w
	}
	scratch := new(World)
	var actions []Action
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range worlds {
			*scratch = worlds[i]
			actions = AppendGenerated(actions[:0], src, &p, scratch, 125, nil)
			n += len(actions)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "actions/s")
}

// BenchmarkMinimize reports the median over failures of several kinds.
func BenchmarkMinimize(b *testing.B) {
	type failure struct {
		s     *Schedule
		fails Fails
	}
	var failures []failure
	for seed := range uint64(8) {
		for _, f := range []struct {
			subject Subject
			v       model.Invariant
		}{{unfencedSubject(), model.StorageSafety}, {fromTheReplySubject(), model.BeliefOwnership}, {reissuingSubject(), model.TokenMonotonicity}} {
			p := Chaos()
			if seed%2 == 1 {
				p = Raw()
			}
			failures = append(failures, failure{failing(b, f.subject, f.v, p, seed), FailsOn(f.subject, f.v)})
		}
	}
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		for _, f := range failures {
			began := time.Now()
			Minimize(f.s, f.fails)
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-worst")
}
