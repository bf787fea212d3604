package kit

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
)

// Silence is how long a call of the code under test may take, in real time: only
// one that waits takes that long, as the check's clock stands still meanwhile.
const Silence = 10 * time.Second

// Rules of whatever is called.
const (
	RuleReturns = "every-call-returns"
	RulePanic   = "no-panic"
)

// NoPanic is what RulePanic says.
const NoPanic = "Whatever is asked, the answer is an answer or an error."

// Watch sees the calls of a check begin and end, so that one that never returns
// is told instead of waited for. The checks that it is [Watch.Over] run one at a
// time, on the processes of what [Watched] opens. A nil Watch sees nothing.
type Watch struct {
	limit time.Duration
	// calls counts, so that two atomic additions are all that a call costs: how
	// many are under way in the lowest bits, how many began or ended above.
	calls  atomic.Uint64
	within atomic.Pointer[string] // what is done that is no call; nil: a call
	tell   atomic.Pointer[func(within string) *Failure]
}

const (
	underWay  = 1<<16 - 1 // bits of Watch.calls
	heard     = 1 << 16
	convicted = 1 << 63
)

// NewWatch is a watch that convicts what takes longer than limit.
func NewWatch(limit time.Duration) *Watch { return &Watch{limit: limit} }

// Watched is open, whose processes w watches: [Lab.Call] tells it of their calls.
func Watched[T any](w *Watch, open func(Env) T) func(Env) T {
	return func(e Env) (thing T) {
		if *e.watch == nil { // the first process of a lab: what is told of is another
			w.Tell(nil)
			*e.watch = w
		}
		w.Within("open", func() { thing = open(e) })
		return thing
	}
}

// Call is a call of the code under test, in f. If it is convicted meanwhile Call
// does not return: whoever tells of it may read all but what f writes.
//
//go:noinline
func (w *Watch) Call(f func()) {
	if w == nil {
		f()
		return
	}
	w.count(heard + 1)
	defer w.count(heard - 1)
	f()
}

func (w *Watch) count(n uint64) {
	if w.calls.Add(n) >= convicted {
		select {} // the check is over
	}
}

// Within is a call in f that no answer is expected of, such as "Close". No
// other may be under way.
func (w *Watch) Within(what string, f func()) {
	if w == nil {
		f()
		return
	}
	w.within.Store(&what)
	defer w.within.Store(nil)
	w.Call(f)
}

// Tell says who tells of a call that does not return: what it was, as
// [Failure].What, how it came to it as the Story, and what the rule Says. within
// is what is done that is no call, or "". A failure with a Rule is told as it is.
func (w *Watch) Tell(tell func(within string) *Failure) {
	switch {
	case w == nil:
	case tell == nil:
		w.tell.Store(nil)
	default:
		w.tell.Store(&tell)
	}
}

// Over are checks that run watched, up to the first that a call does not return
// to. Those after it are skipped, since that call cannot be ended, nor can the
// check that waits for it.
func (w *Watch) Over(checks []Check) []Check {
	var at string // the check that waits for ever
	var failure *Failure
	over := make([]Check, len(checks))
	for i, c := range checks {
		over[i] = Check{Name: c.Name, Run: func() Outcome {
			switch {
			case failure == nil:
			case c.Name == at:
				return Outcome{Failure: failure}
			default:
				return Outcome{Skipped: "not reached: an earlier call never returned, see " + at}
			}
			out := w.Run(c.Run)
			if w.calls.Load() >= convicted {
				at, failure = c.Name, out.Failure
			}
			return out
		}}
	}
	return over
}

// Run runs a check up to the first call that does not return.
func (w *Watch) Run(check func() Outcome) Outcome {
	done := make(chan Outcome, 1)
	var id atomic.Pointer[string]
	go func() {
		me := goroutine()
		id.Store(&me)
		out := Outcome{Unknown: "the check's goroutine was ended from inside, as testing.T.FailNow does: to give up, call Env.Fatal"}
		defer func() { done <- out }()
		out = Guard(check)
	}()
	const parts = 4 // of the limit
	tick := time.NewTicker(w.limit / parts)
	defer tick.Stop()
	for seen, quiet := uint64(0), 0; ; {
		select {
		case out := <-done:
			return out
		case <-tick.C:
		}
		switch now := w.calls.Load(); {
		case now&underWay == 0 || now != seen:
			seen, quiet = now, 0
		case quiet+1 < parts:
			quiet++
		case w.calls.CompareAndSwap(now, now|convicted):
			return Outcome{Failure: w.convict(*id.Load())}
		}
	}
}

// convict tells of the calls that goroutine id makes, or those that it began.
func (w *Watch) convict(id string) *Failure {
	within := ""
	if what := w.within.Load(); what != nil {
		within = *what
	}
	f := &Failure{What: "a call", Says: "A call returns in the end, whatever comes of it."}
	if tell := w.tell.Load(); tell != nil {
		f = (*tell)(within)
	}
	if f.Rule != "" {
		return f
	}
	if within != "" {
		f.What = within
		f.Says = "open, Close and whatever else the check calls return by themselves: the clock stands still meanwhile, and nothing else is called."
	}
	f.Rule = RuleReturns
	f.What = fmt.Sprintf("%s did not return in %v", f.What, w.limit)
	f.More = stacks(id)
	return f
}

// goroutine is the calling one as stacks name it: "goroutine 7".
func goroutine() string {
	buf := make([]byte, 64)
	id, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), " [")
	return id
}

// stacks are those of the calls under way, by goroutine id or by one that it began.
func stacks(id string) string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var stuck []string
	for s := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(s, call) && (strings.HasPrefix(s, id+" [") || strings.Contains(s, " in "+id+"\n")) {
			stuck = append(stuck, Inside(s))
		}
	}
	return strings.Join(stuck, "\n\n")
}

// call is where the code under test begins in a stack.
const call = "\nfencepost/props/kit.(*Watch).Call("

// Inside is the part of a stack that is inside of the code under test, from the
// panic on if there is one; all of it if no call is found.
func Inside(stack string) string {
	if at := strings.Index(stack, "\npanic("); at >= 0 {
		stack = stack[at+1:]
	}
	stack, _, _ = strings.Cut(stack, call)
	return stack
}

// Guard runs a check, and makes an outcome of a panic too: nothing is known where
// the code under test could not be set up, and all else is its failure.
func Guard(check func() Outcome) (out Outcome) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *SetupError:
			out = Outcome{Unknown: r.Error()}
		default:
			if err, ok := r.(error); ok {
				if setup, ok := errors.AsType[*SetupError](err); ok {
					out = Outcome{Unknown: setup.Error()}
					return
				}
			}
			out = Outcome{Failure: &Failure{Rule: RulePanic, Says: NoPanic,
				What: fmt.Sprintf("panic: %v", r), More: Inside(string(debug.Stack()))}}
		}
	}()
	return check()
}
