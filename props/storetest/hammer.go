package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// hammer calls one store from several goroutines at once, round by round, each
// round on leases of its own. Time stands still while anybody is inside the
// store, but for raceOver: whether it reads its clock before or after it takes
// its lock is its own affair, and every answer has an exact instant.
type hammer struct {
	open  script.Open
	lab   *kit.Lab[lease.Store]
	store lease.Store // the lab's
	o     kit.Options
	ttl   time.Duration // granted as it is asked for
	gate  gate
	ctx   context.Context
	rng   *rand.Rand   // who begins first
	step  atomic.Int64 // counts calls and returns: the order of events

	round int
	burst int           // how many bursts there were before this one
	began time.Duration // the clock's reading as the round began
	calls []*call       // of the round, as they were made
	story []note        // what else happened in it
	made  int           // calls of the rounds before
	// judged says that the round shows something in spite of calls whose
	// outcome is unknown.
	judged bool
	// chains are calls of callers at work, each of whom makes one after the other.
	chains [][]*call
	// history is what is being recorded instead of calls; nil: nothing.
	history  *recording
	panicked atomic.Pointer[panicError] // first
}

func newHammer(open script.Open, o kit.Options, seed uint64) *hammer {
	h := &hammer{open: open, o: o, rng: rand.New(rand.NewPCG(seed, 0))}
	h.ctx = gatedContext{context.Background(), &h.gate}
	return h
}

// boot starts a store.
func (h *hammer) boot() {
	h.close()
	h.lab = kit.NewLab(h.open, func(c clock.Clock) clock.Clock { return gatedClock{c, &h.gate} })
	h.lab.Tell(h.stuck)
	h.store = h.lab.Thing()
	h.o = h.o.For(h.store)
	h.ttl = wholeTTL(h.o, 10*time.Second)
}

func (h *hammer) close() {
	if h.lab != nil {
		h.lab.Close()
		h.lab = nil
	}
}

// wholeTTL is the shortest TTL from d on that the store has no reason to change.
func wholeTTL(o kit.Options, d time.Duration) time.Duration {
	return ceil(max(d, o.MinTTL), max(o.Granularity, 1))
}

// labRounds is for how many rounds a store lives: it never forgets a lease, and
// one that keeps them all in a file gets slow.
const labRounds = 256

// next begins a round. Of four rounds one goes without yielding.
func (h *hammer) next() {
	if h.round%labRounds == 0 {
		h.boot()
	}
	h.begin()
	h.gate.off.Store(h.round%4 == 0)
}

// begin begins a round on the same store.
func (h *hammer) begin() {
	h.made += len(h.calls)
	h.round++
	h.calls, h.story, h.judged = nil, nil, false
	h.began = h.lab.Clock().Now()
}

// resource is a lease that nobody held before the round.
func (h *hammer) resource(name string) string { return fmt.Sprintf("%s-%d", name, h.round) }

// numbered is the n-th of several such leases.
func (h *hammer) numbered(n int) string { return fmt.Sprintf("p-%d-%d", h.round, n) }

// candidate is one that was never seen before the round.
func (h *hammer) candidate(node string) lease.Holder {
	return lease.Holder{Node: node, Seq: 1, Nonce: uint64(h.round)}
}

// call is one call of the store.
type call struct {
	op       lease.Op
	resource string
	holder   lease.Holder
	token    lease.Token // that it carries
	ttl      time.Duration

	from, to int64 // steps of the call and of the return; to is 0 if it never returned
	grant    lease.Grant
	err      error
}

// unsure says that the outcome is unknown.
func (c *call) unsure() bool { return !c.ok() && !c.refused() }

func (c *call) returned() bool { return c.to != 0 }

// ok says that the store did as asked.
func (c *call) ok() bool { return c.returned() && c.err == nil }

// refused says that the store certainly did nothing.
func (c *call) refused() bool { return c.returned() && isRefusal(c.err) }

func (h *hammer) acquire(resource string, holder lease.Holder) *call {
	return &call{op: lease.OpAcquire, resource: resource, holder: holder, ttl: h.ttl}
}

// renew and release are calls under the token of a grant.
func (h *hammer) renew(g *call) *call {
	return &call{op: lease.OpRenew, resource: g.resource, holder: g.holder, token: g.grant.Token, ttl: h.ttl}
}

