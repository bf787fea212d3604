package electortest

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// result is how one run of a world ended.
type result struct {
	breach  *breach
	unknown string // why nothing can be said
	tale    *tale
	terms   int
	calls   int
	made    []int // calls, by client
	// takeovers is how many terms began after one of another client.
	takeovers int
}

// play runs script in a world of s, in a bubble of its own, and stops what is
// left of it.
func play(t *testing.T, s setup, script func(*world)) result {
	var (
		told   tale
		beats  atomic.Uint64
		w      *world // the bubble's, until it is over
		bubble string
	)
	named := make(chan string, 1)
	stuck, ended := inBubble(t, s.o.patience, &beats, func() {
		named <- currentBubble()
		var own []string
		if s.judges.has(kindStays) {
			for _, g := range goroutinesOf(currentBubble()) {
				own = append(own, g.id())
			}
		}
		w = newWorld(s, &told, &beats)
		for i := range w.slots {
			w.boot(i)
		}
		if w.unknown == "" {
			script(w)
		}
		stopped := w.finish()
		if w.breach == nil && w.unknown == "" && s.judges.has(kindStays) {
			w.breach = w.remains(stopped, own)
		}
	})
	select {
	case bubble = <-named:
	default:
	}
	if stuck {
		return stuckIn(bubble, &told)
	}
	if !ended {
		return result{tale: &told, unknown: "the client ended the goroutine that looks on, as t.Fatal does: start and IsLeader must return"}
	}
	r := result{breach: w.breach, unknown: w.unknown, tale: &told, terms: len(w.terms), calls: w.calls}
	for _, s := range w.slots {
		r.made = append(r.made, s.calls)
	}
	for i := range w.terms[min(1, len(w.terms)):] {
		if w.terms[i].proc.slot != w.terms[i+1].proc.slot {
			r.takeovers++
		}
	}
	return r
}

// remains is what is wrong with a world that was told to end, or nil. own are
// the goroutines that were there before any client.
func (w *world) remains(stopped bool, own []string) *breach {
	what := "Run has not returned ten TTLs after its context ended"
	if stopped {
		// Time to notice, for what looks now and then whether it should end.
		w.run(w.now() + w.o.Config.TTL)
		what = "Run has returned and left a goroutine behind"
	}
	left := slices.DeleteFunc(goroutinesOf(currentBubble()), func(g goroutine) bool { return slices.Contains(own, g.id()) })
	if stopped && len(left) == 0 {
		return nil
	}
	w.tale.mark(w.now(), "check", what)
	return &breach{kind: kindStays, at: w.now(), what: what, more: stacks(left)}
}

