package storagetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"fencepost/impl/fence"
	"fencepost/props/kit"
)

// Checks are all that there is to ask of the storage that open makes, in
// groups: rules, restarts and malformed requests one at a time; explore, every
// short script; lockstep, random ones; concurrency, a stale leader against its
// successor in real goroutines; and linearizability of what such goroutines were
// told.
//
// open is called once for each process of the storage: what survives a crash is
// found by [kit.Durable] or in [kit.Env].Dir. It is an error of the caller that
// o does not [Options.Validate]: each check is then unknown.
func Checks(open func(kit.Env) fence.KV, o Options, e kit.Effort) []kit.Check {
	if err := o.Validate(); err != nil {
		return []kit.Check{{Name: "options", Run: func() kit.Outcome { return kit.Outcome{Unknown: err.Error()} }}}
	}
	return checks(open, o.known(open, kit.Silence), e, kit.Silence)
}

// checks are those of a storage whose calls return within limit, or never do.
func checks(open opener, o Options, e kit.Effort, limit time.Duration) []kit.Check {
	w := &watch{Watch: kit.NewWatch(limit)}
	open, o = w.over(open), o.unwatched()
	t := newCourt(open, o)
	var checks []kit.Check
	for _, c := range t.rules {
		checks = append(checks, kit.Check{Name: c.name, Run: func() kit.Outcome { return t.try(c) }})
	}
	for _, c := range slices.Concat(otherChecks, raceChecks) {
		checks = append(checks, kit.Check{Name: c.name, Run: func() kit.Outcome {
			if why := o.lacks(c.needs); why != "" {
				return kit.Outcome{Skipped: why}
			}
			if c.first != "" {
				if out := t.first(c.first); out != nil {
					return *out
				}
			}
			return c.run(open, o, e)
		}})
	}
	return w.Over(checks)
}

// otherCheck asks what no fixed script does.
type otherCheck struct {
	name  string
	needs needs
	first string // as in ruleCheck
	run   func(opener, Options, kit.Effort) kit.Outcome
}

var otherChecks = []otherCheck{
	{"restarts/data-goes-with-the-tokens", needsVolatile | needsHighest | needsRead, "write 1 x=old; write 2 x=new; write 1 x=old; read x", forgets},
	{"malformed/odd-keys", 0, "write 1 x=this; write 1 y=that; read x; read y", oddKeys},
	{"malformed/odd-values", 0, "write 1 x=this; write 1 y=that; read x; read y", oddValues},
	{"malformed/largest-token", needsHighest, "write 1 x=old; write 2 x=new; write 1 x=old; read x", largestToken},
	{"malformed/ended-context", 0, "write 1 x=base; read x; write 1 x=late; fence 1; read x; fence 1; write 1 x=new; read x", ended},
	{"explore", 0, "", explore},
	{"lockstep", 0, "", lockstep},
}

// raceFirst is a race without any: what is wrong already then is told there.
const raceFirst = "write 1 x=base; write 1 x=old; fence 2; read x; write 1 x=old; read x; write 2 x=new; write 2 y=new; read x; read y; write 1 x=old; fence 1; read x"

var raceChecks = []otherCheck{
	{"concurrency/stale-writes-against-a-fence", needsHighest | needsFence, raceFirst, againstAFence},
	{"concurrency/stale-writes-against-a-newer-write", needsHighest, raceFirst, againstAWrite},
	{"concurrency/stale-writes-against-a-grant", needsCarry, raceFirst, againstAGrant},
	{"concurrency/one-term-many-keys", 0, raceFirst, manyKeys},
	{"linearizability", needsRead, raceFirst, recorded},
}

// known is o with what the storage is found to lack when it is opened. Where
// that fails each check will say so by itself.
func (o Options) known(open opener, limit time.Duration) Options {
	w := kit.NewWatch(limit)
	known := make(chan Options, 1)
	w.Run(func() kit.Outcome {
		lab := kit.NewLab(kit.Watched(w, open), nil)
		defer lab.Close()
		o := o.For(lab.Thing())
		if o.Calls == 0 && o.Carry == nil {
			o.Calls = kit.Pace(func(i int) {
				lab.Call(func() { lab.Thing().Write(context.Background(), 1, "pace-"+strconv.Itoa(i), "x") })
			})
		}
		known <- o
		return kit.Outcome{}
	})
	select {
	case o = <-known:
	default:
	}
	return o
}

