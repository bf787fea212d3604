package electortest

import (
	"fmt"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// story is a check that tells a client what happens, and looks what it does.
type story struct {
	name   string
	says   string
	read   string
	judges kinds
	// idle says that nobody leads in it, if all is right.
	idle bool
	// scenes are variants of it: each makes a world, and what happens in it.
	scenes []scene
}

// scene is made anew for each run: what it captures is one run's. T is the TTL.
type scene func(o Options, T time.Duration) (setup, func(*world))

func (s story) play(t *testing.T, start func(Env) Candidate, o Options) kit.Outcome {
	terms, calls := 0, 0
	for _, sc := range s.scenes {
		st, script := sc(o, o.Config.TTL)
		st.start, st.o, st.judges = start, o, s.judges|set(kindStuck)
		st.clients = max(st.clients, 1)
		r := play(t, st, script)
		if r.unknown != "" {
			return kit.Outcome{Unknown: r.unknown}
		}
		if r.breach != nil {
			return kit.Outcome{Failure: s.failure(r)}
		}
		terms, calls = terms+r.terms, calls+r.calls
	}
	if terms == 0 && !s.idle {
		return kit.Outcome{Skipped: "not reached: the client leads in none of these stories, and so shows nothing of what is asked here"}
	}
	return kit.Outcome{Covered: fmt.Sprintf("stories: %d, terms: %d, calls: %d", len(s.scenes), terms, calls)}
}

func (s story) failure(r result) *kit.Failure {
	f := &kit.Failure{Rule: s.name, Says: s.says, Read: s.read}
	if r.breach.kind == kindStuck {
		f = ruleOf(kindStuck)
	}
	f.What, f.Story, f.More, f.Log = r.breach.what, r.tale.story(), r.breach.more, r.tale.log.String()
	return f
}

// What stories are made of.

// misses is what a story asks of a client besides.
func (w *world) misses(format string, args ...any) {
	w.fail(kindStory, w.slots[0].now, fmt.Sprintf(format, args...))
}

// leads reports whether any client leads now.
func (w *world) leads() bool {
	for _, p := range w.procs {
		if p.term != nil {
			return true
		}
	}
	return false
}

// awaitLeader runs until somebody leads, and says that nobody did, and why
// somebody should have.
func (w *world) awaitLeader(within time.Duration, why string) bool {
	w.enough = w.leads
	w.run(w.now() + within)
	w.enough = nil
	switch {
	case w.breach != nil:
		return false
	case w.leads():
		return true
	}
	for _, p := range w.procs {
		w.mu.Lock()
		works := len(p.works)
		w.mu.Unlock()
		if p.granted != 0 && p.cand.IsLeader == nil && works == 0 {
			w.misses("the client was granted token %d, and does not show whether it leads: give Candidate.IsLeader, or call Env.Lead for each term", p.granted)
			return false
		}
	}
	w.misses("the client does not lead within %v, though %s", within, why)
	return false
}

// awaitFirst runs until the client leads a lease that is free.
func (w *world) awaitFirst() bool {
	return w.awaitLeader(w.o.TakeoverWithin, "the lease is free and the store is well")
}

// leadsFor runs until somebody has led for d. That nobody leads is for others
// to say.
func (w *world) leadsFor(d time.Duration) {
	w.enough = w.leads
	w.run(w.now() + w.o.TakeoverWithin)
	w.enough = nil
	w.run(w.now() + d)
}

// claims reports whether c asks for the lease, or for more of it.
func (c *call) claims() bool { return c.op == lease.OpAcquire || c.op == lease.OpRenew }

// opens reports whether c is the acquire that a client begins with. It may well
// have looked before who holds the lease.
func (c *call) opens() bool { return c.op == lease.OpAcquire && c.claim == 0 }

// from is f for every acquire and renewal after the first n, and for what else
// is asked of the store once the client has led. What it asks besides in order
// to lead goes well, or a story would not reach its point: a look at who holds
// the lease, a fence.
func (c *call) from(n int, f fate) fate {
	if c.op != lease.OpFence && (c.led || c.claims()) && c.claim >= n {
		return f
	}
	return fate{}
}

// cut is a call that fails a moment later without having done anything.
func cut(T time.Duration) fate { return fate{Lost: lostRequest, Answer: T / 100} }

// rivalHolds keeps the lease with the rival until the instant until, and then
// has it die.
func (w *world) rivalHolds(until time.Duration) {
	w.rivalAcquires()
	for at := w.o.Config.TTL / 4; at <= until; at += w.o.Config.TTL / 4 {
		w.after(at, w.rivalRenews)
	}
}

// ruleOf are the rules as such, for runs that are no story.
func ruleOf(k kind) *kit.Failure {
	r := rules[k]
	return &kit.Failure{Rule: r.name, Says: r.says, Read: r.read}
}

const (
	readConfig  = "go doc fencepost/impl/lease Config"
	readClient  = "go doc fencepost/impl/lease Client"
	readHolder  = "go doc fencepost/impl/lease Holder"
	readElector = "go doc fencepost/impl/lease Elector.Run"
	readStore   = "go doc fencepost/impl/lease Store"
	readFencer  = "go doc fencepost/impl/lease Fencer"
	readShow    = "go doc fencepost/props/electortest Candidate"
)

// rules name each kind of breach. Those that a story is about have its name.
var rules = [kindCount]struct{ name, says, read string }{
	kindExpired:      {"belief/ends-before-the-tenure", "A client leads only while it holds the lease in the store, whatever becomes of its calls: after that somebody else may. So it counts a window from the instant at which it sent the request that was granted, shorter than the granted TTL by what the clocks may drift, and ends its term by itself.", readConfig},
	kindTold:         {"belief/ends-at-a-refusal", saysRefusal, readClient},
	kindUngranted:    {"belief/only-what-was-granted", saysGranted, readStore},
	kindRevived:      {"belief/not-revived-by-a-late-answer", saysRevived, readClient},
	kindTwoTokens:    {"belief/one-term-one-token", saysOneTerm, readClient},
	kindReused:       {"identity/new-incarnation-after-each-term", saysIncarnation, readHolder},
	kindShared:       {"identity/two-processes-differ", saysProcesses, readHolder},
	kindEarlyRelease: {"release/after-the-work-has-ended", saysRelease, readElector},
	kindWrongRelease: {"release/under-its-own-token", saysOwnToken, readStore},
	kindWrongRenew:   {"renew/carries-the-granted-token", saysCarries, readStore},
	kindFlood:        {"acquire/waits-between-attempts", saysWaits, readConfig},
	kindLeft:         {"acquire/keeps-campaigning", saysCampaigns, readElector},
	kindAfterRun:     {"release/at-shutdown", saysShutdown, readElector},
	kindStays:        {"release/at-shutdown", saysShutdown, readElector},
	kindUnfenced:     {"fence/before-leading", saysFence, readFencer},
	kindNoLeader:     {"acquire/keeps-campaigning", saysCampaigns, readElector},
	kindStory:        {"", "", ""},
	kindStuck:        {"belief/asked-without-waiting", "A client can always say whether it leads, and ends its term on time, whatever the store does: so nothing that this needs, such as a mutex, is held during a call of the store.", readShow},
}
