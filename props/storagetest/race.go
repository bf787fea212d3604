package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// yielding is a context that lets other goroutines run whenever it is looked
// at, as every database call does. A storage that compares the token in one call
// and writes in another is then interrupted between the two.
type yielding struct{ context.Context }

func (y yielding) Err() error {
	runtime.Gosched()
	return y.Context.Err()
}

func (y yielding) Done() <-chan struct{} {
	runtime.Gosched()
	return y.Context.Done()
}

func (y yielding) Value(key any) any {
	runtime.Gosched()
	return y.Context.Value(key)
}

func (y yielding) Deadline() (time.Time, bool) {
	runtime.Gosched()
	return y.Context.Deadline()
}

// yieldingClock does the same when the storage reads its clock.
type yieldingClock struct{ clock.Clock }

func (c yieldingClock) Now() time.Duration {
	runtime.Gosched()
	return c.Clock.Now()
}

func yieldClock(c clock.Clock) clock.Clock { return yieldingClock{c} }

// roundsALab is how many rounds one storage is used for, so that tokens stay
// small and files short.
const roundsALab = 100

// A race is one round after the other between a stale leader, in goroutines,
// and its successor. What is concluded from a round holds whatever the
// scheduler did: it rests on answers, and on which call began after which
// other had returned.
type race struct {
	o     Options
	lab   *kit.Lab[fence.KV]
	ctx   context.Context
	old   uint64       // the stale leader's token
	succ  uint64       // its successor's
	alone bool         // there is no successor in a round
	tick  atomic.Int64 // orders the calls and returns of a round
	out   *kit.Outcome

	unsure int // rounds that told nothing
	failed done
}

// done is a call that returned.
type done struct {
	step
	answer
	call, ret int64 // ticks: a.ret < b.call says that a was over before b began
	stack     string
	setup     *kit.SetupError // where the storage gave up
}

func (r *race) do(st step) done { return r.on(r.lab.Thing(), st) }

// on is a call to kv.
func (r *race) on(kv fence.KV, st step) (d done) {
	d.step, d.call = st, r.tick.Add(1)
	defer func() { d.ret = r.tick.Add(1) }()
	d.setup = setup(func() { d.answer, d.stack = call(r.ctx, kv, st) })
	return d
}

// setup is with what the storage gave up in f: a goroutine must not end the
// process, so whoever waits for it is told.
func setup(f func()) *kit.SetupError {
	var gaveUp *kit.SetupError
	errors.As(kit.Attempt(f), &gaveUp)
	return gaveUp
}

// races runs rounds while the budget lasts, each of about the given number of
// calls, up to the first that convicts.
func races(open opener, o Options, e kit.Effort, part, calls int, round func(r *race, rnd *rand.Rand, n int)) kit.Outcome {
	total := (o.budget(e, part) + calls - 1) / calls
	unsure := 0
	for n := 0; n < total; n += roundsALab {
		r := someRounds(open, o, e, n, min(n+roundsALab, total), round)
		if r.out != nil {
			return *r.out
		}
		if unsure += r.unsure; unsure == total {
			return kit.Outcome{Unknown: fmt.Sprintf("every round had a call of unknown outcome, which may have done anything: %s: %s; let the storage try again what only failed because others were calling", does(r.failed.step), r.failed.err)}
		}
	}
	covered := counted(total, "round")
	if unsure > 0 {
		covered += fmt.Sprintf(", of which %d had a call of unknown outcome", unsure)
	}
	return kit.Outcome{Covered: covered}
}

// someRounds are those from n up to end, with one storage.
func someRounds(open opener, o Options, e kit.Effort, n, end int, round func(r *race, rnd *rand.Rand, n int)) *race {
	r := &race{o: o, lab: kit.NewLab(open, yieldClock), ctx: yielding{context.Background()}}
	defer r.lab.Close()
	for i := 0; n+i < end && r.out == nil; i++ {
		r.old, r.succ = uint64(2*i+1), uint64(2*i+2)
		r.grant(r.old)
		round(r, source(e.Seed, n+i), i)
	}
	return r
}

