package livetest

import (
	"context"
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// The rules of a lease.Watcher.
const (
	ruleHints = "changes-are-hinted"
	saysHints = "A store that lets candidates watch a lease sends a value after each release, deletion and change of holder. A candidate that waits for a hint takes over late where none comes."
	ruleEnds  = "the-end-of-the-context-ends-the-watch"
	saysEnds  = "The channel of a watch is closed once its context has ended. Else whoever ranges over it waits for ever."
	readWatch = "go doc fencepost/impl/lease Watcher"
)

// watch has process 2 watch the lease.
func (t *trial) watch(ctx context.Context) <-chan struct{} {
	w, ok := t.w.process(2).(lease.Watcher)
	if !ok {
		panic(skipped("the store has no Watch: see lease.Watcher"))
	}
	var hints <-chan struct{}
	at := t.w.clk.Now()
	// Its context is that of the watch, not of the call.
	err := guarded(ctx, t.w.clk, patience, func(context.Context) (err error) {
		hints, err = w.Watch(ctx, t.lease)
		return err
	})
	switch {
	case err != nil:
		panic(unproved(fmt.Sprintf("nothing is watched: %v", err)))
	case hints == nil:
		t.tell(at, "c watches it", "no channel")
		t.accuse(ruleHints, saysHints, "a channel")
	}
	t.tell(at, "c watches it", "watching")
	return hints
}

// accuse convicts by a rule that is not the model's.
func (t *trial) accuse(rule, says, want string) {
	last := t.lines[len(t.lines)-1]
	panic(conviction{&kit.Failure{
		Rule: rule, Says: says, Read: readWatch, Log: t.w.log.String(),
		What:  fmt.Sprintf("%s: %s; expected: %s", last.asked, last.answer, want),
		Story: t.story(want),
	}})
}

// hintLimit is how long a hint is waited for. One is late after Latency, and
// machines are slow: a candidate that has to poll all the same is what is wrong.
func (t *trial) hintLimit() time.Duration { return 4*t.o.Latency + t.ttl }

func (t *trial) hinted(hints <-chan struct{}) {
	at, limit := t.w.clk.Now(), t.hintLimit()
	late := t.w.clk.Timer(at + limit)
	defer late.Stop()
	select {
	case _, open := <-hints:
		if !open {
			t.tell(at, "c waits for a hint", "the channel was closed, and c's context has not ended")
			t.accuse(ruleHints, saysHints, "a hint")
		}
		t.tell(at, "c waits for a hint", "hint")
	case <-late.C():
		t.tell(at, "c waits for a hint", fmt.Sprintf("none in %v", limit))
		t.accuse(ruleHints, saysHints, "a hint")
	}
}

// drain takes what came before, which may still be on its way.
func (t *trial) drain(hints <-chan struct{}) {
	end := t.w.clk.Timer(t.w.clk.Now() + min(t.o.Latency, t.ttl/4))
	defer end.Stop()
	for {
		select {
		case _, open := <-hints:
			if !open {
				return // the next that waits for a hint says so
			}
		case <-end.C():
			return
		}
	}
}

func (t *trial) hintOfRelease() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := t.candidate("a", 0)
	t.watch(ctx) // nobody reads this one, which must keep nobody else from his
	hints := t.watch(ctx)
	for range 2 {
		held := a.mustAcquire(4 * t.ttl)
		t.drain(hints)
		a.mustRelease(held)
		t.hinted(hints)
		a = a.next()
	}
}

func (t *trial) hintOfHolder() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	held := a.mustAcquire(t.ttl)
	hints := t.watch(ctx)
	b.mustLapse(a, held)
	t.hinted(hints)
}

func (t *trial) hintOfDeletion() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hints := t.watch(ctx)
	t.candidate("a", 0).mustAcquire(4 * t.ttl)
	t.drain(hints)
	// What goes on behind its back a store need not hear of, if it can delete.
	t.delete(t.own)
	t.hinted(hints)
}

func (t *trial) watchEnds() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hints := t.watch(ctx)
	t.candidate("a", 0).mustAcquire(t.ttl)
	at := t.w.clk.Now()
	cancel()
	limit := 4 * t.hintLimit()
	late := t.w.clk.Timer(at + limit)
	defer late.Stop()
	for {
		select {
		case _, open := <-hints:
			if !open {
				return
			}
		case <-late.C():
			t.tell(at, "the context of the watch ends", fmt.Sprintf("the channel was not closed in %v", limit))
			t.accuse(ruleEnds, saysEnds, "a closed channel")
		}
	}
}
