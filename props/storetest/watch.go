package storetest

import (
	"context"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

var hints = verdict{
	"changes-are-hinted",
	"A store that lets candidates watch a lease sends a value after each release and deletion, and closes the channel when the context ends. A candidate that waits for a hint takes over late where none comes.",
	"go doc fencepost/impl/lease Watcher",
}

// hintLimit is how long a hint is waited for, in real time: only a wrong store
// takes that long.
const hintLimit = 10 * time.Second

// Watch are the checks of a store that hints at changes, as lease.Watcher: the
// group "watch".
func Watch(open script.Open, o kit.Options) []kit.Check {
	return watchChecks(open, o, hintLimit)
}

func watchChecks(open script.Open, o kit.Options, limit time.Duration) []kit.Check {
	check := func(name string, f func(*probe, time.Duration)) kit.Check {
		return kit.Check{Name: "watch/" + name, Run: func() kit.Outcome {
			return ask(open, o, hints, func(p *probe) { f(p, limit) })
		}}
	}
	return []kit.Check{
		check("a-release-is-hinted", (*probe).hintOfRelease),
		check("a-change-of-holder-is-hinted", (*probe).hintOfHolder),
		check("a-deletion-is-hinted", (*probe).hintOfDeletion),
		check("every-watcher-is-hinted", (*probe).hintToAll),
		check("the-end-of-the-context-ends-the-watch", (*probe).watchEnds),
	}
}

func (p *probe) watch(ctx context.Context) (hints <-chan struct{}) {
	w, ok := p.lab.Thing().(lease.Watcher)
	if !ok {
		p.skip("the store has no Watch: see lease.Watcher")
	}
	err := p.call("c watches "+name(lock), func() (said string, err error) {
		hints, err = w.Watch(ctx, lock)
		return "watching", err
	})
	if err != nil || hints == nil {
		p.want("a channel")
	}
	return hints
}

// drain takes what came before.
func drain(hints <-chan struct{}) {
	select {
	case <-hints:
	default:
	}
}

func (p *probe) hinted(hints <-chan struct{}, limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	p.note("c waits for a hint")
	p.advance(p.t.short) // for a store that looks now and then
	select {
	case _, open := <-hints:
		if !open {
			p.want("a hint; the channel was closed, and c's context has not ended")
		}
	case <-late.C:
		p.want("a hint; none came in %v", limit)
	}
}

func (p *probe) hintOfRelease(limit time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hints := p.watch(ctx)
	for _, h := range []lease.Holder{node("a"), node("b")} {
		g := p.mustAcquire(lock, h, "the lease is free")
		drain(hints)
		p.mustRelease(lock, h, g.Token)
		p.hinted(hints, limit)
	}
}

func (p *probe) hintOfHolder(limit time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.mustAcquire(lock, node("a"), "the lease is free")
	hints := p.watch(ctx)
	p.advance(p.t.free())
	p.mustAcquire(lock, node("b"), "a's tenure is over")
	p.hinted(hints, limit)
}

func (p *probe) hintOfDeletion(limit time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, ok := p.lab.Thing().(kit.Deleter)
	if !ok {
		p.skip("the store has no Delete: see kit.Deleter")
	}
	hints := p.watch(ctx)
	p.mustAcquire(lock, node("a"), "the lease is free")
	drain(hints)
	if err := p.call("an operator deletes "+name(lock), func() (string, error) { return "deleted", d.Delete(ctx, lock) }); err != nil {
		p.want("deleted")
	}
	p.hinted(hints, limit)
}

func (p *probe) hintToAll(limit time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := p.mustAcquire(lock, node("a"), "the lease is free")
	first, second := p.watch(ctx), p.watch(ctx)
	p.mustRelease(lock, node("a"), g.Token)
	p.hinted(first, limit)
	p.hinted(second, limit)
}

func (p *probe) watchEnds(limit time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	hints := p.watch(ctx)
	cancel()
	late := time.NewTimer(limit)
	defer late.Stop()
	p.note("c's context ends, and c waits for the channel to close")
	for {
		select {
		case _, open := <-hints:
			if !open {
				return
			}
		case <-late.C:
			p.want("closed; it was not in %v, and whoever ranges over it waits for ever", limit)
		}
	}
}
