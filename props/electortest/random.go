package electortest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fencepost/props/kit"
)

const randomName = "random"

// plan is what happens in a random run: what becomes of which call.
type plan struct {
	clients int
	store   storeRate
	linger  time.Duration
	until   time.Duration // then all is well
	fates   []placed      // by client and call; all other calls go well
}

// placed is the fate of one call of one client, by all its processes.
type placed struct {
	client, call int
	fate
}

// callsPerPlan bounds the calls of all plans, on average: a client that calls
// often plays fewer of them. (The default timing makes about 70.)
const callsPerPlan = 120

// random plays random plans, and minimises the first that breaks a rule.
func random(t *testing.T, start func(Env) Candidate, o Options, e kit.Effort) kit.Outcome {
	n := o.Plans
	if e.Long {
		n *= 100
	}
	played, terms, calls, takeovers := 0, 0, 0, 0
	for i := range n {
		if calls > n*callsPerPlan {
			break
		}
		played++
		p := generate(rand.New(rand.NewPCG(e.Seed, uint64(i))), o)
		r := p.play(t, start, o)
		if r.unknown != "" {
			return kit.Outcome{Unknown: r.unknown}
		}
		if r.breach != nil {
			return kit.Outcome{Failure: p.convict(t, start, o, r)}
		}
		terms, calls, takeovers = terms+r.terms, calls+r.calls, takeovers+r.takeovers
	}
	if terms == 0 {
		return kit.Outcome{Unknown: fmt.Sprintf("plans: %d, and no client led in any of them", played)}
	}
	return kit.Outcome{Covered: fmt.Sprintf("plans: %d, terms: %d, takeovers: %d, calls: %d", played, terms, takeovers, calls)}
}

// calls that a plan has a fate for, of each client.
const planned = 60

// generate draws a plan: for each client spells of good and bad calls.
func generate(rng *rand.Rand, o Options) plan {
	T := o.Config.TTL
	p := plan{clients: 1 + rng.IntN(2), until: 6 * T}
	p.store = []storeRate{rateFast, rateFast, rateTrue, rateSlow}[rng.IntN(4)]
	p.linger = []time.Duration{0, T / 10, T / 2}[rng.IntN(3)]
	for client := range p.clients {
		for call := 0; call < planned; {
			f, most := draw(rng, T)
			if o.FullTTL {
				f.Percent = 0
			}
			for range 1 + rng.IntN(most) {
				if f != (fate{}) {
					p.fates = append(p.fates, placed{client, call, f})
				}
				call++
			}
		}
	}
	return p
}

// draw gives a fate, and how many calls in a row may share it.
func draw(rng *rand.Rand, T time.Duration) (f fate, most int) {
	some := T * []time.Duration{5, 20, 40, 70, 110}[rng.IntN(5)] / 100
	switch n := rng.IntN(100); {
	case n < 45:
		return fate{}, 4
	case n < 58:
		return cut(T), 12
	case n < 68:
		return fate{Answer: some, Deaf: rng.IntN(2) == 0}, 2
	case n < 75:
		return fate{Request: some, Deaf: rng.IntN(2) == 0}, 2
	case n < 81:
		return fate{Lost: lostAnswer, Answer: T / 100}, 6
	case n < 86:
		return fate{Lost: []lost{"", lostRequest}[rng.IntN(2)], Hang: true, Deaf: rng.IntN(2) == 0}, 8
	case n < 91:
		return fate{Copy: some}, 2
	case n < 94:
		return fate{Before: upsetDelete}, 1
	case n < 96:
		return fate{Before: upsetRestart}, 1
	case n < 98:
		return fate{Before: upsetRival}, 1
	}
	return fate{Percent: 50}, 2
}

func (p plan) play(t *testing.T, start func(Env) Candidate, o Options) result {
	type which struct{ client, call int }
	fates := map[which]fate{}
	for _, f := range p.fates {
		fates[which{f.client, f.call}] = f.fate
	}
	s := setup{
		start: start, o: o, clients: p.clients, store: p.store, linger: p.linger, judges: anywhere &^ set(kindStays),
		fate: func(c *call) fate { return fates[which{c.proc.slot, c.n}] },
	}
	return play(t, s, func(w *world) {
		w.run(p.until)
		if w.breach != nil {
			return
		}
		w.heal()
		w.tell("store", "is well from now on", "")
		w.enough = w.leads
		within := 3*w.long(o.Config.TTL) + o.TakeoverWithin
		w.run(w.now() + within)
		w.enough = nil
		if w.breach == nil && !w.leads() {
			w.fail(kindNoLeader, w.slots[0].now, fmt.Sprintf("nobody leads %v after all is well again", within))
		}
	})
}

