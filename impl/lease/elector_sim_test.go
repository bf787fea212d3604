package lease

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/impl/clock"
)

// campaign is one simulated run: one to three electors, on clocks of their own,
// at a store that hangs, loses requests and answers, is late with both and
// delivers requests twice. Processes pause; work lingers, fails and panics;
// observers get stuck; storages refuse. All of it follows from the seed. What is
// wrong with it is planted.
type campaign struct {
	seed    uint64
	planted planted
	wrong   bool // something is planted: the more rivals the better
	prompt  bool // no observer holds its elector up
}

type planted struct {
	slow      clock.Rate                                 // of the first; 0: within the bound
	ask       func(r Request) Request                    // of the store
	answers   func(Request, Grant, error) (Grant, error) // what the store makes of them
	twins     bool                                       // two go by one name and nonce
	lateTimer time.Duration                              // by which each timer fires
	behind    time.Duration                              // the clock that terms are read on, against that of their elector
	deserter  bool                                       // work goes on after lead has returned
	deaf      bool                                       // what ignores its context never comes back
}

const (
	simTTL    = sec
	simWindow = 940 * ms // 1s - 1s*0.05 - 10ms
	simLong   = 5 * sec
	simBound  = 0.05
)

// simNode is one process: its clock, its elector, its luck.
type simNode struct {
	c      *campaign
	i      int
	name   string
	clk    *pausedClock
	e      *Elector
	gate   chan struct{} // closed when what ignores its context may go on
	on     *onlooker
	memory *Memory
	runs   int
}

// luck depends on the seed and on what it is for, not on the order of events.
func (n *simNode) luck(parts ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, n.i, parts)
	return rand.New(rand.NewPCG(n.c.seed, h.Sum64()))
}

// odd is up to most, and not likely the same twice to the nanosecond.
func odd(rnd *rand.Rand, most time.Duration) time.Duration {
	return 1 + time.Duration(rnd.Int64N(int64(most)))
}

func (n *simNode) call(ctx context.Context, req Request, _ func() (Grant, error)) (Grant, error) {
	sent := n.on.now(n.i)
	rnd := n.luck(req.Op, sent)
	deaf := context.WithoutCancel(ctx)
	if rnd.IntN(2) == 0 {
		deaf = ctx
	}
	made := func() (Grant, error) {
		asked := req
		if n.c.planted.ask != nil {
			asked = n.c.planted.ask(req)
		}
		a := do(context.Background(), n.memory, asked.of("db"))
		g, err := a.Grant, a.Err
		if err == nil && req.Op != OpRelease {
			g.TTL = req.TTL
		}
		if rnd.IntN(10) == 0 { // a copy comes late
			late := odd(rnd, 2*simTTL)
			go func() {
				time.Sleep(late)
				do(context.Background(), n.memory, asked.of("db"))
			}()
		}
		return g, err
	}
	give := func(g Grant, err error) (Grant, error) {
		// The answer and the hint that a change makes come at two instants: which is
		// first would be the scheduler's to say.
		time.Sleep(odd(rnd, ms))
		if n.c.planted.answers != nil {
			g, err = n.c.planted.answers(req, g, err)
		}
		n.on.answered(n.i, sent, req, g, err)
		n.clk.rest(func() time.Duration { return odd(rnd, ms) })
		return g, err
	}
	time.Sleep(odd(rnd, 5*ms))
	switch rnd.IntN(14) {
	case 0: // the request is lost
		return give(Grant{}, errLost)
	case 1: // the answer is
		made()
		return give(Grant{}, errLost)
	case 2: // the request is late
		sleep(deaf, odd(rnd, simTTL))
		return give(made())
	case 3: // the answer is
		g, err := made()
		sleep(deaf, odd(rnd, simTTL))
		return give(g, err)
	case 4: // it hangs, and lands when it is given up
		n.on.hangs(n.i, 1)
		<-ctx.Done()
		n.on.hangs(n.i, -1)
		made()
		return give(Grant{}, context.Cause(ctx))
	case 5: // it hangs, whatever becomes of its context
		if rnd.IntN(3) == 0 {
			n.on.hangs(n.i, 1)
			if n.c.planted.deaf {
				select {}
			}
			<-n.gate
			return give(Grant{}, errLost)
		}
	}
	if req.Op == OpRenew && rnd.IntN(40) == 0 { // the store is sure, and wrong
		return give(Grant{}, &LostError{})
	}
	if n.on.cutOff(n.i) {
		return give(Grant{}, errLost)
	}
	return give(made())
}

// of is r as a call for resource.
func (r Request) of(resource string) Call { return Call{Resource: resource, Request: r} }

// fence is one storage. It refuses what nobody else had fenced above, rarely.
func (n *simNode) fence(storage int) Fencer {
	return fencerFunc(func(ctx context.Context, token Token) error {
		rnd := n.luck("fence", storage, token, n.on.now(n.i))
		time.Sleep(odd(rnd, 5*ms))
		switch rnd.IntN(10) {
		case 0:
			<-ctx.Done()
			return ctx.Err()
		case 1:
			return errLost
		case 2:
			n.on.saw("barrier failed")
			return fmt.Errorf("storage %d: %w", storage, ErrStale)
		}
		return nil
	})
}

// Observe is stuck at times. An elector that was held up so finds several things
// waiting for it, and which it takes first is the scheduler's to say.
func (n *simNode) Observe(e Event) {
	if n.c.prompt {
		return
	}
	switch rnd := n.luck("observe", e.Kind, e.At, e.Op); rnd.IntN(150) {
	case 0:
		<-n.gate
	case 1, 2:
		time.Sleep(odd(rnd, 2*simTTL))
	}
}

