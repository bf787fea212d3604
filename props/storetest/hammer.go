package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// hammer calls one store from several goroutines at once, round by round, each
// round on leases of its own. Time stands still while anybody is inside the
// store: whether it reads its clock before or after it takes its lock is its
// own affair, and every answer has an exact instant.
type hammer struct {
	lab   *kit.Lab[lease.Store]
	store lease.Store // the lab's
	o     kit.Options
	ttl   time.Duration // granted as it is asked for
	gate  gate
	plain bool // never yield: to measure what yielding is worth
	ctx   context.Context
	step  atomic.Int64 // counts calls and returns: the order of events

	round int
	began time.Duration // the clock's reading as the round began
	calls []*call       // of the round, as they were made
	story []note        // what else happened in it
	made  int           // calls of the rounds before
}

// open starts the store.
func (h *hammer) open(open script.Open, o kit.Options) {
	h.lab = kit.NewLab(open, func(c clock.Clock) clock.Clock { return gatedClock{c, &h.gate} })
	h.store = h.lab.Thing()
	h.o = o.For(h.store)
	h.ttl = wholeTTL(h.o, 10*time.Second)
	h.ctx = gatedContext{context.Background(), &h.gate}
}

// wholeTTL is the shortest TTL from d on that the store has no reason to change.
func wholeTTL(o kit.Options, d time.Duration) time.Duration {
	d = max(d, o.MinTTL)
	if g := o.Granularity; g > 0 {
		d = (d + g - 1) / g * g
	}
	return d
}

// next begins a round. Of four rounds one goes without yielding.
func (h *hammer) next() {
	h.made += len(h.calls)
	h.round++
	h.calls, h.story = nil, nil
	h.began = h.lab.Clock().Now()
	h.gate.off.Store(h.plain || h.round%4 == 0)
}

// resource is a lease that nobody held before the round.
func (h *hammer) resource(name string) string { return fmt.Sprintf("%s-%d", name, h.round) }

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

func (c *call) returned() bool { return c.to != 0 }

// ok says that the store did as asked.
func (c *call) ok() bool { return c.returned() && c.err == nil }

// refused says that the store certainly did nothing.
func (c *call) refused() bool {
	var held *lease.HeldError
	var delay *lease.DelayError
	var lapsed *lease.LapsedError
	var lost *lease.LostError
	var invalid *lease.InvalidError
	return c.returned() && (errors.As(c.err, &held) || errors.As(c.err, &delay) || errors.As(c.err, &lapsed) ||
		errors.As(c.err, &lost) || errors.As(c.err, &invalid))
}

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
	switch c.op {
	case lease.OpAcquire:
		c.grant, c.err = h.store.Acquire(h.ctx, c.resource, c.holder, c.ttl)
	case lease.OpRenew:
		c.grant, c.err = h.store.Renew(h.ctx, c.resource, c.holder, c.token, c.ttl)
	case lease.OpRelease:
		c.err = h.store.Release(h.ctx, c.resource, c.holder, c.token)
	}
	c.to = h.step.Add(1)
}

// alone makes a call while there is no other.
func (h *hammer) alone(c *call) *call {
	h.calls = append(h.calls, c)
	h.together(func() { h.make(c) })
	return c
}

// race makes calls at once.
func (h *hammer) race(calls ...*call) {
	h.calls = append(h.calls, calls...)
	fs := make([]func(), len(calls))
	for i, c := range calls {
		fs[i] = func() { h.make(c) }
	}
	h.together(fs...)
}

// together runs callers, none of which begins before all are there. A panic of
// the store's is left to end the process, with the stack of where it happened;
// only one of [kit.Env.Fatal] is handed on.
func (h *hammer) together(callers ...func()) {
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
}

// advance lets time pass.
func (h *hammer) advance(d time.Duration, why string) {
	h.lab.Advance(d)
	h.story = append(h.story, note{h.step.Add(1), fmt.Sprintf("%v pass: %s", d, why)})
}