// source is a stream of random numbers of its own for each seed and number.
func source(seed uint64, n int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(n))) }

// lockstepSteps is how long a random script is.
const lockstepSteps = 40

// lockstep plays random scripts. What breaks a rule is minimized.
func lockstep(open opener, o Options, e kit.Effort) kit.Outcome {
	budget, scripts, steps := o.budget(e, 25), 0, 0
	for budget > 0 {
		r := play(open, o, generate(source(e.Seed, scripts), o, lockstepSteps))
		if r.breach != nil {
			return convicted(open, o, r)
		}
		budget -= r.calls
		scripts++
		steps += len(r.lines)
	}
	return kit.Outcome{Covered: fmt.Sprintf("%s of %s", counted(scripts, "random script"), counted(steps, "step"))}
}

// convicted is what comes of a run that broke a rule: the shortest such, and a
// file that replays it.
func convicted(open opener, o Options, r result) kit.Outcome {
	r = shortest(open, o, r)
	f := r.failure(o, noRule)
	f.File = r.file(o)
	return kit.Outcome{Failure: f}
}

// exploreKeys are the keys of the scripts that explore plays.
var exploreKeys = [...]string{"x", "y"}

// alphabet is what explore makes scripts of.
func alphabet(o Options) []step {
	var steps []step
	for token := range uint64(2) {
		for _, key := range exploreKeys {
			steps = append(steps, step{do: doWrite, token: token + 1, key: key})
		}
		steps = append(steps, step{do: doFence, token: token + 1})
	}
	steps = append(steps, step{do: doRestart})
	if o.Carry != nil {
		steps = append(steps, step{do: doGrant}, step{do: doRelease})
	}
	n := 0
	for _, st := range steps {
		if o.offers(st) {
			steps[n] = st
			n++
		}
	}
	return steps[:n]
}

// explore plays every script of one step, of two, and so on while the budget
// lasts, and reads all at the end of each: what it finds is the shortest there
// is.
func explore(open opener, o Options, e kit.Effort) kit.Outcome {
	letters, budget := alphabet(o), o.budget(e, 25)
	scripts := 0
	for depth := 1; ; depth++ {
		// A level is begun only if it can be finished; its cost is known before.
		cost, n := 0, 0
		for range words(letters, depth) {
			cost += openCost + depth + len(exploreKeys)
			n++
		}
		if cost > budget && depth > 1 {
			return kit.Outcome{Covered: fmt.Sprintf("all %s of up to %s", counted(scripts, "script"), counted(depth-1, "step"))}
		}
		budget -= cost
		for steps := range words(letters, depth) {
			if !o.NoRead {
				for _, key := range exploreKeys {
					steps = append(steps, step{do: doRead, key: key})
				}
			}
			if r := play(open, o, steps); r.breach != nil {
				return convicted(open, o, r)
			}
		}
		scripts += n
	}
}

// words are all scripts of n letters, without those that say what another one
// says: the keys are named in the order in which they come, and no restart
// follows another, or comes first.
func words(letters []step, n int) func(yield func([]step) bool) {
	return func(yield func([]step) bool) {
		word := make([]step, n)
		var at func(i, keys int) bool
		at = func(i, keys int) bool {
			if i == n {
				return yield(append([]step(nil), word...))
			}
			for _, st := range letters {
				used := keys
				switch {
				case st.do == doRestart && (i == 0 || word[i-1].do == doRestart):
					continue
				case st.do == doWrite && st.key == exploreKeys[1] && keys == 0:
					continue
				case st.do == doWrite:
					st.value = fmt.Sprintf("v%d", i+1)
					used = 1
				}
				word[i] = st
				if !at(i+1, used) {
					return false
				}
			}
			return true
		}
		at(0, 0)
	}
}