// lands is the rule of what must land.
func (r *race) lands() rule {
	if r.o.Carry != nil {
		return theCarriedTokenLands
	}
	return higherTokenLands
}

// grant has the lease carry token, where that matters.
func (r *race) grant(token uint64) {
	if r.o.Carry != nil {
		r.o.carry(r.ctx, r.lab.Thing(), lease.Token(token))
	}
}

// sound reports whether none of the calls panicked, which convicts.
func (r *race) sound(ds ...done) bool {
	for _, d := range ds {
		switch {
		case d.setup != nil:
			panic(d.setup)
		case d.said == saidPanic:
			r.convict(neverPanics, fmt.Sprintf("a %s panicked: %s", kindNames[d.do], d.err), "must not panic", d)
			r.out.Failure.More = d.stack
			return false
		}
	}
	return true
}

// sure reports whether the outcome of all calls is known. A storage may fail
// where others are at work, as a database does whose transactions conflict; the
// round then tells nothing.
func (r *race) sure(ds ...done) bool {
	for _, d := range ds {
		if d.said == saidFailed {
			r.unsure++
			r.failed = d
			return false
		}
	}
	return true
}

// convict ends the race: the last call is what breaks the rule.
func (r *race) convict(rule rule, what, want string, calls ...done) {
	tokens := []uint64{r.old, r.succ}
	if r.alone {
		tokens = tokens[:1]
	}
	name := people(tokens)
	deeds := make([]deed, len(calls))
	for i, d := range calls {
		deeds[i] = deed{who: name(d.token), does: does(d.step), got: got(d.step, d.answer), call: d.call, ret: d.ret}
		switch d.do {
		case doRead:
			if deeds[i].who = name(r.succ); r.alone {
				deeds[i].who = "anybody"
			}
		case doGrant:
			deeds[i].does = fmt.Sprintf("is granted the lease under token %d", d.token)
		}
	}
	deeds[len(deeds)-1].mark = want
	f := convict(rule, what, story(deeds))
	f.Log = r.lab.Log()
	r.out = &kit.Outcome{Failure: f}
}

// The stale leader's side of a round.
const (
	staleWriters = 2
	staleWrites  = 8 // of each, at most
)

// duel is a round: the stale leader writes x in goroutines, while takeover is
// done by its successor.
func (r *race) duel(rnd *rand.Rand, n int, takeover step) {
	base := r.do(step{do: doWrite, token: r.old, key: "x", value: fmt.Sprintf("base%d", n)})
	if !r.sound(base) || !r.sure(base) {
		return
	}
	if base.said == saidStale {
		r.convict(r.lands(), "a write under the highest token that anybody ever had was refused", "must land: no higher token was seen", base)
		return
	}
	var wg sync.WaitGroup
	var begun, ended atomic.Int32
	stale := make([][]done, staleWriters)
	for w := range stale {
		// All else is ready before they begin: they are to be in the storage.
		steps := make([]step, staleWrites)
		for i := range steps {
			steps[i] = step{do: doWrite, token: r.old, key: "x", value: fmt.Sprintf("old%d.%d.%d", n, w, i)}
		}
		stale[w] = make([]done, 0, staleWrites)
		wg.Go(func() {
			defer ended.Add(1)
			for _, st := range steps {
				begun.Add(1)
				d := r.do(st)
				if stale[w] = append(stale[w], d); d.said != saidDone || d.setup != nil {
					return
				}
			}
		})
	}
	// The successor comes in the midst of it.
	for after := int32(rnd.IntN(staleWriters * staleWrites / 2)); begun.Load() <= after && ended.Load() < staleWriters; {
		runtime.Gosched()
	}
	for range rnd.IntN(4) { // at any point of a write, not only at its beginning
		runtime.Gosched()
	}
	took := r.take(takeover)
	var reads []done
	if !r.o.NoRead {
		reads = append(reads, r.do(step{do: doRead, key: "x"}))
	}
	wg.Wait()
	if !r.o.NoRead {
		reads = append(reads, r.do(step{do: doRead, key: "x"}))
	}
	after := r.do(step{do: doWrite, token: r.old, key: "x", value: fmt.Sprintf("late%d", n)})
	all := []done{base}
	for _, ds := range stale {
		all = append(all, ds...)
	}
	all = append(all, after)
	if r.sound(took) && r.sound(reads...) && r.sound(all...) && r.sure(took) && r.sure(reads...) {
		r.judge(took, all, reads)
	}
}