// convict minimises p, which broke a rule in r, and tells what happens then.
func (p plan) convict(t *testing.T, start func(Env) Candidate, o Options, r result) *kit.Failure {
	if r.breach.kind != kindStuck {
		p, r = p.minimize(t, start, o, r)
	}
	f := ruleOf(r.breach.kind)
	f.What, f.Story, f.More, f.Log = r.breach.what, r.tale.story(), r.breach.more, r.tale.log.String()
	f.File = p.file(o, f.Rule)
	return f
}

// mostTries bounds the runs that minimising takes.
const mostTries = 400

// minimize makes p smaller while it breaks the same rule.
func (p plan) minimize(t *testing.T, start func(Env) Candidate, o Options, r result) (plan, result) {
	tries := 0
	kind := r.breach.kind
	try := func(q plan) bool {
		if tries++; tries > mostTries {
			return false
		}
		got := q.play(t, start, o)
		if got.breach == nil || got.breach.kind != kind {
			return false
		}
		p, r = q, got
		return true
	}
	with := func(change func(*plan)) bool {
		q := p
		q.fates = slices.Clone(p.fates)
		change(&q)
		return try(q)
	}
	// What comes after the breach, and the second client, in one go.
	with(func(q *plan) {
		q.fates = slices.DeleteFunc(q.fates, func(f placed) bool { return f.call >= r.made[f.client] })
	})
	if p.clients > 1 {
		with(func(q *plan) {
			q.clients = 1
			q.fates = slices.DeleteFunc(q.fates, func(f placed) bool { return f.client > 0 })
		})
	}
	for changed := true; changed && tries < mostTries; {
		changed = false
		for size := max(len(p.fates)/2, 1); size > 0; size /= 2 {
			for i := 0; i < len(p.fates); {
				end := min(i+size, len(p.fates))
				if with(func(q *plan) { q.fates = slices.Delete(q.fates, i, end) }) {
					changed = true
				} else {
					i += size
				}
			}
		}
		for i := range p.fates {
			// Fewer good calls before it.
			for gap := p.gap(i); gap > 0; gap /= 2 {
				if with(func(q *plan) { q.shift(i, gap) }) {
					changed = true
					break
				}
			}
		}
		if p.store != rateTrue && with(func(q *plan) { q.store = rateTrue }) {
			changed = true
		}
		if p.linger != 0 && with(func(q *plan) { q.linger = 0 }) {
			changed = true
		}
		for i := range p.fates {
			for _, g := range p.fates[i].plainer() {
				if with(func(q *plan) { q.fates[i].fate = g }) {
					changed = true
					break
				}
			}
		}
	}
	return p, r
}

// gap is how many good calls come just before fate i.
func (p plan) gap(i int) int {
	if i > 0 && p.fates[i-1].client == p.fates[i].client {
		return p.fates[i].call - p.fates[i-1].call - 1
	}
	return p.fates[i].call
}

// shift moves fate i and those after it of its client n calls nearer.
func (p *plan) shift(i, n int) {
	for j := i; j < len(p.fates) && p.fates[j].client == p.fates[i].client; j++ {
		p.fates[j].call -= n
	}
}

// plainer are fates that have less to them than f.
func (f fate) plainer() (list []fate) {
	add := func(has bool, g fate) {
		if has {
			list = append(list, g)
		}
	}
	g := f
	g.Deaf = false
	add(f.Deaf, g)
	g = f
	g.Copy = 0
	add(f.Copy != 0, g)
	g = f
	g.Request = 0
	add(f.Request != 0, g)
	g = f
	g.Answer = 0
	add(f.Answer != 0 && f.Lost == "", g)
	g = f
	g.Lost = lostRequest
	add(f.Lost == lostAnswer || f.Hang && f.Lost == "", g)
	return list
}