// inBubble runs f in a bubble, and reports whether it got stuck, as f waits for
// what never happens, or one instant took too long by the real clock; else
// whether it came to its end. Where it got stuck its goroutines are left where
// they are, which is what a mutex held during a call that hangs comes to: a
// bubble's time stands still while a goroutine waits for one.
func inBubble(t *testing.T, patience int, beats *atomic.Uint64, f func()) (stuck, ended bool) {
	done := make(chan any, 1)
	var whole atomic.Bool
	go func() {
		defer func() { done <- recover() }()
		synctest.Test(t, func(*testing.T) {
			f()
			whole.Store(true)
		})
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for idle, last := 0, uint64(0); ; {
		select {
		case r := <-done:
			// A goroutine that stays behind is a deadlock to the bubble. Who is
			// to judge it has seen it by then.
			if err, ok := r.(error); r != nil && (!ok || !strings.HasPrefix(err.Error(), "deadlock:")) {
				panic(r)
			}
			return r != nil && !whole.Load(), whole.Load()
		case <-tick.C:
			// Ticks and not elapsed time: they stand still with the machine.
			if now := beats.Load(); now != last {
				idle, last = 0, now
			} else if idle++; idle > patience {
				return true, false
			}
		}
	}
}

// stuckOutside begins what is said of a client that cannot be checked like
// this.
const stuckOutside = "time stands still: a goroutine neither rests nor ends; does it wait for something that was made outside of the bubble, such as a channel in a package variable, or for the network? See Env"

func stuckIn(bubble string, told *tale) result {
	all := goroutinesOf(bubble)
	if i := slices.IndexFunc(all, func(g goroutine) bool { return strings.Contains(g.stack, asksFrame) }); i >= 0 && strings.Contains(all[i].head, "(durable)") {
		return told.stuck("IsLeader does not return: does it wait for a goroutine that calls the store?", all[i:i+1])
	}
	// The others have come to rest, or wait for that.
	waits := slices.DeleteFunc(all, func(g goroutine) bool {
		return strings.Contains(g.head, "(durable)") || strings.Contains(g.head, "[synctest.")
	})
	if !slices.ContainsFunc(waits, func(g goroutine) bool { return strings.Contains(g.head, "Mutex") }) {
		return result{tale: told, unknown: stuckOutside + "\n" + stacks(waits)}
	}
	return told.stuck("a goroutine waits for a mutex and time stands still: is one held during a call of the store?", waits)
}

// asksFrame is in the stack of a goroutine that asks a client whether it leads.
const asksFrame = "electortest.(*world).asks("

// stuck is the result of a run that did not end.
func (t *tale) stuck(what string, waits []goroutine) result {
	t.mu.Lock()
	if t.asked.who != "" {
		t.lines = append(t.lines, t.asked)
	}
	at := time.Duration(0)
	if n := len(t.lines); n > 0 {
		at = max(t.lines[n-1].at, t.lines[n-1].last)
	}
	t.mu.Unlock()
	t.mark(at, "check", what)
	return result{tale: t, breach: &breach{kind: kindStuck, at: at, what: what, more: stacks(waits)}}
}

// currentBubble is how the stack of a goroutine names the bubble it is in.
func currentBubble() string {
	head := make([]byte, 128)
	head = head[:runtime.Stack(head, false)]
	head, _, _ = bytes.Cut(head, []byte("\n"))
	_, bubble, ok := bytes.Cut(head, []byte("synctest bubble "))
	if !ok {
		return ""
	}
	bubble, _, _ = bytes.Cut(bubble, []byte("]"))
	bubble, _, _ = bytes.Cut(bubble, []byte(","))
	return "synctest bubble " + string(bubble)
}

// goroutine is one of the goroutines of a bubble.
type goroutine struct {
	head  string // "goroutine 7 [select (durable), synctest bubble 1]:"
	stack string
}

// id is what stays the same about it.
func (g goroutine) id() string {
	id, _, _ := strings.Cut(g.head, " [")
	return id
}

func goroutinesOf(bubble string) (list []goroutine) {
	if bubble == "" {
		return nil
	}
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		if strings.Contains(head, bubble+"]") || strings.Contains(head, bubble+",") {
			list = append(list, goroutine{head, g})
		}
	}
	return list
}

// stacks shows the first few of list.
func stacks(list []goroutine) string {
	const most = 2
	var shown []string
	for _, g := range list[:min(len(list), most)] {
		shown = append(shown, shorten(g.stack))
	}
	if n := len(list) - most; n > 0 {
		shown = append(shown, fmt.Sprintf("... and %d more", n))
	}
	return strings.Join(shown, "\n")
}

// shorten keeps the head of a stack and its innermost frames that are not the
// runtime's.
func shorten(stack string) string {
	lines := strings.Split(stack, "\n")
	out := lines[:1:1]
	const most = 11
	for i := 1; i < len(lines) && len(out) < most; i += 2 {
		frame := lines[i:min(i+2, len(lines))]
		if !slices.ContainsFunc([]string{"sync.", "internal/", "runtime."}, func(of string) bool { return strings.HasPrefix(frame[0], of) }) {
			out = append(out, frame...)
		}
	}
	return strings.Join(out, "\n")
}
