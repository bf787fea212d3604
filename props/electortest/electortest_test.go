package electortest

import (
	"context"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// elector is fencepost's own client, with both ways of showing belief.
func elector(env Env) Candidate {
	cfg := lease.ElectorConfig{Resource: env.Resource, Node: env.Node, Nonce: env.Nonce, Timing: env.Config, Clock: env.Clock, Logger: env.Logger}
	if env.Config.Barrier {
		cfg.Fencers = []lease.Fencer{env.Storage}
	}
	e, err := lease.NewElector(env.Store, cfg)
	if err != nil {
		panic(err)
	}
	return Candidate{
		Run: func(ctx context.Context) error {
			return e.Run(ctx, func(ctx context.Context, t lease.Term) error { return env.Lead(ctx, uint64(t.Token)) })
		},
		IsLeader: e.IsLeader,
	}
}

// byWork shows belief by calls of Env.Lead alone.
func byWork(start func(Env) Candidate) func(Env) Candidate {
	return func(env Env) Candidate {
		c := start(env)
		c.IsLeader = nil
		return c
	}
}

// byAsking shows belief by IsLeader alone.
func byAsking(start func(Env) Candidate) func(Env) Candidate {
	return func(env Env) Candidate {
		env.Lead = func(ctx context.Context, _ uint64) error {
			<-ctx.Done()
			return nil
		}
		return start(env)
	}
}

// passes runs all checks, and expects all of them to hold.
func passes(t *testing.T, start func(Env) Candidate, o Options) {
	t.Helper()
	for _, c := range Checks(start, o, kit.Effort{Seed: 1}) {
		t.Run(c.Name, func(t *testing.T) {
			out := c.Run(t)
			switch {
			case out.Failure != nil:
				t.Errorf("%s", report(out.Failure))
			case out.Skipped != "" || out.Unknown != "":
				t.Errorf("skipped %q, unknown %q", out.Skipped, out.Unknown)
			default:
				t.Log(out.Covered)
			}
		})
	}
}

func report(f *kit.Failure) string {
	s := "\n" + f.Rule + ": " + f.What + "\n\n" + strings.Join(f.Story, "\n") + "\n\n" + f.Says + "\nread: " + f.Read + "\n"
	if f.More != "" {
		s += f.More + "\n"
	}
	return s + f.Log
}

func TestElectorPassesShowingBeliefBothWays(t *testing.T) { passes(t, elector, Options{}) }
func TestElectorPassesShowingBeliefByItsWork(t *testing.T) {
	passes(t, byWork(elector), Options{Plans: 30})
}
func TestElectorPassesShowingBeliefByIsLeader(t *testing.T) {
	passes(t, byAsking(elector), Options{Plans: 30})
}
func TestElectorPassesWithABarrier(t *testing.T) {
	passes(t, elector, Options{Fences: true, Plans: 30})
}

func TestElectorPassesWithOtherTimings(t *testing.T) {
	for name, cfg := range map[string]lease.Config{
		"short, exact clocks": {TTL: 5 * time.Millisecond},
		"long, good clocks":   {TTL: time.Hour, MaxDriftRate: 0.0002, SafetyMargin: time.Second},
		"worst clocks":        {TTL: 15 * time.Second, MaxDriftRate: worstDrift},
		"odd numbers":         {TTL: 7_777_777_777, MaxDriftRate: 0.123456789},
		"bad clocks":          {TTL: 15 * time.Second, MaxDriftRate: 0.5},
	} {
		t.Run(name, func(t *testing.T) { passes(t, elector, Options{Config: cfg, Plans: 30}) })
	}
}
