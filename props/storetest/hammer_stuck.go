package storetest

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"

	"fencepost/linearizability"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// run runs a check of concurrent calls, which ends where the store panics.
func (h *hammer) run(check func(*hammer) kit.Outcome) kit.Outcome {
	return kit.Try(func() (out kit.Outcome) {
		defer h.close()
		defer func() {
			switch r := recover().(type) {
			case nil:
			case *panicError:
				out = kit.Outcome{Failure: h.tellPanic(r)}
			default:
				panic(r)
			}
		}()
		return check(h)
	})
}

// panicError is what a call came to that panicked.
type panicError struct {
	says  string
	stack string
}

func (p *panicError) Error() string { return "panic: " + p.says }

// call calls the store, which is watched meanwhile.
func (h *hammer) call(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *kit.SetupError:
			panic(r)
		default:
			p := &panicError{clip(fmt.Sprint(r)), kit.Inside(string(debug.Stack()))}
			h.panicked.CompareAndSwap(nil, p)
			err = p
		}
	}()
	h.lab.Call(func() { err = f() })
	return err
}

// tellPanic tells of a panic, by the calls that led to it.
func (h *hammer) tellPanic(p *panicError) *kit.Failure {
	f := &kit.Failure{Rule: kit.RulePanic, Says: kit.NoPanic, What: p.Error(), More: p.stack, Read: "go doc fencepost/impl/lease Store", Log: h.lab.Log()}
	if h.history != nil {
		f.Story, _ = h.recorded(func(end *linearizability.Event) bool {
			return end != nil && end.Type == linearizability.Info && word(end, "error") == p.Error()
		})
		return f
	}
	f.Story, _ = h.told(func(c *call) bool { return c.returned() && c.err == error(p) })
	return f
}

// stuck tells of a call that does not return: see [kit.Watch.Tell]. Where another
// one has panicked that is why: it has left a lock behind.
func (h *hammer) stuck(within string) *kit.Failure {
	// All who are back have passed here, and the others are in the store.
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	if p := h.panicked.Load(); p != nil {
		return h.tellPanic(p)
	}
	f := &kit.Failure{Says: script.Returns, Read: "go doc fencepost/impl/lease Store", Log: h.lab.Log()}
	if h.history != nil {
		f.Story, f.What = h.recorded(func(end *linearizability.Event) bool { return end == nil })
	} else {
		f.Story, f.What = h.told(func(c *call) bool { return !c.returned() })
	}
	if within != "" {
		f.Story = append(f.Story, within+" does not return  ◄")
	}
	return f
}

// told is the round, and what was asked in the first call that is bad.
func (h *hammer) told(bad func(*call) bool) (story []string, what string) {
	calls := slices.Concat(h.calls, slices.Concat(h.chains...))
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Compare(a.from, b.from) })
	b := &breach{at: new(call)}
	if at := slices.IndexFunc(calls, func(c *call) bool { return c.from > 0 && bad(c) }); at >= 0 {
		b.at = calls[at]
		what = `"` + b.at.asked() + `"`
	}
	return tellCalls(calls, h.story, b), what
}

// recorded is the history, and what was asked in the first call whose end is bad.
func (h *hammer) recorded(bad func(end *linearizability.Event) bool) (story []string, what string) {
	hist, err := h.history.history()
	if err != nil {
		return nil, ""
	}
	for _, op := range hist.Ops() {
		call := &hist.Events[op.Call]
		var end *linearizability.Event
		at := call.Index
		if op.Return >= 0 {
			end = &hist.Events[op.Return]
			at = end.Index
		}
		if bad(end) {
			return tellHistory(&hist, at), `"` + askedIn(call) + `"`
		}
	}
	return tellHistory(&hist, -1), ""
}
