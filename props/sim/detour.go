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
	if m.prompt() || m.end() {
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
	better := func(actions []Action) bool {
		if m.try(actions) {
			m.single()
			n, before := len(m.best.Actions), len(was.Actions)
			if n < before || n == before && advances(m.best.Actions) < advances(was.Actions) {
				return true
			}
			m.best = was
		}
		return false
	}
	for i := range xs {
		xs[i].ID = int32(len(was.Actions) + 1 + i)
	}
	if better(slices.Insert(slices.Clone(was.Actions), p, xs...)) {
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
				if id != 0 && better(instead) {
					return true
				}
			}
		}
	}
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

// prompt lets messages arrive as soon as they are sent, where they are not late
// for a reason: what happens meanwhile may then turn out to be needless.
func (m *minimizer) prompt() (shorter bool) {
	n := len(m.best.Actions)
	for i := 0; i < len(m.best.Actions); i++ {
		a := m.best.Actions[i]
		from := slices.IndexFunc(m.best.Actions, func(b Action) bool { return b.ID == a.Msg.Action })
		if a.Kind == Deliver && from >= 0 && from+1 < i {
			m.try(slices.Insert(slices.Delete(slices.Clone(m.best.Actions), i, i+1), from+1, a))
		}
	}
	return len(m.best.Actions) < n
}

// end lets time pass instead of all that comes last, perhaps without another
// action: a belief or a lease may end by itself.
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
				if len(next)+1 < n && m.try(append(next, x)) {
					return true
				}
			}
		}
	}
	return false
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