var errWork = errors.New("work failed")

func (n *simNode) lead(ctx context.Context, term Term) error {
	if n.c.planted.behind != 0 {
		term.belief.clk = shifted{n.clk, -n.c.planted.behind}
	}
	if n.c.planted.deserter {
		go func() {
			defer func() { recover() }()
			n.work(ctx, term)
		}()
		return nil
	}
	return n.work(ctx, term)
}

func (n *simNode) work(ctx context.Context, term Term) error {
	rnd := n.luck("lead", term.Token)
	defer n.on.entered(n.i, ctx, term)()
	for range rnd.IntN(4) { // it asks before it acts
		sleep(ctx, odd(rnd, 600*ms))
		n.clk.rest(func() time.Duration { return odd(rnd, ms) })
		n.on.valid(n.i, term)
	}
	switch rnd.IntN(8) {
	case 0:
		return nil
	case 1:
		return errWork
	case 2:
		panic(errWork)
	case 3, 4: // it does not listen for a while
		time.Sleep(odd(rnd, 2*simTTL))
	case 5:
		<-ctx.Done()
		time.Sleep(odd(rnd, 2*simTTL))
	default:
		<-ctx.Done()
	}
	n.clk.rest(func() time.Duration { return odd(rnd, ms) })
	n.on.valid(n.i, term)
	return ctx.Err()
}

// run is Run, again and again, each with a context that ends when it likes.
func (n *simNode) run(ctx context.Context) {
	for ; ctx.Err() == nil; n.runs++ {
		rnd := n.luck("run", n.runs)
		own, cancel := context.WithCancel(ctx)
		if rnd.IntN(3) == 0 {
			own, cancel = context.WithTimeout(ctx, odd(rnd, simLong))
		}
		func() {
			defer func() {
				if r := recover(); r != nil && r != errWork {
					panic(r)
				}
			}()
			defer cancel()
			n.e.Run(own, n.lead)
		}()
		sleep(ctx, odd(rnd, 100*ms))
	}
}

// watching is a store that hints, beside the proxy.
type watching struct {
	proxy
	memory *Memory
}

func (w watching) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	return w.memory.Watch(ctx, resource)
}

func (c *campaign) node(i int, rnd *rand.Rand, base clock.Clock, memory *Memory, on *onlooker, gate chan struct{}) (*simNode, error) {
	rate := clock.Rate(950_000 + rnd.IntN(100_001))
	if i == 0 && rnd.IntN(3) == 0 {
		rate = 950_000 // the bound
	}
	if i == 0 && c.planted.slow != 0 {
		rate = c.planted.slow
	}
	own := clock.NewDrifting(base, rate, time.Duration(rnd.IntN(100))*sec)
	n := &simNode{c: c, i: i, name: fmt.Sprint("n", i), memory: memory, on: on, gate: gate, clk: &pausedClock{Clock: own, base: base, rate: rate, late: c.planted.lateTimer}}
	on.add(own.Now(), rate, n.clk, time.Duration(rnd.IntN(int(4*simTTL))))
	cfg := ElectorConfig{
		Resource: "db", Node: n.name, Nonce: uint64(i + 1), Clock: n.clk,
		Timing: Config{TTL: simTTL, MaxDriftRate: simBound, SafetyMargin: 10 * ms},
	}
	if c.planted.twins {
		cfg.Node, cfg.Nonce = "twin", 1
	}
	if rnd.IntN(2) == 0 {
		cfg.Drain = odd(rnd, 2*simTTL)
	}
	if rnd.IntN(3) == 0 {
		for s := range 1 + rnd.IntN(2) {
			cfg.Fencers = append(cfg.Fencers, n.fence(s))
		}
	}
	if rnd.IntN(2) == 0 {
		cfg.Observer, cfg.Logger = n, slog.New(slog.DiscardHandler)
	}
	p := proxy{memory, n.call}
	var store Store = p
	if rnd.IntN(2) == 0 {
		store = watching{p, memory}
	}
	var err error
	n.e, err = NewElector(store, cfg)
	return n, err
}

// simulate is the run, in a bubble of its own.
func (c *campaign) simulate(t *testing.T) (on *onlooker) {
	defer func() {
		if r := recover(); r != nil { // a goroutine was left: the bubble says so
			on.breached[simLeft] = fmt.Sprint(r)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		base := clock.Monotonic()
		on = newOnlooker(base)
		memory, err := NewMemory(base, MemoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		on.memory, on.twins = memory, c.planted.twins
		rnd := rand.New(rand.NewPCG(c.seed, 0))
		gate := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var nodes []*simNode
		count := 1 + rnd.IntN(3)
		if c.wrong {
			count = 3
		}
		for i := range count {
			n, err := c.node(i, rnd, base, memory, on, gate)
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, n)
		}
		for _, n := range nodes {
			all.Go(func() { n.run(ctx) })
		}
		for on.since() < simLong {
			on.sleep(odd(rnd, 100*ms))
			synctest.Wait()
			on.look(ctx)
			switch n := nodes[rnd.IntN(len(nodes))]; rnd.IntN(40) {
			case 0:
				n.e.Resign()
			case 1:
				n.clk.pause(odd(rnd, 1500*ms))
			case 2:
				n.clk.pause(odd(rnd, 50*ms))
			}
		}
		cancel()
		for range 30 { // what lingers is looked at too
			on.sleep(odd(rnd, 200*ms))
			synctest.Wait()
			on.look(context.Background())
		}
		on.deafen()
		close(gate)
		all.Wait()
		time.Sleep(3 * simTTL) // copies come late
	})
	return on
}
