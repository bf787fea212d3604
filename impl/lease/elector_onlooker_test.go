package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"fencepost/impl/clock"
)

// The rules that a campaign is watched for.
const (
	simContext   = "the context has ended by the last answered send and a window"
	simValid     = "nothing is valid after that"
	simAgree     = "a term is valid while its context goes on, but in a pause"
	simTwice     = "lead is entered once under a token"
	simItself    = "lead does not run beside itself"
	simBelievers = "one believer at a time"
	simOwner     = "who believes holds the lease"
	simLeft      = "no goroutine is left"
)

var simRules = []string{simContext, simValid, simAgree, simTwice, simItself, simBelievers, simOwner, simLeft}

// onlooker judges them by what can be seen from outside: calls and their
// answers, what lead is given, and contexts. Its arithmetic is its own.
type onlooker struct {
	base   clock.Clock
	began  time.Duration
	memory *Memory
	twins  bool

	mu       sync.Mutex
	nodes    []*onlooked
	entries  map[Token]int
	breached map[string]string
	seen     map[string]bool
	trace    []string
	deaf     bool // the rest comes at one instant, in any order
	owner    int  // that led last, -1: nobody
}

// onlooked is one elector.
type onlooked struct {
	read0   time.Duration // of its clock at the beginning
	rate    clock.Rate
	clk     *pausedClock
	cut     time.Duration           // it is cut off around then
	sent    map[Token]time.Duration // of the last request that was answered, by its clock
	inside  int
	hanging int
	work    []*onlookedWork
}

type onlookedWork struct {
	ctx  context.Context
	term Term
	over bool
}

func newOnlooker(base clock.Clock) *onlooker {
	return &onlooker{base: base, began: base.Now(), entries: map[Token]int{}, breached: map[string]string{}, seen: map[string]bool{}, owner: -1}
}

func (o *onlooker) add(read0 time.Duration, rate clock.Rate, clk *pausedClock, cut time.Duration) {
	o.nodes = append(o.nodes, &onlooked{read0: read0, rate: rate, clk: clk, cut: cut, sent: map[Token]time.Duration{}})
}

func (o *onlooker) since() time.Duration { return o.base.Now() - o.began }

// now is what the clock of an elector reads, paused or not.
func (o *onlooker) now(i int) time.Duration {
	n := o.nodes[i]
	return n.read0 + o.since()*time.Duration(n.rate)/1_000_000
}

// when is the first instant at which that clock reads at, since the beginning.
func (n *onlooked) when(at time.Duration) time.Duration {
	rate := time.Duration(n.rate)
	return ((at-n.read0)*1_000_000 + rate - 1) / rate
}

// cutOff tells whether nothing gets through to the store.
func (o *onlooker) cutOff(i int) bool {
	cut := o.nodes[i].cut
	return o.since() > cut && o.since() < cut+1500*ms
}

func (o *onlooker) blame(rule, format string, args ...any) {
	if _, ok := o.breached[rule]; !ok {
		o.breached[rule] = fmt.Sprintf("%v: ", o.since()) + fmt.Sprintf(format, args...)
		o.note("BREACH %s: %s", rule, o.breached[rule])
	}
}

func (o *onlooker) note(format string, args ...any) {
	if o.deaf {
		return
	}
	o.trace = append(o.trace, fmt.Sprintf("%12d ", o.since())+fmt.Sprintf(format, args...))
}

func (o *onlooker) deafen() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deaf = true
}

func (o *onlooker) saw(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[what] = true
}

func (o *onlooker) hangs(i, more int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes[i].hanging += more
}

func (o *onlooker) answered(i int, sent time.Duration, req Request, g Grant, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note("n%d %v sent at %d: token %d, %v", i, req.Op, sent, g.Token, err)
	if err == nil && (req.Op == OpAcquire || req.Op == OpRenew) {
		n := o.nodes[i]
		n.sent[g.Token] = max(n.sent[g.Token], sent)
	}
}

// bound is when belief under token ends, on the elector's clock.
func (n *onlooked) bound(token Token) time.Duration { return n.sent[token] + simWindow }

// entered is told when lead begins; what it returns, when lead ends.
func (o *onlooker) entered(i int, ctx context.Context, term Term) (left func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.nodes[i]
	o.note("n%d enters %d", i, term.Token)
	if o.entries[term.Token]++; o.entries[term.Token] > 1 {
		o.blame(simTwice, "token %d, by n%d", term.Token, i)
	}
	same := n
	if o.twins {
		same = o.nodes[0]
	}
	if same.inside++; same.inside > 1 {
		o.blame(simItself, "n%d enters token %d", i, term.Token)
	}
	if o.owner >= 0 && o.owner != i {
		o.seen["takeover"] = true
	}
	o.owner = i
	w := &onlookedWork{ctx: ctx, term: term}
	n.work = append(n.work, w)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		same.inside--
		o.note("n%d leaves %d", i, term.Token)
		o.look1(i, w)
		n.work = slices.DeleteFunc(n.work, func(old *onlookedWork) bool { return old == w })
	}
}

