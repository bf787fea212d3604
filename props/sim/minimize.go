package sim

import (
	"slices"
	"time"

	"fencepost/model"
)

// Fails runs a schedule and reports whether it still fails in the way that
// matters, and after how many of its actions.
type Fails func(*Schedule) (applied int, fails bool)

// FailsOn is the Fails of an invariant that the monitor or lockstep judges:
// the first event that breaks anything must break that one. All calls share
// one World, so they must not be concurrent. As with [FailsBy], nobody may pose
// as a live client.
func FailsOn(subject Subject, v model.Invariant) Fails {
	opts := Options{Monitor: true, Lockstep: v == model.Lockstep}
	w := new(World)
	var honest honesty
	return func(s *Schedule) (int, bool) {
		w.begin(newSetup(s.Config, subject, opts))
		applied := s.apply(w)
		return applied, w.violated.Has(v) && honest.keeps(&w.counts)
	}
}

// FailsBy is the Fails of an invariant as run judges it. Deletions can turn a
// harmless raw request into one in the name of a live client, and what follows
// from that is no fault of the subject. So a schedule with any such request
// (see [Counts].Impersonated) does not count, unless the first one asked about has
// some too. The first must be the one to minimise, as [Minimize] does it.
func FailsBy(run func(*Schedule) Result, v model.Invariant) Fails {
	var honest honesty
	return func(s *Schedule) (int, bool) {
		r := run(s)
		return r.Applied, r.Violated.Has(v) && honest.keeps(&r.Counts)
	}
}

// honesty remembers of the first run whether anybody posed as a live client.
type honesty struct{ asked, posed bool }

// keeps reports whether a run is as honest as the first.
func (h *honesty) keeps(c *Counts) bool {
	if !h.asked {
		h.asked, h.posed = true, c.Impersonated > 0
	}
	return h.posed || c.Impersonated == 0
}

// Minimize shortens a failing schedule at the level of actions while fails
// holds, and then makes what is left plainer: fewer clients, no faults that
// play no part, round durations. The result is renumbered. A schedule that
// does not fail is returned as it is.
//
// The steps are those of delta debugging (Zeller and Hildebrandt, "Simplifying
// and isolating failure-inducing input", 2002) and, beyond it, the ones that
// trade one action for another, which deletion alone cannot find: merging
// passages of time, one request for another's message, one client for another.
// Where neither gets any further, something is added that lets more go. Random
// failures of the planted bugs mostly come to the length that exploring every
// interleaving shows to be the shortest.
//
// It runs the schedule some thousand times.
func Minimize(s *Schedule, fails Fails) *Schedule {
	m := minimizer{best: *s, fails: fails}
	m.best.Actions = slices.Clone(s.Actions)
	applied, ok := fails(&m.best)
	if !ok {
		return s
	}
	m.best.Actions = m.best.Actions[:applied]
	m.gather()
	m.ddmin()
	m.reduce()
	for m.plainer() || m.detour() {
		m.reduce()
	}
	m.best.Renumber()
	return &m.best
}

// reduce deletes and trades until neither makes it shorter.
func (m *minimizer) reduce() {
	for again := true; again; {
		again = false
		for _, pass := range [...]func() bool{m.single, m.merge, m.original, m.answer, m.reuse, m.wait, m.arrive, m.drop, m.lower, m.pairs, m.retarget, m.stead} {
			if pass() {
				again = true
			}
		}
	}
}

type minimizer struct {
	best  Schedule
	fails Fails
	buf   []Action
	stuff []Action // that a detour may add
}

// try adopts the actions if the schedule fails with them. They may alias buf.
func (m *minimizer) try(actions []Action) bool {
	cand := m.best
	cand.Actions = actions
	applied, ok := m.fails(&cand)
	if ok {
		m.best.Actions = slices.Clone(actions[:applied])
	}
	return ok
}

// without is the actions but for [i, j), in a buffer that the next call reuses.
func (m *minimizer) without(i, j int) []Action {
	m.buf = append(append(m.buf[:0], m.best.Actions[:i]...), m.best.Actions[j:]...)
	return m.buf
}