// note is a line of a story that is no call.
type note struct {
	at   int64
	text string
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
func (h *hammer) unsure() *call {
	if i := slices.IndexFunc(h.calls, func(c *call) bool { return !c.ok() && !c.refused() }); i >= 0 {
		return h.calls[i]
	}
	return nil
}

// who is the caller's name in stories: no two incarnations of a node are in one.
func (c *call) who() string { return c.holder.Node }

func (c *call) asked() string {
	name, _, _ := strings.Cut(c.resource, "-")
	switch c.op {
	case lease.OpAcquire:
		return fmt.Sprintf("%s acquires %s for %v", c.who(), name, c.ttl)
	case lease.OpRenew:
		return fmt.Sprintf("%s renews %s under token %d for %v", c.who(), name, c.token, c.ttl)
	}
	return fmt.Sprintf("%s releases %s under token %d", c.who(), name, c.token)
}

func (c *call) answered() string {
	var held *lease.HeldError
	var delay *lease.DelayError
	var lapsed *lease.LapsedError
	var lost *lease.LostError
	var invalid *lease.InvalidError
	switch {
	case !c.returned():
		return "never returned"
	case c.err == nil && c.op == lease.OpAcquire:
		return fmt.Sprintf("granted, token %d", c.grant.Token)
	case c.err == nil && c.op == lease.OpRenew:
		return "renewed"
	case c.err == nil:
		return "released"
	case errors.As(c.err, &held) && held.Holder.IsZero():
		return "refused: held"
	case errors.As(c.err, &held):
		return fmt.Sprintf("refused: held by %s, token %d", held.Holder.Node, held.Token)
	case errors.As(c.err, &delay):
		return "refused: lock delay"
	case errors.As(c.err, &lapsed):
		return "refused: lapsed"
	case errors.As(c.err, &lost):
		return "refused: not the holder"
	case errors.As(c.err, &invalid):
		return "refused: invalid"
	}
	return "error: " + oneLine(c.err.Error())
}

// oneLine is the beginning of a text, for a line of a story.
func oneLine(s string) string {
	const most = 60
	s, _, cut := strings.Cut(s, "\n")
	if r := []rune(s); len(r) > most {
		s, cut = string(r[:most]), true
	}
	if cut {
		s += "…"
	}
	return s
}

// tell is the round as a story: when each call was made and answered, in steps.
func (h *hammer) tell(b *breach) []string {
	first := b.at.from
	for _, c := range h.calls {
		if c.from > 0 {
			first = min(first, c.from)
		}
	}
	var lines []storyLine
	for _, c := range h.calls {
		switch {
		case c.from == 0: // its caller did not get so far
		case b.with != nil && c != b.at && !slices.Contains(b.with, c):
		case !c.returned():
			lines = append(lines, storyLine{at: c.from - first + 1, did: c.asked(), got: c.answered()})
		default:
			lines = append(lines, storyLine{c.from - first + 1, c.to - first + 1, c.asked(), c.answered(), c == b.at})
		}
	}
	for _, n := range h.story {
		lines = append(lines, storyLine{at: n.at - first + 1, did: n.text})
	}
	return layOut(lines, len(h.calls)+len(h.story)-len(lines))
}

// storyLine is a call, or something else that happened, in a story.
type storyLine struct {
	at, until int64 // steps of the call and of the answer, 0 if there is none
	did, got  string
	bad       bool
}

// maxStory is how many lines a story has at most.
const maxStory = 10

// layOut aligns a story, in the order of the calls, of which some were left out.
func layOut(lines []storyLine, left int) []string {
	slices.SortFunc(lines, func(a, b storyLine) int { return cmp.Compare(a.at, b.at) })
	// The breach is near the end, and what it rests on near it.
	if n := len(lines) - maxStory + 1; n > 0 {
		lines = lines[n:]
		left += n
	}
	story := []string{"(calls whose steps overlap were under way at once)"}
	if left > 0 {
		story[0] = fmt.Sprintf("(%d calls left out; those whose steps overlap were under way at once)", left)
	}
	var whens, dids int
	for _, l := range lines {
		whens = max(whens, utf8.RuneCountInString(l.when()))
		if l.got != "" {
			dids = max(dids, utf8.RuneCountInString(l.did))
		}
	}
	for _, l := range lines {
		text := fmt.Sprintf("%-*s  %-*s  %s", whens, l.when(), dids, l.did, l.got)
		if l.bad {
			text += "  ◄"
		}
		story = append(story, strings.TrimRight(text, " "))
	}
	return story
}

func (l storyLine) when() string {
	switch {
	case l.until > 0:
		return fmt.Sprintf("%d…%d", l.at, l.until)
	case l.got != "":
		return fmt.Sprintf("%d…", l.at)
	}
	return fmt.Sprint(l.at)
}

// game is one check of concurrent calls: what a round does, and which of its
// outcomes no correct store has.
type game struct {
	name, says, read string
	play             func(*hammer) *breach
}

// least is how many rounds a game has, however few calls are allowed: it must
// have seen each of its variants with and without yielding.
const least = 16

// run plays rounds until a number of calls was made.
func (g game) run(open script.Open, o kit.Options, budget int) (out kit.Outcome) {
	err := kit.Attempt(func() {
		var h hammer
		h.open(open, o)
		defer h.lab.Close()
		out = g.rounds(&h, budget)
	})
	if err != nil {
		return kit.Outcome{Unknown: err.Error()}
	}
	return out
}

func (g game) rounds(h *hammer, budget int) kit.Outcome {
	sure := 0
	var unsure *call
	for h.made+len(h.calls) < budget || h.round < least {
		h.next()
		if b := g.play(h); b != nil {
			return kit.Outcome{Failure: &kit.Failure{
				Rule: g.name, Says: g.says, What: b.what, Story: h.tell(b), Read: g.read, Log: h.lab.Log(),
			}}
		}
		if c := h.unsure(); c != nil {
			unsure = c
		} else {
			sure++
		}
	}
	if sure == 0 {
		return kit.Outcome{Unknown: fmt.Sprintf("every round had a call of unknown outcome, which may have done anything: %s → %s; "+
			"refuse with the errors of package lease (HeldError, DelayError, LapsedError, LostError), and let the store try again what only failed because others were calling",
			unsure.asked(), unsure.answered())}
	}
	return kit.Outcome{Covered: fmt.Sprintf("%d calls in %d rounds", h.made+len(h.calls), h.round)}
}

// Concurrency are checks with real goroutines that call the store at the same
// time. Its clock and its contexts yield: a caller that reads the clock waits
// there for the others, so that a store that decides, and acts on it without a
// lock, does so in almost every round. (Plain hammering finds such a store in
// one round of thousands.)
//
// The schedule is the Go scheduler's, so that two runs differ; no schedule
// convicts a correct store. Data races are for the race detector to find: some
// rounds do not yield, so that it can. Without -race, a store whose map is
// written by two callers at once may end the process with "fatal error:
// concurrent map writes", which is a verdict too.
func Concurrency(open script.Open, o kit.Options, e kit.Effort) []kit.Check {
	budget := o.Budget(e, concurrencyPart) / len(games)
	checks := make([]kit.Check, len(games))
	for i, g := range games {
		checks[i] = kit.Check{Name: "concurrency/" + g.name, Run: func() kit.Outcome { return g.run(open, o, budget) }}
	}
	return checks
}

// concurrencyPart of 100 calls are for Concurrency.
const concurrencyPart = 15

// follows says whether token may be that of the ownership after the one under
// before.
func (h *hammer) follows(before, token lease.Token) bool {
	if h.o.Tokens == model.TokensNext {
		return token == before+1
	}
	return token > before
}