func (r *race) take(takeover step) done {
	if takeover.do != doGrant {
		return r.do(takeover)
	}
	d := done{step: takeover, answer: answer{said: saidNothing}, call: r.tick.Add(1)}
	r.grant(r.succ)
	d.ret = r.tick.Add(1)
	return d
}

// judge draws conclusions from a round. writes are all of the stale leader.
func (r *race) judge(took done, writes, reads []done) {
	bars := lowerTokenIsRefused
	switch took.do {
	case doFence:
		bars = fenceBarsLowerTokens
	case doGrant:
		bars = onlyTheCarriedTokenLands
	}
	ack := fmt.Sprintf("token %d", r.succ)
	if took.said == saidStale {
		r.convict(higherTokenLands, fmt.Sprintf("%s was refused, and no higher one was ever used", ack), "must be admitted: no higher token was seen", took)
		return
	}
	for _, w := range writes {
		switch {
		case w.said == saidDone && w.call > took.ret:
			calls := []done{took, w}
			// Whoever was under way then may have undone what was in force.
			if i := slices.IndexFunc(writes, func(v done) bool { return v.said == saidDone && v.call < took.ret && v.ret > took.ret }); i >= 0 && writes[i].call != w.call {
				calls = []done{took, writes[i], w}
			}
			r.convict(bars, fmt.Sprintf("a write under token %d that began after %s was in force landed", r.old, ack), "must be refused: "+ack+" was in force before it began", calls...)
			return
		case w.said == saidStale && w.ret < took.call:
			r.convict(r.lands(), fmt.Sprintf("a write under token %d was refused before a higher token was used", r.old), "must land: no higher token was seen", w)
			return
		}
	}
	if len(reads) == 0 {
		return
	}
	first, last := reads[0], reads[1]
	origin := func(read done) (done, bool) {
		for _, w := range writes {
			if w.step.value == read.answer.value {
				return w, true
			}
		}
		return done{}, false
	}
	for _, read := range reads {
		w, ok := origin(read)
		switch {
		case ok && w.said == saidStale && w.call < read.ret:
			r.convict(refusedWriteChangesNothing, fmt.Sprintf("a write of %s was refused, and a read found it", w.wrote()), "must not be there: it was refused", took, w, read)
			return
		case took.do == doWrite && read.answer.value != took.step.value:
			story := []done{took, read}
			if ok {
				story = []done{took, w, read}
			}
			r.convict(bars, fmt.Sprintf("a write under token %d is gone: a stale leader's took its place", r.succ), "must still be "+took.step.value, story...)
			return
		}
	}
	if first.answer.value != last.answer.value {
		story := []done{took, first, last}
		if w, ok := origin(last); ok {
			story = []done{took, first, w, last}
		}
		r.convict(bars, fmt.Sprintf("after %s was in force, a write under token %d changed what was there", ack, r.old), "must still be "+show(first.answer.value), story...)
		return
	}
	if _, ok := origin(last); !ok && took.do != doWrite {
		r.convict(readGivesWhatLandedLast, fmt.Sprintf("a read gave %s, which nobody wrote in this term", got(last.step, last.answer)), "must be what landed last", writes[0], took, last)
	}
}

// wrote is the value of a write.
func (d done) wrote() string { return show(d.step.value) }