// ddmin deletes ever smaller runs of actions.
func (m *minimizer) ddmin() {
	for size := len(m.best.Actions) / 2; size >= 1; size /= 2 {
		for end := len(m.best.Actions); end > 0; {
			end = min(end, len(m.best.Actions))
			m.try(m.without(max(end-size, 0), end))
			end -= size
		}
	}
}

func (m *minimizer) single() bool { return m.singly(nil) }

// singly deletes one action after the other, or until was is left.
func (m *minimizer) singly(was []Action) (changed bool) {
	for i := len(m.best.Actions) - 1; i >= 0; i-- {
		if i < len(m.best.Actions) && m.try(m.without(i, i+1)) {
			if changed = true; slices.Equal(m.best.Actions, was) {
				break
			}
		}
	}
	return changed
}

// merge adds one passage of time to another, anywhere, and deletes it; and
// raises one while it deletes another action.
func (m *minimizer) merge() (changed bool) {
	for i := 0; i < len(m.best.Actions); i++ {
		for j := 0; j < len(m.best.Actions); j++ {
			a := m.best.Actions
			if i >= len(a) || i == j || a[i].Kind != Advance {
				continue
			}
			raises := []time.Duration{m.best.Config.Lease.TTL, m.best.Config.Lease.RenewAfter()}
			if a[j].Kind == Advance {
				raises = []time.Duration{a[j].D}
			}
			for _, by := range raises {
				next := m.without(j, j+1)
				k := i
				if j < i {
					k--
				}
				if next[k].D += by; next[k].D <= maxAdvance && m.try(next) {
					changed = true
					break
				}
			}
		}
	}
	return changed
}

// reuse deletes an action that sent something and lets the messages of another
// stand for its own.
func (m *minimizer) reuse() (changed bool) {
	for j := len(m.best.Actions) - 1; j >= 0; j-- {
		for i := 0; i < len(m.best.Actions) && j < len(m.best.Actions); i++ {
			from, to := m.best.Actions[j].ID, m.best.Actions[i].ID
			next := m.without(j, j+1)
			if i != j && rename(next, from, to) && m.try(next) {
				changed = true
				break
			}
		}
	}
	return changed
}

// original deletes a duplication, and the loss of the message if there was one,
// and lets the message itself stand for its copy.
func (m *minimizer) original() (changed bool) {
	for j := len(m.best.Actions) - 1; j >= 0; j-- {
		if j >= len(m.best.Actions) || m.best.Actions[j].Kind != Duplicate {
			continue
		}
		dup := m.best.Actions[j]
		next := m.without(j, j+1)
		for k := range next {
			if next[k].Msg.Action == dup.ID {
				next[k].Msg = dup.Msg
			}
		}
		kept := slices.DeleteFunc(slices.Clone(next), func(a Action) bool { return a.Kind == Drop && a.Msg == dup.Msg })
		changed = m.try(next) || m.try(kept) || changed
	}
	return changed
}

// answer copies the answer to a message, rather than the message to have it
// answered twice.
func (m *minimizer) answer() (changed bool) {
	for j := len(m.best.Actions) - 1; j >= 0; j-- {
		if j >= len(m.best.Actions) || m.best.Actions[j].Kind != Duplicate {
			continue
		}
		dup := m.best.Actions[j]
		next := m.without(j, j+1)
		first, last := ends(next, dup)
		if first == last {
			continue
		}
		rename(next, next[last].ID, dup.ID)
		next = slices.Delete(next, last, last+1)
		next[first].Msg, dup.Msg = dup.Msg, model.Msg{Action: next[first].ID}
		changed = m.try(slices.Insert(next, first+1, dup)) || changed
	}
	return changed
}

// wait lets a tenure lapse that was given up, and deletes another action, such
// as the arrival of the release.
func (m *minimizer) wait() (changed bool) {
	for i := 0; i < len(m.best.Actions); i++ {
		for j := 0; j < len(m.best.Actions); j++ {
			a := m.best.Actions
			if i >= len(a) || i == j || a[i].Kind != Resign && a[i].Kind != Release {
				continue
			}
			next := m.without(j, j+1)
			k := i
			if j < i {
				k--
			}
			next[k] = Action{ID: a[i].ID, Kind: Advance, D: m.best.Config.Lease.TTL}
			changed = next[k].D <= maxAdvance && m.try(next) || changed
		}
	}
	return changed
}

