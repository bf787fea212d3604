package electortest

import (
	"fmt"
	"time"

	"fencepost/impl/lease"
)

// kind is a way of breaking a rule.
type kind uint8

const (
	kindExpired      kind = iota // believes when its tenure may be over
	kindTold                     // believes after it was told that its tenure is over
	kindUngranted                // believes what was never granted to it
	kindRevived                  // leads again under a token that it has led under
	kindTwoTokens                // one belief goes on under another token
	kindReused                   // acquires as the holder that it was in a term that has ended
	kindShared                   // asks as the holder that another process is
	kindEarlyRelease             // releases what it still works under
	kindWrongRelease             // releases under a token that this holder was not granted
	kindWrongRenew               // renews under such a one
	kindFlood                    // calls without end at one instant
	kindLeft                     // Run returns though nobody said so
	kindAfterRun                 // believes after Run has returned
	kindStays                    // Run does not return, or leaves a goroutine behind
	kindUnfenced                 // leads before its token is fenced
	kindNoLeader                 // nobody leads long after all is well
	kindStory                    // what a story asks besides
	kindStuck                    // waits for a mutex, for ever
	kindCount
)

// kinds is a set of them.
type kinds uint32

func set(ks ...kind) (s kinds) {
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

func (s kinds) has(k kind) bool { return s&(1<<k) != 0 }

// believes are the ways of believing wrongly.
var believes = set(kindExpired, kindTold, kindUngranted)

// anywhere are those that can be judged in any run.
const anywhere = kinds(1<<kindStory-1) | 1<<kindStuck

// breach is a rule broken.
type breach struct {
	kind kind
	at   time.Duration
	what string
	more string
}

// tenure is an ownership in the store, as the judge needs it. It outlives a
// deletion by an operator: the holder cannot know of that until it is told.
type tenure struct {
	token    lease.Token
	holder   lease.Holder
	proc     *process      // nil: the rival
	expires  time.Duration // by the store's clock
	released bool
	ended    time.Duration // the instant of that
	heard    bool          // the client knows of it
	before   int           // how many calls were made before it did
	told     bool          // the client has been told that it is over
}

// term is one belief of a process, as observed.
type term struct {
	proc  *process
	token lease.Token
	from  time.Duration
	to    time.Duration // only if over
	over  bool
}

// fail is a rule broken by p. The first that is judged here ends the run.
func (w *world) fail(k kind, p *process, what string) {
	if w.breach != nil || w.ending || !w.judges.has(k) {
		return
	}
	w.breach = &breach{kind: k, at: w.now(), what: what}
	who := "check"
	if p != nil {
		who = w.slots[p.slot].name
	}
	w.tale.mark(w.now(), who, what)
}

// observe looks at what every process believes at this instant.
func (w *world) observe() {
	for _, p := range w.procs {
		w.mu.Lock()
		returned := p.returned
		working := false
		var live []lease.Token
		for _, k := range p.works {
			working = working || !k.ended
			if !k.ended && k.ctx.Err() == nil {
				live = append(live, k.token)
			}
		}
		w.mu.Unlock()
		// Not with the lock: it is the client's code.
		leader := w.asks(p)
		w.believe(p, leader, live)
		if returned && !p.gone {
			w.leaves(p, working)
		}
		if p.gone && p.term != nil {
			w.fail(kindAfterRun, p, fmt.Sprintf("%s still leads after its Run has returned", w.subject(p)))
		}
	}
}

// asks asks p whether it leads. Nothing else happens meanwhile: whoever calls
// the store now does so to answer.
func (w *world) asks(p *process) (leader bool) {
	if p.cand.IsLeader == nil {
		return false
	}
	at := w.now()
	w.asking.Store(true)
	leader = p.cand.IsLeader()
	w.asking.Store(false)
	how, called := "", w.called.Swap(false)
	switch took := w.now() - at; {
	case took > 0:
		how = fmt.Sprintf("takes %v to answer", took)
	case called:
		how = "calls the store to answer"
	default:
		return leader
	}
	p.cand.IsLeader = nil // or each look at it would take as long
	w.fail(kindStuck, p, fmt.Sprintf("IsLeader of %s %s", w.subject(p), how))
	return false
}

func (w *world) believe(p *process, leader bool, live []lease.Token) {
	name, subject := w.slots[p.slot].name, w.subject(p)
	if len(live) > 1 {
		w.fail(kindTwoTokens, p, fmt.Sprintf("%s leads under the tokens %d and %d at once", subject, live[0], live[1]))
	}
	token := lease.Token(0)
	switch {
	case len(live) > 0:
		token = live[len(live)-1]
	case leader && p.term != nil:
		token = p.term.token
	case leader:
		token = p.granted
	}
	if t := p.term; t != nil && (!leader && len(live) == 0 || token != t.token) {
		t.over, t.to = true, w.now()
		p.term = nil
		w.tell(name, "leads no more", "")
	}
	if !leader && len(live) == 0 {
		return
	}
	if p.term == nil {
		w.begin(p, token)
	}
	w.judgeBelief(p, token)
}

func (w *world) begin(p *process, token lease.Token) {
	name, subject := w.slots[p.slot].name, w.subject(p)
	w.tell(name, fmt.Sprintf("leads under token %d", token), "")
	for _, t := range w.terms {
		if t.token == token && t.proc.slot == p.slot {
			w.fail(kindRevived, p, fmt.Sprintf("%s leads under token %d once more, though its term under it ended at %v", subject, token, t.to))
		}
	}
	if w.o.Fences {
		w.mu.Lock()
		highest := w.guard.Highest
		w.mu.Unlock()
		if highest < token {
			w.fail(kindUnfenced, p, fmt.Sprintf("%s leads under token %d, and the storage has seen no more than %d", subject, token, highest))
		}
	}
	p.term = &term{proc: p, token: token, from: w.now()}
	w.terms = append(w.terms, p.term)
	w.slots[p.slot].led = true
}

// judgeBelief asks whether p, which believes under token, may. That no two
// clients believe at once follows, except after a deletion, when neither can
// know.
func (w *world) judgeBelief(p *process, token lease.Token) {
	subject := w.subject(p)
	t := w.tenures[token]
	switch {
	case token == 0:
		w.fail(kindUngranted, p, fmt.Sprintf("%s leads, and nothing was ever granted to it", subject))
	case t == nil || t.proc != p:
		w.fail(kindUngranted, p, fmt.Sprintf("%s leads under token %d, which was never granted to it", subject, token))
	case t.told && p.granted > token:
		w.fail(kindTwoTokens, p, fmt.Sprintf("%s leads on as if nothing had been, though it was granted token %d, so token %d was lost in between", subject, p.granted, token))
		w.fail(kindTold, p, fmt.Sprintf("%s leads on under token %d, though it was granted token %d: the lease was lost in between", subject, token, p.granted))
	case t.told:
		w.fail(kindTold, p, fmt.Sprintf("%s leads on, though it was told that it holds the lease no more", subject)+w.instead(t))
	case t.released && p.term.from < t.ended:
		// For kindEarlyRelease to say.
	case t.released:
		w.fail(kindExpired, p, fmt.Sprintf("%s leads under token %d, though it has released it at %v", subject, token, t.ended)+w.instead(t))
	case w.storeNow() >= t.expires:
		w.fail(kindExpired, p, fmt.Sprintf("%s still leads, though its tenure ended at %v", subject, w.when(t.expires))+w.instead(t))
	}
}

// instead says who holds the lease, if it is not the holder of t.
func (w *world) instead(t *tenure) string {
	if w.rec.Held(w.storeNow()) && w.rec.Holder != t.holder {
		return fmt.Sprintf(": %s leads too, under token %d", w.whose(w.rec.Holder), w.rec.Token)
	}
	return ""
}

// leaves notes that Run has returned.
func (w *world) leaves(p *process, working bool) {
	name, subject := w.slots[p.slot].name, w.subject(p)
	p.gone = true
	if p.stopped {
		w.tell(name, "returns from Run", "")
		if working {
			w.fail(kindStays, p, subject+" returns from Run before its work has returned")
		}
		return
	}
	err := "nil"
	if p.err != nil {
		err = fmt.Sprintf("%q", p.err)
	}
	w.tell(name, "returns from Run: "+err, "")
	if !w.o.Exits {
		w.fail(kindLeft, p, subject+" returns from Run though its context has not ended, and campaigns no more; if that is meant, say so by Options.Exits")
		return
	}
	if !w.ending {
		w.after(w.o.Config.Retry(), func() {
			if !w.ending {
				w.tell(name, "is started anew", "")
				w.boot(p.slot)
			}
		})
	}
}

// judgeCall looks at a request as it is made.
func (w *world) judgeCall(c *call) {
	p, subject := c.proc, w.subject(c.proc)
	if c.op == lease.OpAcquire || c.op == lease.OpRenew || c.op == lease.OpRelease {
		owner := w.owners[c.holder]
		if owner == nil {
			w.owners[c.holder] = p
		} else if owner != p {
			c.owner = owner
		}
	}
	switch c.op {
	case lease.OpAcquire:
		for _, t := range w.terms {
			if t.over && t.proc == p && w.tenures[t.token] != nil && w.tenures[t.token].holder == c.holder {
				w.fail(kindReused, p, fmt.Sprintf("%s acquires as %q again, the holder that led under token %d until %v", subject, c.holder, t.token, t.to))
			}
		}
	case lease.OpRenew:
		if !w.owns(c) {
			w.fail(kindWrongRenew, p, fmt.Sprintf("%s renews as %q under token %d, which that holder was never granted", subject, c.holder, c.token))
		}
	case lease.OpRelease:
		if !w.owns(c) {
			w.fail(kindWrongRelease, p, fmt.Sprintf("%s releases as %q under token %d, which that holder was never granted", subject, c.holder, c.token))
		}
		w.mu.Lock()
		for _, k := range p.works {
			c.working = c.working || !k.ended && k.token == c.token
		}
		w.mu.Unlock()
	}
}

// judgeShared looks at what the store has answered to a process that asked as
// another one.
func (w *world) judgeShared(c *call) {
	if c.owner != nil {
		w.fail(kindShared, c.proc, fmt.Sprintf("%s asks as %q, which is %s, and is %s", w.subject(c.proc), c.holder, w.slots[c.owner.slot].name, c.answer.words))
	}
}

// owns reports whether the token that a request names was granted to its
// holder.
func (w *world) owns(c *call) bool {
	t := w.tenures[c.token]
	return t != nil && t.holder == c.holder
}

// released notes that a release has ended a tenure.
func (w *world) released(c *call) {
	t := w.tenures[c.token]
	t.released, t.ended = true, w.now()
	if c.proc == nil {
		return
	}
	subject := w.subject(c.proc)
	switch {
	case c.working:
		w.fail(kindEarlyRelease, c.proc, fmt.Sprintf("%s has released token %d while its work under it goes on: anybody may lead now", subject, c.token))
	case c.proc.term != nil && c.proc.term.token == c.token:
		w.fail(kindEarlyRelease, c.proc, fmt.Sprintf("%s has released token %d and still leads under it: anybody may lead now", subject, c.token))
	}
}

// hears notes what an answer tells the client.
func (w *world) hears(c *call) {
	p := c.proc
	// What is said to an acquire that was sent before the client heard of a grant
	// says nothing about that: whoever asks more than once takes the first answer,
	// and of a refusal does not even know which of the two the store handled first.
	// And who has given a call up need not look at what it returns in the end.
	waits := c.ctx.Err() == nil
	tells := func(t *tenure) bool { return waits && (c.op != lease.OpAcquire || t.heard && c.serial > t.before) }
	if t := w.tenures[c.told]; t != nil && tells(t) {
		t.told = true
	}
	g := c.answer.grant
	if g.Token == 0 {
		return
	}
	p.granted = max(p.granted, g.Token)
	if t := w.tenures[g.Token]; !t.heard {
		t.heard, t.before = true, w.calls
	}
	// A grant under another token is no renewal: the old tenure was lost.
	for _, t := range w.tenures {
		if t.holder == g.Holder && t.token < g.Token && tells(t) {
			t.told = true
		}
	}
}