func (h *hammer) release(g *call) *call {
	return &call{op: lease.OpRelease, resource: g.resource, holder: g.holder, token: g.grant.Token}
}

// make makes a call, as a caller that was counted in.
func (h *hammer) make(c *call) {
	c.from = h.step.Add(1)
	var grant lease.Grant
	c.err = h.call(func() (err error) {
		switch c.op {
		case lease.OpAcquire:
			grant, err = h.store.Acquire(h.ctx, c.resource, c.holder, c.ttl)
		case lease.OpRenew:
			grant, err = h.store.Renew(h.ctx, c.resource, c.holder, c.token, c.ttl)
		case lease.OpRelease:
			err = h.store.Release(h.ctx, c.resource, c.holder, c.token)
		}
		return err
	})
	c.grant = grant
	c.to = h.step.Add(1)
}

// alone makes a call while there is no other.
func (h *hammer) alone(c *call) *call {
	h.calls = append(h.calls, c)
	h.together(func() { h.make(c) })
	return c
}

// race makes calls at once.
func (h *hammer) race(calls ...*call) { h.together(h.makes(calls)...) }

// raceOver makes calls at once, and lets d pass when all of them have come to
// their first look at the clock: some see the time before, and some after.
func (h *hammer) raceOver(d time.Duration, why string, calls ...*call) {
	h.together(append(h.makes(calls), func() {
		h.gate.pass()
		h.story = append(h.story, note{h.step.Add(1), fmt.Sprintf("%v pass: %s", d, why)})
		h.lab.Clock().Advance(d)
	})...)
	h.lab.Settle()
}

func (h *hammer) makes(calls []*call) (fs []func()) {
	h.calls = append(h.calls, calls...)
	for _, c := range calls {
		fs = append(fs, func() { h.make(c) })
	}
	return fs
}

// together runs callers, none of which begins before all are there. What ends
// one of them, a panic of the store or [kit.Env.Fatal], is handed on when all are
// back.
func (h *hammer) together(callers ...func()) {
	// The scheduler has its own mind about which goroutine to run first, and
	// would hardly ever change it.
	h.rng.Shuffle(len(callers), func(i, j int) { callers[i], callers[j] = callers[j], callers[i] })
	h.gate.enter(len(callers))
	var setup atomic.Pointer[kit.SetupError]
	var missing atomic.Int64
	missing.Store(int64(len(callers)))
	var wg sync.WaitGroup
	for _, f := range callers {
		wg.Go(func() {
			defer h.gate.leave() // also where the store ends the goroutine, as testing.T.FailNow does
			if err := kit.Attempt(func() {
				for missing.Add(-1); missing.Load() > 0; {
					runtime.Gosched()
				}
				f()
			}); err != nil {
				setup.Store(err.(*kit.SetupError))
			}
		})
	}
	wg.Wait()
	if err := setup.Load(); err != nil {
		panic(err)
	}
	if p := h.panicked.Load(); p != nil {
		panic(p)
	}
}

// advance lets time pass.
func (h *hammer) advance(d time.Duration, why string) {
	h.lab.Advance(d)
	h.story = append(h.story, note{h.step.Add(1), fmt.Sprintf("%v pass: %s", d, why)})
}

// breach is an answer that no correct store gives.
type breach struct {
	at   *call // the answer
	what string
	with []*call // what else it rests on; nil: all of the round
}

// breaks is a breach.
func (c *call) breaks(format string, args ...any) *breach {
	return &breach{at: c, what: fmt.Sprintf(format, args...)}
}

// both is a breach of two who cannot both have been granted the lease.
func both(a, b *call) *breach {
	if a.grant.Token == b.grant.Token {
		return b.breaks("%s and %s were both granted the lease, under one token: %d", a.who(), b.who(), a.grant.Token)
	}
	return b.breaks("%s and %s were both granted the lease, under the tokens %d and %d", a.who(), b.who(), a.grant.Token, b.grant.Token)
}

// unsure is the call of the round whose outcome is unknown, nil if there is
// none. What it did or may yet do explains almost anything.
func (h *hammer) unsure() *call { return unsure(h.calls) }

