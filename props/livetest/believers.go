package livetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

const (
	ruleBelief   = "never-two-believers"
	saysBelief   = "Two candidates never believe at one instant that they lead. A store that grants a lease while it is held, or ends it before its TTL, makes two lead at once whatever they do."
	ruleHandOver = "a-release-hands-over"
	saysHandOver = "Once a leader has released the lease another leads, after the interval at which candidates ask and not after the TTL."
)

// belief is an interval in which a candidate was seen to believe: at both ends,
// and so all the while.
type belief struct {
	holder   lease.Holder
	token    lease.Token
	from, to time.Duration
	resigned bool
}

// cut is a store whose process can be killed: from then on no call leaves it.
type cut struct {
	lease.Store
	dead *atomic.Bool
}

var errKilled = errors.New("the process was killed: no call leaves it")

func (c cut) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	if c.dead.Load() {
		return lease.Grant{}, errKilled
	}
	return c.Store.Acquire(ctx, resource, holder, ttl)
}

func (c cut) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	if c.dead.Load() {
		return lease.Grant{}, errKilled
	}
	return c.Store.Renew(ctx, resource, holder, token, ttl)
}

func (c cut) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	if c.dead.Load() {
		return errKilled
	}
	return c.Store.Release(ctx, resource, holder, token)
}

// watched is the same of a store that can be watched, so that electors do.
type watched struct {
	cut
	lease.Watcher
}

// killable is store until dead is set.
func killable(store lease.Store, clk clock.Clock, dead *atomic.Bool) lease.Store {
	c := cut{plain{store, clk}, dead}
	if w, ok := store.(lease.Watcher); ok {
		return watched{c, w}
	}
	return c
}

// believers is a number of electors that campaign for one lease, of whom the
// leaders resign or are killed by turns.
type believers struct {
	w        *world[lease.Store]
	o        Options
	timing   lease.Config
	resource string
	turn     atomic.Int64 // terms so far
	end      time.Duration

	mu     sync.Mutex
	seen   []belief
	killed int
	err    error
}

const electors = 4

func believe(w *world[lease.Store], o Options) kit.Outcome {
	b := &believers{w: w, o: o, resource: w.resource()}
	b.timing = lease.Config{TTL: o.TTL, MaxDriftRate: 0.01, LockDelay: o.LockDelay}
	if err := b.timing.Validate(); err != nil {
		return kit.Outcome{Unknown: fmt.Sprintf("nobody can lead: %v", err)}
	}
	// Of each two terms one ends by a kill, and takes a TTL to be over.
	b.end = w.clk.Now() + 8*o.TTL + 4*(o.slack()+o.LockDelay)
	var wg sync.WaitGroup
	for i := range electors {
		store := w.process(i % stormProcesses)
		wg.Go(func() { b.candidate(fmt.Sprintf("n%d", i), store) })
	}
	wg.Wait()
	return b.outcome()
}

// candidate is one process after another, until the end.
func (b *believers) candidate(node string, store lease.Store) {
	for b.w.clk.Now() < b.end {
		if err := b.process(node, store); err != nil {
			b.mu.Lock()
			b.err = errors.Join(b.err, err)
			b.mu.Unlock()
			return
		}
	}
}

