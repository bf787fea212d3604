package lease

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/impl/clock"
)

// rivalry lets two groups, on clocks of their own, compete for a few leases at a
// store that loses calls and answers, is late with both, or hangs, and cuts each
// of them off at times. They pause, are slow to be told and to stop, and are told
// to leave leases and to come back. What is wrong with it is planted.
type rivalry struct {
	seed      uint64
	slow      clock.Rate                                      // of the first; default as slow as the bound allows
	answers   func(calls []Call, answers []Answer, lost bool) // what the store makes of them
	ask       func(c Call) Call                               // of the store
	twins     bool                                            // both go by one name and nonce
	lateTimer time.Duration                                   // by which each timer fires
	hasty     bool                                            // done is called when the context ends, whatever goes on
}

const rivals = 12

func (r rivalry) watch(t *testing.T) (w *watchdog) {
	synctest.Test(t, func(t *testing.T) {
		// 10s, less 5%.
		w = newWatchdog(9500 * ms)
		r.run(t, w)
	})
	return w
}

func (r rivalry) run(t *testing.T, w *watchdog) {
	cfg := Config{TTL: 10 * sec, MaxDriftRate: 0.05, RetryInterval: sec}
	base := clock.Monotonic()
	memory := newMemory(t, clock.NewDrifting(base, 1_020_000, 42*sec), MemoryOptions{})
	if r.slow == 0 {
		r.slow = slowest
	}
	var groups []*Group
	var clocks []*pausing
	nodes := []string{"alice", "bob"}
	for i, rate := range []clock.Rate{r.slow, 1_000_000} {
		own := &pausing{Clock: clock.NewDrifting(base, rate, time.Duration(i)*7*sec), base: base, late: r.lateTimer}
		opts := GroupConfig{Node: nodes[i], Nonce: 1, Timing: cfg, Clock: own, MaxBatch: 4, MaxCalls: 4, MaxHeld: 8 * (1 - i), Lead: r.lead(nodes[i], w)}
		if r.twins {
			opts.Node = "twin"
		}
		store := counting{memory, r.store(i, nodes[i], own, memory, base, w)}
		g, err := NewGroup(store, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range numbered(rivals) {
			if err := g.Add(name); err != nil {
				t.Fatal(err)
			}
		}
		groups, clocks = append(groups, g), append(clocks, own)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, len(groups))
	for _, g := range groups {
		go func() {
			g.Run(ctx)
			ended <- struct{}{}
		}()
	}
	rnd := rand.New(rand.NewPCG(r.seed, 2))
	for base.Now() < 300*sec {
		time.Sleep(time.Duration(rnd.IntN(400_000_000) + 1)) // in the bubble
		synctest.Wait()
		for _, name := range numbered(rivals) {
			var terms []Term
			var now []time.Duration
			var paused []bool
			for i, g := range groups {
				terms = append(terms, g.Term(name))
				now = append(now, clocks[i].Clock.Now())
				paused = append(paused, base.Now() < clocks[i].until())
			}
			held, err := memory.Get(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			w.looked(name, nodes, terms, now, paused, held)
		}
		g, name := rnd.IntN(len(groups)), numbered(rivals)[rnd.IntN(rivals)]
		switch rnd.IntN(60) {
		case 0:
			groups[g].Remove(name)
		case 1, 2:
			groups[g].Add(name)
		case 3:
			clocks[g].pause(time.Duration(rnd.IntN(12_000)) * ms)
		}
	}
	cancel()
	for range groups {
		<-ended
	}
}

// lead starts work that takes its time, and sometimes is slow to start it.
func (r rivalry) lead(node string, w *watchdog) func(context.Context, Term, func()) {
	return func(ctx context.Context, term Term, done func()) {
		rnd := rand.New(rand.NewPCG(r.seed, placeOf(node+term.Resource, uint64(term.Token))))
		s := w.began(ctx, term, node+" "+term.Resource)
		if rnd.IntN(16) == 0 {
			time.Sleep(time.Duration(rnd.IntN(2_000_000_000)))
		}
		if r.hasty {
			context.AfterFunc(ctx, done)
		}
		go func() {
			defer done()
			defer w.stopped(s)
			if rnd.IntN(3) > 0 {
				sleep(ctx, time.Duration(rnd.IntN(60_000_000_000)))
				return
			}
			<-ctx.Done()
			time.Sleep(time.Duration(rnd.IntN(2_000_000_000)))
		}()
	}
}

func sleep(ctx context.Context, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// store is what one node calls. What becomes of a call depends on the call and
// the seed alone, not on the order of calls.
func (r rivalry) store(i int, node string, own *pausing, memory *Memory, base clock.Clock, w *watchdog) func(context.Context, []Call, func() []Answer) []Answer {
	return func(ctx context.Context, calls []Call, _ func() []Answer) []Answer {
		sent := own.Clock.Now()
		w.called(node, calls)
		rnd := rand.New(rand.NewPCG(r.seed, placeOf(node+calls[0].Resource, uint64(calls[0].Sent))))
		made := func(ctx context.Context) []Answer {
			asked := slices.Clone(calls)
			if r.ask != nil {
				for i := range asked {
					asked[i] = r.ask(asked[i])
				}
			}
			answers := memory.Batch(ctx, asked)
			for i := range answers {
				answers[i].Grant.TTL = calls[i].TTL
			}
			return answers
		}
		give := func(answers []Answer, lost bool) []Answer {
			if lost {
				for i := range answers {
					answers[i] = Answer{Err: errLost}
				}
			}
			if r.answers != nil {
				r.answers(calls, answers, lost)
				return answers
			}
			w.confirmed(sent, calls, answers)
			return answers
		}
		late, deaf := time.Duration(rnd.IntN(4_000_000_000)), context.WithoutCancel(ctx)
		if rnd.IntN(2) == 0 {
			deaf = ctx
		}
		if (base.Now()+time.Duration(i)*20*sec)%(40*sec) < 12*sec {
			return give(make([]Answer, len(calls)), true) // cut off
		}
		switch rnd.IntN(12) {
		case 0:
			return give(make([]Answer, len(calls)), true)
		case 1:
			return give(made(ctx), true)
		case 2:
			sleep(deaf, late)
			return give(made(deaf), false)
		case 3:
			answers := made(ctx)
			sleep(deaf, late)
			return give(answers, false)
		case 4: // hangs, and lands when it is given up
			<-ctx.Done()
			return give(made(deaf), true)
		case 5: // the last answer is lost
			answers := made(ctx)
			answers[len(answers)-1] = Answer{Err: errLost}
			return give(answers, false)
		}
		return give(made(ctx), false)
	}
}

// pausing is the clock of a process that can be paused: whoever reads it then
// gets on only after that. Its timers may be late.
type pausing struct {
	clock.Clock
	base clock.Clock
	late time.Duration
	end  atomic.Int64
}

func (p *pausing) Now() time.Duration {
	time.Sleep(p.until() - p.base.Now())
	return p.Clock.Now()
}

func (p *pausing) Timer(at time.Duration) clock.Timer {
	return lateTimer{p.Clock.Timer(add(at, p.late)), p.late}
}

func (p *pausing) pause(long time.Duration) { p.end.Store(int64(max(p.until(), p.base.Now()+long))) }

func (p *pausing) until() time.Duration { return time.Duration(p.end.Load()) }

type lateTimer struct {
	clock.Timer
	late time.Duration
}

func (l lateTimer) Reset(at time.Duration) { l.Timer.Reset(add(at, l.late)) }

func TestRivalGroupsKeepEveryRule(t *testing.T) {
	terms, causes := 0, map[string]int{}
	for seed := range uint64(8) {
		w := rivalry{seed: seed}.watch(t)
		for _, rule := range slices.Sorted(maps.Keys(w.breached)) {
			t.Errorf("seed %d: %s: %s", seed, rule, w.breached[rule])
		}
		terms += w.terms
		for cause, n := range w.causes {
			causes[cause] += n
		}
	}
	t.Logf("%d terms, ended: %v", terms, causes)
	if terms < 500 || causes["lapsed"] == 0 || causes["resigned"] == 0 {
		t.Errorf("%d terms, ended: %v: too little happened", terms, causes)
	}
}

func TestRivalGroupsAreCaughtAtWhatIsPlanted(t *testing.T) {
	for name, c := range map[string]struct {
		r    rivalry
		want []string // it may break
	}{
		"a store that lapses before it says": {
			rivalry{ask: func(c Call) Call { c.TTL /= 2; return c }},
			[]string{ruleBelievers, ruleOwnership},
		},
		"a lost answer taken for a grant": {
			rivalry{answers: func(calls []Call, answers []Answer, lost bool) {
				for i, c := range calls {
					if c.Op == OpRenew && answers[i].Err == errLost {
						answers[i] = Answer{Grant: Grant{Resource: c.Resource, Holder: c.Holder, Token: c.Token, TTL: c.TTL}}
					}
				}
			}},
			[]string{ruleBelievers, ruleOwnership},
		},
		"the tokens of a batch out of order": {
			rivalry{answers: func(calls []Call, answers []Answer, lost bool) {
				first, last := &answers[0].Grant, &answers[len(answers)-1].Grant
				first.Token, last.Token = last.Token, first.Token
			}},
			[]string{ruleOwnership, ruleTokens, ruleBelievers},
		},
		"two processes with one identity": {
			rivalry{twins: true},
			[]string{ruleBelievers, ruleTokens},
		},
		"a clock slower than the bound": {
			rivalry{slow: 700_000},
			[]string{ruleOwnership, ruleBelievers},
		},
		"terms ended by a timer that is late": {
			rivalry{lateTimer: 2 * sec},
			[]string{ruleContext},
		},
		"done before the work has stopped": {
			rivalry{hasty: true},
			[]string{ruleDone, ruleOneTerm},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(8) {
				c.r.seed = seed
				w := c.r.watch(t)
				for _, rule := range c.want {
					if _, ok := w.breached[rule]; ok {
						t.Logf("seed %d: %s: %s", seed, rule, w.breached[rule])
						return
					}
				}
			}
			t.Errorf("not caught by any of %q", c.want)
		})
	}
}
