package sim

import (
	"slices"

	"fencepost/model"
)

// This file is what [Minimize] does where no deletion and no trade makes a
// schedule shorter: it adds something, after which more can go than was added.

// detour reports whether it found a way around.
//
// Clients ask, resign, crash and come back in any run, and the network delays,
// loses and copies. Whatever else it adds was done before, to the same node:
// who minimises a failure in which no store crashed need not wonder about
// crashes of stores.
func (m *minimizer) detour() bool {
	m.best.Renumber() // so that the ids after the last are free
	if m.prompt() || m.lapse() || m.end() {
		return true
	}
	first := int32(len(m.best.Actions) + 1) // the id of the first one added
	for p := range m.best.Actions {
		waiting := m.waiting(p)
		for _, x := range m.stuff {
			if x.Kind == Advance && !m.paced(x.Rates) {
				continue
			}
			if m.around(p, x) {
				return true
			}
			switch x.Kind {
			case Crash:
				if m.around(p, x, Action{Kind: Restart, Who: x.Who}) {
					return true
				}
			case Resign: // rather than wait for the lapse
				if m.around(p, x, Action{Kind: Deliver, Msg: model.Msg{Action: first}}) {
					return true
				}
				for _, grant := range waiting {
					if m.around(p, Action{Kind: Deliver, Msg: grant}, x, Action{Kind: Deliver, Msg: model.Msg{Action: first + 1}}) {
						return true
					}
				}
			}
		}
		for _, msg := range waiting {
			if m.around(p, Action{Kind: Duplicate, Msg: msg}) {
				return true
			}
		}
	}
	return false
}

// around adds xs before action p and deletes what it can. If a single action
// was added whose message can stand for that of another, it also tries that,
// without the other and without what was only there for the other's sake. It
// reports whether the schedule came to be shorter, or as long with less waiting
// in it: where nothing waits something else may turn out to be needless.
func (m *minimizer) around(p int, xs ...Action) bool {
	was := m.best
	for i := range xs {
		xs[i].ID = int32(len(was.Actions) + 1 + i)
	}
	if m.gains(slices.Insert(slices.Clone(was.Actions), p, xs...)) {
		return true
	}
	if x := xs[0]; len(xs) == 1 && sends[x.Kind] {
		for _, old := range was.Actions {
			instead := slices.Insert(slices.Clone(was.Actions), p, x)
			if !rename(instead, old.ID, x.ID) {
				continue
			}
			for _, id := range [...]int32{old.ID, old.Msg.Action} {
				instead = slices.DeleteFunc(instead, func(a Action) bool { return a.ID == id })
				if id != 0 && m.gains(instead) {
					return true
				}
			}
		}
	}
	return false
}

// gains adopts the actions if what they let go makes the schedule shorter, or
// keeps its length and leaves less waiting in it.
func (m *minimizer) gains(actions []Action) bool {
	was := m.best
	if !m.try(actions) {
		return false
	}
	for m.singly(was.Actions) || m.original() {
		if slices.Equal(m.best.Actions, was.Actions) {
			return false
		}
	}
	n, before := len(m.best.Actions), len(was.Actions)
	if n < before || n == before && advances(m.best.Actions) < advances(was.Actions) {
		return true
	}
	m.best = was
	return false
}

// rename lets the messages of action to stand for those of from, and reports
// whether there were any.
func rename(actions []Action, from, to int32) (named bool) {
	for k := range actions {
		if actions[k].Msg.Action == from {
			actions[k].Msg.Action, named = to, true
		}
	}
	return named
}

func advances(actions []Action) (n int) {
	for i := range actions {
		if actions[i].Kind == Advance {
			n++
		}
	}
	return n
}

// paced reports whether time passes at those rates anywhere, or at true ones.
func (m *minimizer) paced(rates [model.MaxNodes]int32) bool {
	return rates == ([model.MaxNodes]int32{}) || slices.ContainsFunc(m.best.Actions, func(a Action) bool { return a.Rates == rates })
}

// prompt lets messages arrive as soon as they are sent, and clients send them
// no sooner than that, where nothing is late for a reason: what happens
// meanwhile may then turn out to be needless.
func (m *minimizer) prompt() (shorter bool) {
	n := len(m.best.Actions)
	for i := 0; i < len(m.best.Actions); i++ {
		a := m.best.Actions[i]
		from := slices.IndexFunc(m.best.Actions, func(b Action) bool { return b.ID == a.Msg.Action })
		if a.Kind == Deliver && from >= 0 && from+1 < i {
			m.try(slices.Insert(slices.Delete(slices.Clone(m.best.Actions), i, i+1), from+1, a))
		}
	}
	for i := len(m.best.Actions) - 2; i >= 0; i-- {
		if a := m.best.Actions; i+1 < len(a) && a[i].Kind == Tick && a[i+1].Kind == Advance {
			next := slices.Clone(a)
			next[i], next[i+1] = a[i+1], a[i]
			m.try(next)
		}
	}
	return len(m.best.Actions) < n
}