// valid asks a term as its work does, and holds the answer against the bound at
// the same instant.
func (o *onlooker) valid(i int, term Term) {
	yes := term.Valid()
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, bound := o.now(i), o.nodes[i].bound(term.Token); yes && now >= bound {
		o.blame(simValid, "n%d under %d at %d on its clock, bound %d", i, term.Token, now, bound)
	}
}

// sleep ends early where a bound or the end of a pause comes first.
func (o *onlooker) sleep(most time.Duration) {
	o.mu.Lock()
	now := o.since()
	for _, n := range o.nodes {
		at := []time.Duration{n.clk.until() - o.began + afterPause}
		for _, w := range n.work {
			at = append(at, n.when(n.bound(w.term.Token)))
		}
		for _, at := range at {
			if at > now {
				most = min(most, at-now)
			}
		}
	}
	o.mu.Unlock()
	time.Sleep(most)
}

// paused includes the nanoseconds in which a process wakes, timer by timer.
func (o *onlooker) paused(i int) bool { return o.base.Now() < o.nodes[i].clk.until()+afterPause }

// look judges everybody at this instant, at which all have come to rest.
func (o *onlooker) look(ctx context.Context) {
	held, err := o.memory.Get(ctx, "db")
	o.mu.Lock()
	defer o.mu.Unlock()
	believers := 0
	for i, n := range o.nodes {
		for _, w := range n.work {
			believes := o.look1(i, w)
			o.lookAtTerm(i, w)
			if !believes {
				continue
			}
			believers++
			if err == nil && held.Token != w.term.Token {
				o.blame(simOwner, "n%d believes under %d, the store says %d", i, w.term.Token, held.Token)
			}
		}
	}
	if believers > 1 {
		o.blame(simBelievers, "there are %d", believers)
	}
}

// look1 judges one term, and reports whether it is believed in. A process that
// is paused ends nothing; nor does anybody in it act, so that belief ends at the
// bound.
func (o *onlooker) look1(i int, w *onlookedWork) (believes bool) {
	n := o.nodes[i]
	now, bound := o.now(i), n.bound(w.term.Token)
	if cause := context.Cause(w.ctx); cause != nil {
		if !w.over {
			w.over = true
			o.ended(n, cause)
		}
		return false
	}
	if now >= bound && !o.paused(i) {
		o.blame(simContext, "n%d under %d at %d on its clock, bound %d", i, w.term.Token, now, bound)
	}
	if now >= bound {
		o.seen["a pause past the bound"] = o.seen["a pause past the bound"] || o.paused(i)
	}
	return now < bound
}

// lookAtTerm holds what the term of w says against its bound and its context. In a
// pause its clock goes on, and the context waits.
func (o *onlooker) lookAtTerm(i int, w *onlookedWork) {
	n := o.nodes[i]
	valid, now, bound := w.term.Valid(), o.now(i), n.bound(w.term.Token)
	if valid && now >= bound {
		o.blame(simValid, "n%d under %d at %d on its clock, bound %d", i, w.term.Token, now, bound)
	}
	if goesOn := w.ctx.Err() == nil; valid != goesOn && !(goesOn && o.paused(i)) {
		o.blame(simAgree, "n%d under %d at %d on its clock, bound %d: valid %v, %v", i, w.term.Token, now, bound, valid, context.Cause(w.ctx))
	}
}

func (o *onlooker) ended(n *onlooked, cause error) {
	for err, name := range map[error]string{ErrLapsed: "lapsed", ErrRefused: "refused", ErrResigned: "resigned", context.Canceled: "stopped"} {
		if errors.Is(cause, err) {
			o.seen[name] = true
		}
	}
	if errors.Is(cause, ErrLapsed) && n.hanging > 0 {
		o.seen["a hung call at the deadline"] = true
	}
}

// story is the last of what happened.
func (o *onlooker) story() string {
	slices.Sort(o.trace)
	last := len(o.trace)
	for i, line := range o.trace {
		if strings.Contains(line, "BREACH") {
			last = i + 1
			break
		}
	}
	return strings.Join(o.trace[max(0, last-15):last], "\n")
}
