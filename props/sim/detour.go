package sim

import (
	"slices"

	"fencepost/model"
)

// detour adds an action, or a crash with the restart after it, and keeps it if
// more can go than was added. Nothing is done that the schedule as it was given
// did not do to somebody: who minimises a failure without crashes need not
// wonder about crashes.
func (m *minimizer) detour() (changed bool) {
	m.best.Renumber() // so that the ids after the last are free
	if m.prompt() || m.end() {
		return true
	}
	for p := range m.best.Actions {
		for _, x := range m.stuff {
			if x.Kind == Advance && x.Rates != ([model.MaxNodes]int32{}) && !slices.ContainsFunc(m.best.Actions, func(a Action) bool { return a.Rates == x.Rates }) {
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
			case Resign:
				n := int32(len(m.best.Actions))
				if m.around(p, x, Action{Kind: Deliver, Msg: model.Msg{Action: n + 1}}) {
					return true
				}
				for _, msg := range m.waiting(p) {
					if m.around(p, Action{Kind: Deliver, Msg: msg}, x, Action{Kind: Deliver, Msg: model.Msg{Action: n + 2}}) {
						return true
					}
				}
			}
		}
		for _, msg := range m.waiting(p) {
			for _, k := range [...]Kind{Deliver, Drop, Duplicate} {
				if m.around(p, Action{Kind: k, Msg: msg}) {
					return true
				}
			}
		}
	}
	return false
}

// around adds xs before action p, and reports whether that made it shorter. If
// not, the message that xs sends may still stand for another.
func (m *minimizer) around(p int, xs ...Action) bool {
	saved := m.best
	shorter := func(actions []Action) bool {
		if m.try(actions) {
			m.single()
		}
		if n := len(m.best.Actions) - len(saved.Actions); n < 0 || n == 0 && advances(m.best.Actions) < advances(saved.Actions) {
			return true
		}
		m.best = saved
		return false
	}
	xs = slices.Clone(xs)
	for i := range xs {
		xs[i].ID = int32(len(saved.Actions) + 1 + i)
	}
	if shorter(slices.Insert(slices.Clone(saved.Actions), p, xs...)) {
		return true
	}
	if len(xs) > 1 || !sends[xs[0].Kind] {
		return false
	}
	for j := range saved.Actions {
		instead := slices.Clone(saved.Actions)
		if named := rename(instead, instead[j].ID, xs[0].ID); !named {
			continue
		}
		old := instead[j]
		instead = slices.Insert(instead, p, xs[0])
		instead = slices.DeleteFunc(instead, func(a Action) bool { return a.ID == old.ID })
		if shorter(instead) {
			return true
		}
		// And whatever was only there for the old one to be sent.
		instead = slices.DeleteFunc(instead, func(a Action) bool { return a.ID == old.Msg.Action })
		if shorter(instead) {
			return true
		}
	}
	return false
}

func advances(actions []Action) (n int) {
	for i := range actions {
		if actions[i].Kind == Advance {
			n++
		}
	}
	return n
}

// end lets time pass instead of all that comes last, and of another action: it
// may be over by itself.
func (m *minimizer) end() bool {
	for c := 1; c < len(m.best.Actions); c++ {
		for _, x := range m.stuff {
			if x.Kind != Advance {
				continue
			}
			x.ID = int32(len(m.best.Actions) + 1)
			for i := range c + 1 {
				next := m.without(c, len(m.best.Actions))
				if i < c {
					next = slices.Delete(next, i, i+1)
				}
				if len(next)+1 < len(m.best.Actions) && m.try(append(next, x)) {
					return true
				}
			}
		}
	}
	return false
}

// prompt lets messages arrive as soon as they are sent, where it makes no
// difference, for what then turns out to be needless.
func (m *minimizer) prompt() (shorter bool) {
	n := len(m.best.Actions)
	for i := 0; i < len(m.best.Actions); i++ {
		a := m.best.Actions[i]
		from := slices.IndexFunc(m.best.Actions, func(b Action) bool { return b.ID == a.Msg.Action })
		if a.Kind != Deliver || from < 0 || from+1 >= i {
			continue
		}
		m.try(slices.Insert(slices.Delete(slices.Clone(m.best.Actions), i, i+1), from+1, a))
	}
	return len(m.best.Actions) < n
}

// rename lets the messages of action to stand for those of from, and reports
// whether there was any.
func rename(actions []Action, from, to int32) (named bool) {
	for k := range actions {
		if actions[k].Msg.Action == from {
			actions[k].Msg.Action, named = to, true
		}
	}
	return named
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

// gather notes what was done, one action for each kind and party, whatever its
// numbers. What one client did any of them may do, and each may ask, resign,
// crash and come back in any run.
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