// lapse lets time pass in place of a resignation, or of a message that arrives
// a first time, and all that comes of it.
func (m *minimizer) lapse() bool {
	for i, x := range m.best.Actions {
		if x.Kind != Resign && x.Kind != Release && x.Kind != Duplicate {
			continue
		}
		next := m.without(i, i+1)
		if x.Kind == Duplicate {
			first, last := ends(next, x)
			if first == last {
				continue
			}
			next[first].Msg, next[last].Msg = model.Msg{Action: x.ID}, x.Msg
		}
		gone := map[int32]bool{x.ID: true}
		next = slices.DeleteFunc(next, func(a Action) bool {
			gone[a.ID] = gone[a.Msg.Action]
			return gone[a.ID]
		})
		for _, step := range m.stuff {
			if step.Kind != Advance || !m.paced(step.Rates) {
				continue
			}
			waits := slices.Clone(next)
			for len(waits)+1 < len(m.best.Actions) {
				step.ID = int32(len(m.best.Actions) + 1 + len(waits))
				if waits = slices.Insert(waits, i, step); m.try(waits) {
					return true
				}
			}
		}
	}
	return false
}

// ends are the first and the last that becomes of a message that was copied,
// and of its copy.
func ends(actions []Action, dup Action) (first, last int) {
	first, last = -1, -1
	for i, a := range actions {
		if (a.Kind == Deliver || a.Kind == Drop) && (a.Msg == dup.Msg || a.Msg == model.Msg{Action: dup.ID}) {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	return first, last
}

// end lets time pass instead of all that comes last, perhaps without another
// action, or at one rate throughout, or with some of it before a message
// arrives: a belief or a lease may end by itself.
func (m *minimizer) end() bool {
	n := len(m.best.Actions)
	for c := 1; c < n; c++ {
		for _, x := range m.stuff {
			if x.Kind != Advance {
				continue
			}
			x.ID = int32(n + 1)
			for i := range c + 1 {
				next := m.without(c, n)
				if i < c {
					next = slices.Delete(next, i, i+1)
				}
				if next = append(next, x); len(next) >= n {
					continue
				}
				if m.try(next) {
					return true
				}
				if even := atRates(next, x.Rates); !slices.Equal(even, next) && m.try(even) {
					return true
				}
			}
			for i, a := range m.best.Actions[:c] {
				late := slices.IndexFunc(m.best.Actions[i:c], func(a Action) bool { return a.Kind == Advance })
				if a.Kind != Deliver || late < 0 {
					continue
				}
				step := m.best.Actions[i+late]
				next := slices.Insert(slices.Delete(slices.Clone(m.best.Actions[:c]), i+late, i+late+1), i, step)
				if m.gains(append(next, x)) {
					return true
				}
			}
		}
	}
	return false
}

// atRates is the actions with time passing at those rates throughout.
func atRates(actions []Action, rates [model.MaxNodes]int32) []Action {
	actions = slices.Clone(actions)
	for i := range actions {
		if actions[i].Kind == Advance {
			actions[i].Rates = rates
		}
	}
	return actions
}

// waiting are the messages that may be in flight before action p.
func (m *minimizer) waiting(p int) (msgs []model.Msg) {
	for _, a := range m.best.Actions[:p] {
		if a.Kind == Deliver || a.Kind == Drop {
			msgs = slices.DeleteFunc(msgs, func(x model.Msg) bool { return x == a.Msg })
		}
		if sends[a.Kind] {
			msgs = append(msgs, model.Msg{Action: a.ID})
		}
	}
	return msgs
}

// sends are the kinds of actions that put a message into the network.
var sends = [kinds]bool{Tick: true, Deliver: true, Duplicate: true, Put: true, Resign: true, WorkEnd: true,
	Acquire: true, Renew: true, Release: true, Get: true, Write: true, Read: true, Fence: true}

// gather collects what a detour may add, but for what happens to messages:
// what clients do in any run, and what was done, whatever its numbers. What one
// client did any of them may do.
func (m *minimizer) gather() {
	for i := range m.best.Config.Clients {
		for _, k := range [...]Kind{Tick, Resign, Crash} {
			m.note(Action{Kind: k, Who: ClientNode(i)})
		}
	}
	for _, a := range m.best.Actions {
		if a.Msg != (model.Msg{}) || a.Kind == Calm {
			continue
		}
		a.ID, a.Note = 0, ""
		m.note(a)
		if i := int(a.Who) - int(firstClient); i >= 0 && i < m.best.Config.Clients {
			for k := range m.best.Config.Clients {
				a.Who = ClientNode(k)
				m.note(a)
			}
		}
	}
}

func (m *minimizer) note(a Action) {
	if !slices.ContainsFunc(m.stuff, func(b Action) bool {
		return a.Kind == b.Kind && a.Who == b.Who && a.Peer == b.Peer && a.As == b.As && a.Key == b.Key && a.Rates == b.Rates && (a.D < 0) == (b.D < 0)
	}) {
		m.stuff = append(m.stuff, a)
	}
}
