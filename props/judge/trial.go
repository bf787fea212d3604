package judge

import (
	"slices"

	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/sim"
)

// Trial draws random schedules against a subject and judges each, one after
// the other, in memory that it reuses: what both a sweep and a property do. It
// must not be used concurrently.
type Trial struct {
	Subject sim.Subject
	Want    model.Set
	// Config, where set, changes each drawn configuration.
	Config func(*sim.Config)

	Counts    sim.Counts // of all schedules so far
	Histories int64      // of runs that were checked for linearizability
	Undecided int64      // of these, those whose check ran out of its bounds

	actions []sim.Action
	trace   sim.Trace
}

// Run draws a configuration and then a schedule of minSteps to maxSteps random
// actions, and the calm that the profile has, and judges it. It returns nil if
// everything that is wanted held. The error is that of [sim.NewWorld] for a
// configuration that Config made invalid.
func (t *Trial) Run(src sim.Source, p *sim.Profile, minSteps, maxSteps int) (*Failure, error) {
	cfg := sim.RandomConfig(src)
	if t.Config != nil {
		t.Config(&cfg)
	}
	steps := minSteps
	if maxSteps > minSteps {
		steps += int(src.Uint64() % uint64(maxSteps-minSteps+1))
	}
	var trace *sim.Trace
	if t.Want.Has(model.Linearizability) {
		t.trace.Events = t.trace.Events[:0]
		trace = &t.trace
	}
	world, err := sim.NewWorld(cfg, t.Subject, options(t.Want, trace))
	if err != nil {
		return nil, err
	}
	t.actions = sim.AppendGenerated(t.actions[:0], src, p, &world, steps, nil)
	c := world.Counts()
	c.Runs = 1
	if world.Waived() != 0 {
		c.Waived = 1
	}
	t.Counts.Add(c)
	violated, first := world.Violated(), world.First()
	if trace != nil && violated == 0 {
		t.Histories++
		switch result, v := linearize(trace.Events, &cfg, t.Subject.Promise()); result {
		case linearizability.Violated:
			violated, first = model.SetOf(model.Linearizability), v
		case linearizability.Unknown:
			t.Undecided++
		}
	}
	if violated == 0 {
		return nil, nil
	}
	return &Failure{Profile: p.Name,
		Result:   sim.Result{Violated: violated, First: first, Waived: world.Waived(), Mismatch: world.Mismatch(), Applied: len(t.actions)},
		Schedule: &sim.Schedule{Subject: t.Subject.Name, Config: cfg, Actions: slices.Clone(t.actions)}}, nil
}
