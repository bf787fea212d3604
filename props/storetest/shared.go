package storetest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// sharedPart is the calls of these checks, of a hundred of what the same ones
// make of a process by itself.
const sharedPart = 50

// Shared are the checks of two processes of a store at once on one durable
// state, under [kit.Options].Shared: what a process remembers by itself, such as
// a row that it has read, is what another has changed meanwhile.
func Shared(open script.Open, o kit.Options, e kit.Effort) []kit.Check {
	half := o
	half.Calls = max(o.Budget(kit.Effort{}, sharedPart), 1)
	checks := slices.Concat(
		Lockstep(together(open), half, e),
		Concurrency(together(open), half, e),
		[]kit.Check{Linearizability(together(open), half, e)},
	)
	for i, c := range checks {
		_, name, grouped := strings.Cut(c.Name, "/")
		if !grouped {
			name = c.Name
		}
		checks[i] = kit.Check{Name: "shared/" + name, Run: func() kit.Outcome {
			if !o.Shared {
				return kit.Outcome{Skipped: "Options.Shared is not set: one process at a time has the store to itself"}
			}
			out := c.Run()
			if f := out.Failure; f != nil {
				f.Story = append([]string{"(two processes of the store on one durable state, asked in turn)"}, f.Story...)
				f.File = nil // a replay is on one process
			}
			return out
		}}
	}
	return checks
}

// together opens two processes of a store that live and die together.
func together(open script.Open) script.Open {
	return func(e kit.Env) lease.Store {
		p := &processes{both: [2]lease.Store{open(e), open(e)}}
		if _, ok := p.both[0].(kit.Deleter); ok {
			return deletingProcesses{p}
		}
		return p
	}
}

// processes is a store whose calls go to two processes in turn.
type processes struct {
	both  [2]lease.Store
	calls atomic.Uint64
}

func (p *processes) turn() lease.Store { return p.both[p.calls.Add(1)%2] }

// Unwrap is what tells the capabilities of both.
func (p *processes) Unwrap() lease.Store { return p.both[0] }

func (p *processes) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	return p.turn().Acquire(ctx, resource, h, ttl)
}

func (p *processes) Renew(ctx context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	return p.turn().Renew(ctx, resource, h, t, ttl)
}

func (p *processes) Release(ctx context.Context, resource string, h lease.Holder, t lease.Token) error {
	return p.turn().Release(ctx, resource, h, t)
}

func (p *processes) Get(ctx context.Context, resource string) (lease.Observation, error) {
	return p.turn().Get(ctx, resource)
}

// Settle waits for both.
func (p *processes) Settle() {
	for _, s := range p.both {
		if s, ok := s.(kit.Settler); ok {
			s.Settle()
		}
	}
}

// Close ends both, whatever becomes of that: they are gone.
func (p *processes) Close() {
	for _, s := range p.both {
		kit.Close(s)
	}
}

// deletingProcesses is one whose leases an operator can delete.
type deletingProcesses struct{ *processes }

// Delete asks one of them.
func (p deletingProcesses) Delete(ctx context.Context, resource string) error {
	return p.turn().(kit.Deleter).Delete(ctx, resource)
}
