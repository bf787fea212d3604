package lease

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// The rules that a rivalry of groups is watched for.
const (
	ruleTokens    = "a token is led under once, and they rise"
	ruleOneTerm   = "one term of a resource at a time in a process"
	ruleBelievers = "one believer at a time"
	ruleOwnership = "who believes holds the lease"
	ruleWindow    = "belief ends a window after the last confirmed send"
	ruleContext   = "the context ends with the term"
	ruleDone      = "nothing is released or campaigned for before the work is done"
)

// watchdog judges those rules by what can be seen from outside of the groups:
// calls and their answers, what Lead is told, and what Term says.
type watchdog struct {
	window time.Duration // by hand

	mu       sync.Mutex
	highest  map[string]Token         // led under, by resource
	shifts   map[string]*shift        // by node and resource; the latest
	sent     map[string]time.Duration // by resource, holder and token: the latest send confirmed, on the node's clock
	breached map[string]string        // rule: the first breach
	terms    int
	causes   map[string]int
}

// shift is the work of one term, from Lead until it stopped.
type shift struct {
	term    Term
	ctx     context.Context
	stopped bool
}

func newWatchdog(window time.Duration) *watchdog {
	return &watchdog{window: window, highest: map[string]Token{}, shifts: map[string]*shift{}, sent: map[string]time.Duration{}, breached: map[string]string{}, causes: map[string]int{}}
}

func (w *watchdog) breach(rule, format string, args ...any) {
	if _, ok := w.breached[rule]; !ok {
		w.breached[rule] = fmt.Sprintf(format, args...)
	}
}

// began is told of each Lead.
func (w *watchdog) began(ctx context.Context, term Term, at string) *shift {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.terms++
	if old := w.shifts[at]; old != nil && !old.stopped {
		w.breach(ruleOneTerm, "%s: token %d while the work under %d goes on", at, term.Token, old.term.Token)
	}
	// A term may be over before its work is told; then it must know.
	if term.Token <= w.highest[term.Resource] && ctx.Err() == nil {
		w.breach(ruleTokens, "%s: token %d after %d", at, term.Token, w.highest[term.Resource])
	}
	w.highest[term.Resource] = max(w.highest[term.Resource], term.Token)
	s := &shift{term: term, ctx: ctx}
	w.shifts[at] = s
	return s
}

func (w *watchdog) stopped(s *shift) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.stopped = true
	w.causes[why(s.ctx)]++
}

// called is told of each call before it is made.
func (w *watchdog) called(node string, calls []Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range calls {
		if s := w.shifts[node+" "+c.Resource]; s != nil && !s.stopped && c.Holder != s.term.Holder {
			w.breach(ruleDone, "%s: %v as %v while the work under %d goes on", c.Resource, c.Op, c.Holder, s.term.Token)
		} else if s != nil && !s.stopped && c.Op == OpRelease {
			w.breach(ruleDone, "%s: released while the work under %d goes on", c.Resource, s.term.Token)
		}
	}
}

// confirmed is told of the answers that the store gave, unless they were lost.
func (w *watchdog) confirmed(now time.Duration, calls []Call, answers []Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range calls {
		if answers[i].Err == nil && c.Op != OpRelease {
			key := fmt.Sprint(c.Resource, c.Holder, answers[i].Grant.Token)
			w.sent[key] = max(w.sent[key], now)
		}
	}
}

// looked is told what each group says of resource, by its own clock now, at one
// instant at which nothing else happens. paused processes do nothing at all.
func (w *watchdog) looked(resource string, nodes []string, terms []Term, now []time.Duration, paused []bool, held Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	believers := 0
	for i, term := range terms {
		valid := term.Token != 0 && now[i] < term.Deadline()
		if valid {
			believers++
			if held.Holder != term.Holder || held.Token != term.Token {
				w.breach(ruleOwnership, "%v believes in %s under %d, the store says %+v", term.Holder, resource, term.Token, held)
			}
			if sent := w.sent[fmt.Sprint(resource, term.Holder, term.Token)]; now[i] >= sent+w.window {
				w.breach(ruleWindow, "%v believes in %s under %d at %v, sent last at %v", term.Holder, resource, term.Token, now[i], sent)
			}
		}
		if s := w.shifts[nodes[i]+" "+resource]; s != nil && !s.stopped && !paused[i] && now[i] >= s.term.Deadline() && s.ctx.Err() == nil {
			w.breach(ruleContext, "%s: at %v the context goes on, the term ended at %v", resource, now[i], s.term.Deadline())
		}
	}
	if believers > 1 {
		w.breach(ruleBelievers, "%d believe in %s", believers, resource)
	}
}