// arrive lets one message arrive where all did, in a calm.
func (m *minimizer) arrive() (changed bool) {
	for i := range m.best.Actions {
		if m.best.Actions[i].Kind != Calm {
			continue
		}
		for _, from := range m.best.Actions[:i] {
			for n := range int32(2) {
				next := slices.Clone(m.best.Actions)
				next[i] = Action{ID: next[i].ID, Kind: Deliver, Msg: model.Msg{Action: from.ID, N: n}}
				if m.try(next) {
					return true
				}
			}
		}
	}
	return false
}

// drop loses a message outright that a deletion alone cannot lose: what made
// its delivery fail can then go.
func (m *minimizer) drop() (changed bool) {
	for i := 0; i < len(m.best.Actions); i++ {
		for j := 0; j < len(m.best.Actions); j++ {
			if i >= len(m.best.Actions) || i == j || m.best.Actions[i].Kind != Deliver {
				continue
			}
			next := m.without(j, j+1)
			k := i
			if j < i {
				k--
			}
			next[k].Kind = Drop
			changed = m.try(next) || changed
		}
	}
	return changed
}

// lower takes one off the tokens that raw requests name, from some token on,
// and deletes what the one ownership less takes: up to four actions in a row.
func (m *minimizer) lower() (changed bool) {
	for t := uint64(1); t <= m.highest(); t++ {
		for n := 4; n >= 1; n-- {
			for i := 0; i+n <= len(m.best.Actions); i++ {
				next := m.without(i, i+n)
				used := false
				for k := range next {
					if next[k].Token >= t {
						next[k].Token--
						used = true
					}
				}
				if used && m.try(next) {
					changed = true
					i--
				}
			}
		}
	}
	return changed
}

func (m *minimizer) highest() (t uint64) {
	for i := range m.best.Actions {
		t = max(t, m.best.Actions[i].Token)
	}
	return min(t, 64)
}

// pairs deletes two actions that only together can go.
func (m *minimizer) pairs() (changed bool) {
	for i := 0; i < len(m.best.Actions); i++ {
		for j := i + 1; j < len(m.best.Actions); j++ {
			next := m.without(j, j+1)
			next = append(next[:i], next[i+1:]...)
			if m.try(next) {
				changed = true
				j = i
			}
		}
	}
	return changed
}

// retarget gives what one client does from some action on to another, if that
// allows a deletion.
func (m *minimizer) retarget() (changed bool) {
	clients := m.best.Config.Clients
	for from := range clients {
		for to := range clients {
			for p := 0; p < len(m.best.Actions); p++ {
				if from != to && m.best.Actions[p].Who == ClientNode(from) && m.takeOver(p, ClientNode(from), ClientNode(to)) {
					changed = true
				}
			}
		}
	}
	return changed
}

func (m *minimizer) takeOver(p int, from, to model.Node) bool {
	moved := slices.Clone(m.best.Actions)
	for k := p; k < len(moved); k++ {
		if moved[k].Who == from {
			moved[k].Who = to
		}
	}
	for k := range moved {
		m.buf = append(append(m.buf[:0], moved[:k]...), moved[k+1:]...)
		if m.try(m.buf) {
			return true
		}
	}
	return false
}

// stead lets a raw party write in a client's stead, under a token that it just
// names, and deletes what made that client the leader. A write is as good a
// witness against a storage whoever sends it; where it matters who did, the
// schedule does not fail any more.
func (m *minimizer) stead() (changed bool) {
	first := max(m.best.Config.FirstToken, 1)
	for i := len(m.best.Actions) - 1; i >= 0; i-- {
		for token := first; token < first+4; token++ {
			if i >= len(m.best.Actions) || m.best.Actions[i].Kind != Put {
				break
			}
			saved := m.best
			next := slices.Clone(m.best.Actions)
			next[i] = Action{ID: next[i].ID, Kind: Write, Who: RawNode(0), Token: token, Key: next[i].Key, Value: next[i].Value}
			if m.try(next) && m.single() {
				changed = true
			} else {
				m.best = saved
			}
		}
	}
	return changed
}