// unsure is the first of these calls whose outcome is unknown.
func unsure(calls []*call) *call {
	if i := slices.IndexFunc(calls, (*call).unsure); i >= 0 {
		return calls[i]
	}
	return nil
}

// game is one check of concurrent calls: what a round does, and which of its
// outcomes no correct store has.
type game struct {
	name, says, read string
	play             func(*hammer) *breach
	burst            func(*hammer) *breach // nil: none
}

// least is how many rounds a game has, however few calls are allowed: it must
// have seen each of its variants with and without yielding.
const least = 16

// run plays rounds until a number of calls was made.
func (g game) run(open script.Open, o kit.Options, e kit.Effort) kit.Outcome {
	return newHammer(open, o, e.Seed).run(func(h *hammer) kit.Outcome {
		out := g.rounds(h, o.Budget(e, roundsPart)/len(games))
		if out.Failure != nil || g.burst == nil {
			return out
		}
		if b := g.bursts(h, o.Budget(e, burstsPart)/burstGames); b != nil {
			return kit.Outcome{Failure: g.failure(h, b)}
		}
		if out.Covered != "" {
			out.Covered = h.covered()
		}
		return out
	})
}

func (g game) rounds(h *hammer, budget int) kit.Outcome {
	sure := 0
	var unsure *call
	for h.made+len(h.calls) < budget || h.round < least {
		h.next()
		if b := g.play(h); b != nil {
			return kit.Outcome{Failure: g.failure(h, b)}
		}
		c := h.unsure()
		if c != nil {
			unsure = c
		}
		if c == nil || h.judged {
			sure++
		}
	}
	if sure == 0 {
		return kit.Outcome{Unknown: fmt.Sprintf("every round had a call of unknown outcome, which may have done anything: %s → %s; "+
			"refuse with the errors of package lease (HeldError, DelayError, LapsedError, LostError), and let the store try again what only failed because others were calling",
			unsure.asked(), unsure.answered())}
	}
	return kit.Outcome{Covered: h.covered()}
}

func (h *hammer) covered() string {
	return fmt.Sprintf("%d calls in %d rounds", h.made+len(h.calls), h.round)
}

func (g game) failure(h *hammer, b *breach) *kit.Failure {
	return &kit.Failure{Rule: g.name, Says: g.says, What: b.what, Story: h.tell(b), Read: g.read, Log: h.lab.Log()}
}

// Concurrency are checks with real goroutines that call the store at the same
// time. Its clock and its contexts yield: a caller that reads the clock waits
// there for the others, so that a store that decides, and acts on it without a
// lock, does so in almost every round. (Plain hammering finds such a store in
// one round of thousands.)
//
// One that unlocks between check and act, and looks at neither its clock nor its
// context there, is brought down by its lock: while one caller is kept where it
// reads the clock under it, in whatever operation, the others queue, and a
// sync.Mutex that has starved is handed from each to the next at every unlock.
// Measured on two processors with a load of 10: 25 of 25 quick runs convict such
// a store, be it in Acquire, in Renew or in Release. Where no operation reads the
// clock or the context under the lock, only chance brings two callers together:
// under that load 9 of 25 quick runs convict such an Acquire, and 1 of 25 such a
// Renew or Release. That is what the long mode is for.
// FENCEPOST_RATE=1 go test -v -run HowOften fencepost/props/storetest measures it.
//
// The schedule is the Go scheduler's, so that two runs differ; no schedule
// convicts a correct store. Data races are for the race detector to find: some
// rounds do not yield, so that it can. Without -race, a store whose map is
// written by two callers at once may end the process with "fatal error:
// concurrent map writes", which is a verdict too.
func Concurrency(open script.Open, o kit.Options, e kit.Effort) []kit.Check {
	checks := make([]kit.Check, len(games))
	for i, g := range games {
		checks[i] = kit.Check{Name: "concurrency/" + g.name, Run: func() kit.Outcome { return g.run(open, o, e) }}
	}
	return checks
}

// Of 100 calls so many are for the rounds of all games, and for the bursts of
// those that have any.
const (
	roundsPart = 15
	burstsPart = 24
	burstGames = 3
)

// follows says whether token may be that of the ownership after the one under
// before.
func (h *hammer) follows(before, token lease.Token) bool {
	if h.o.Tokens == model.TokensNext {
		return token == before+1
	}
	return token > before
}