// process campaigns until it is killed, or the end comes.
func (b *believers) process(node string, store lease.Store) error {
	dead := new(atomic.Bool)
	e, err := lease.NewElector(killable(store, b.w.clk, dead), lease.ElectorConfig{Resource: b.resource, Node: node, Timing: b.timing})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := b.w.clk.Timer(b.end)
	defer over.Stop()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-over.C():
			cancel()
		case <-ended:
		}
	}()
	err = e.Run(ctx, func(ctx context.Context, term lease.Term) error {
		kill := b.turn.Add(1)%2 == 0
		bel := b.lead(ctx, term)
		if bel.resigned = !kill && bel.to > 0; kill {
			dead.Store(true)
			cancel()
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if kill {
			b.killed++
		}
		b.seen = append(b.seen, bel)
		return nil
	})
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// lead believes for part of a TTL, unless the term ends before, and writes down
// from when to when for certain.
func (b *believers) lead(ctx context.Context, term lease.Term) belief {
	bel := belief{holder: term.Holder, token: term.Token}
	stop := b.w.clk.Now() + b.o.TTL/2
	for ctx.Err() == nil {
		now := b.w.clk.Now() // before it is asked: what is valid then was valid now
		if !term.Valid() {
			break
		}
		if bel.from == 0 {
			bel.from = now
		} else {
			bel.to = now
		}
		if now >= stop {
			break
		}
		sleep(b.w.clk, now+min(b.o.TTL/50, 5*time.Millisecond))
	}
	return bel
}

func (b *believers) outcome() kit.Outcome {
	b.seen = slices.DeleteFunc(b.seen, func(x belief) bool { return x.to == 0 })
	slices.SortFunc(b.seen, func(x, y belief) int { return int(x.from - y.from) })
	var handOvers []time.Duration
	for i := 1; i < len(b.seen); i++ {
		last, next := b.seen[i-1], b.seen[i]
		if next.from < last.to {
			return kit.Outcome{Failure: b.convict(ruleBelief, saysBelief,
				fmt.Sprintf("%v under token %d and %v under token %d both believed for %v", last.holder, last.token, next.holder, next.token, min(last.to, next.to)-next.from), i)}
		}
		if next.token <= last.token {
			return kit.Outcome{Failure: b.convict(ruleBelief, saysBelief, fmt.Sprintf("%v leads under token %d after token %d", next.holder, next.token, last.token), i)}
		}
		if last.resigned {
			handOvers = append(handOvers, next.from-last.to)
		}
	}
	slices.Sort(handOvers)
	switch {
	case b.err != nil:
		return kit.Outcome{Unknown: fmt.Sprintf("an elector gave up: %v", b.err)}
	case len(handOvers) < 2 || b.killed < 2:
		return kit.Outcome{Unknown: fmt.Sprintf("too little happened: %d terms, %d hand-overs, %d kills", len(b.seen), len(handOvers), b.killed)}
	}
	// Whoever resigns stands back for a while; the others ask at each interval.
	limit := 2*b.timing.Retry() + b.o.Latency
	if best := handOvers[0]; best > limit && best > b.timing.TTL/2 {
		return kit.Outcome{Failure: b.convict(ruleHandOver, saysHandOver, fmt.Sprintf("after %d releases it took the others %v to %v to lead; expected: %v", len(handOvers), best, handOvers[len(handOvers)-1], limit), len(b.seen)-1)}
	}
	return kit.Outcome{Covered: fmt.Sprintf("%d terms: after a release another led in %v (median), %d were killed",
		len(b.seen), handOvers[len(handOvers)/2].Round(time.Millisecond), b.killed)}
}

// convict tells the terms up to number i.
func (b *believers) convict(rule, says, what string, i int) *kit.Failure {
	var lines []line
	for _, x := range b.seen[max(0, i-3) : i+1] {
		how := "killed"
		if x.resigned {
			how = "resigned"
		}
		lines = append(lines, line{x.from - b.seen[0].from, fmt.Sprintf("%v leads under token %d", x.holder, x.token), fmt.Sprintf("for %v, then %s", x.to-x.from, how), 1})
	}
	return &kit.Failure{Rule: rule, Says: says, What: what, Story: layOut(lines, ""), Read: readStore, Log: b.w.log.String()}
}

func believerChecks(w *world[lease.Store], o Options) []task {
	return []task{{"believers/never-two", func() (out kit.Outcome) {
		for range attempts {
			if out = believe(w, o); out.Unknown == "" {
				break
			}
		}
		return out
	}}}
}
