package script

import (
	"slices"
	"time"

	"fencepost/model"
	"fencepost/props/kit"
)

// minimizeRuns bounds what Minimize costs.
const minimizeRuns = 2_000

// Minimize shortens steps, which break rule, as long as what is left breaks it
// too, and then makes it plainer: fewer candidates, round durations, every
// holder's own token. Steps that break another rule or none come back as they
// are. It plays at most 2,000 scripts, each against a fresh store, and does the
// same every time.
//
// What is left breaks another rule in two cases, where that one says better
// what is wrong. A rule about restarts, deletions or renewals that prolong gives
// way to one that is broken without. And one about what a refusal says of the holder or the time
// left gives way to what follows from believing it, such as two holders at once.
//
// It is delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
// failure-inducing input", 2002) and the exchanges that deletion alone cannot
// find, such as one long passage of time for two with a renewal between them.
func Minimize(open Open, o kit.Options, steps []Step, rule model.Rule) []Step {
	m := minimizer{open: open, o: o, rule: rule, left: minimizeRuns}
	cut, ok := m.fails(steps)
	if !ok {
		return steps
	}
	m.minimize(cut)
	if detail(rule) {
		worse := minimizer{open: open, o: o, left: m.left, deaf: true}
		worse.o.Terse = true
		if cut, ok := worse.consequence(m.best); ok {
			worse.minimize(cut)
			if r := Run(open, o, worse.best); r.Breach != nil && r.Breach.Rule == worse.rule {
				return worse.best
			}
		}
	}
	return m.best
}

// detail reports whether r is about what a refusal says beside its reason.
func detail(r model.Rule) bool { return r == model.RuleRemaining || r == model.RuleNamesHolder }

// instead reports whether a script that breaks b is better than one that
// breaks m.rule.
func (m *minimizer) instead(b model.Rule, steps []Step) bool {
	if b == m.rule {
		return true
	}
	var needs Kind
	switch m.rule {
	case model.RuleRestartCounter, model.RuleRestartTenure, model.RuleRestartLapse, model.RuleRestartRelease, model.RuleRestartEnds:
		needs = Restart
	case model.RuleDeleteCounter, model.RuleDeleteFrees:
		needs = Delete
	case model.RuleRenewProlongs, model.RuleNeverShortens:
		needs = Renew
	default:
		return false
	}
	return !detail(b) && !slices.ContainsFunc(steps, func(s Step) bool { return s.Do == needs })
}

// consequence has somebody act on what the last answer of steps says, and the
// time pass until then: the steps of that, if they break a rule.
func (m *minimizer) consequence(steps []Step) ([]Step, bool) {
	p := m.play(steps)
	if p.breach != nil || len(p.lines) == 0 {
		return nil, false
	}
	last := p.lines[len(p.lines)-1]
	var as aims
	for i := range p.lines {
		as.learn(&p.lines[i])
	}
	a := as[last.Step.On]
	other := Who{1, 1}
	if a.holder == other { // whose own retry would be granted either way
		other = Who{2, 1}
	}
	told, due := time.Duration(last.Said.Remaining), a.until-last.At
	for _, d := range [...]time.Duration{told, told - 1, due, due - 1, 0} {
		cand := slices.Clone(steps)
		if d > 0 {
			cand = append(cand, Step{Do: Advance, D: d})
		}
		cand = append(cand, Step{Do: Acquire, Who: other, TTL: 10 * time.Second, On: last.Step.On})
		if b := m.play(cand).breach; b != nil && !detail(b.Rule) {
			m.rule = b.Rule
			return cand, true
		}
	}
	return nil, false
}

// minimize makes steps, which fail, the best there is.
func (m *minimizer) minimize(steps []Step) {
	m.best, m.cost = steps, costOf(steps)
	m.ddmin()
	for again := true; again; {
		again = false
		for _, pass := range [...]func() bool{m.merge, m.scale, m.rename, m.tokens, m.durations, m.drop, m.trade} {
			again = pass() || again
		}
	}
}

type minimizer struct {
	open Open
	o    kit.Options
	rule model.Rule
	left int  // runs
	deaf bool // to details: see player
	best []Step
	cost cost
}

// fails plays steps, and gives those that had an effect if they break the rule.
func (m *minimizer) fails(steps []Step) ([]Step, bool) {
	if m.left <= 0 {
		return nil, false
	}
	p := m.play(steps)
	if p.breach == nil {
		return nil, false
	}
	var out []Step
	for _, l := range p.lines {
		if !l.NoOp {
			out = append(out, l.Step)
		}
	}
	if !m.instead(p.breach.Rule, out) {
		return nil, false
	}
	m.rule = p.breach.Rule
	return out, true
}

func (m *minimizer) play(steps []Step) *player {
	m.left--
	p := newPlayer(m.open, m.o)
	defer p.lab.Close()
	p.deaf = m.deaf
	for _, s := range steps {
		if !p.play(s) {
			break
		}
	}
	return p
}

// cost is what to lower: steps first, then how odd they look.
type cost struct{ steps, odd int }

func (c cost) below(d cost) bool { return c.steps < d.steps || c.steps == d.steps && c.odd < d.odd }

func costOf(steps []Step) cost {
	c := cost{steps: len(steps)}
	var ttl time.Duration
	var seen []Who
	var high uint8 // of the nodes so far
	for i, s := range steps {
		if s.Do == Acquire {
			// Two who get the lease say more than one who gets it twice.
			if i == len(steps)-1 && slices.Contains(seen, s.Who) {
				c.odd += 2
			}
			seen = append(seen, s.Who)
		}
		c.odd += 8 * int(s.On)
		if s.Do.hasWho() {
			c.odd += whoCost(s.Who)
			if s.Who.Node > high+1 { // b comes in before a
				c.odd++
			}
			high = max(high, s.Who.Node)
		}
		if s.Do.hasToken() && s.Token != (Ref{Of: s.Who}) {
			c.odd += 3
			if s.Token.Of != (Who{}) {
				c.odd += whoCost(s.Token.Of) - 1
			}
			if s.Token.Plus != 0 {
				c.odd += 3
			}
		}
		if s.Do.hasTTL() {
			c.odd += durationCost(s.TTL)
			if ttl != 0 && ttl != s.TTL {
				c.odd += 8
			}
			ttl = s.TTL
		}
		if s.Do == Advance {
			c.odd += durationCost(s.D)
		}
	}
	return c
}

func whoCost(w Who) int { return int(w.Node) + 4*int(w.Seq) }

// round durations, the plainest first.
var round = [...]time.Duration{10 * time.Second, time.Second, 5 * time.Second, 9 * time.Second, 20 * time.Second, 1500 * time.Millisecond, time.Millisecond, 1}

func durationCost(d time.Duration) int {
	if i := slices.Index(round[:], d); i >= 0 {
		return i
	}
	return len(round) + len(d.String())
}

// try adopts cand if it breaks the rule and costs less than the best.
func (m *minimizer) try(cand []Step) bool {
	if !costOf(cand).below(m.cost) {
		return false
	}
	cut, ok := m.fails(cand)
	if ok {
		m.best, m.cost = cut, costOf(cut)
	}
	return ok
}

func (m *minimizer) ddmin() {
	for size := len(m.best) / 2; size > 0; size /= 2 {
		for again := true; again; {
			again = false
			// From the end, where what went before matters to nobody.
			for i := len(m.best) - 1 - size; i >= 0; i -= size {
				i = min(i, len(m.best)-size)
				if m.try(slices.Delete(slices.Clone(m.best), i, i+size)) {
					again = true
				}
			}
		}
	}
}

// drop deletes one step, or two, and lets time pass to elsewhere instead.
func (m *minimizer) drop() bool {
	for i := len(m.best) - 2; i >= 0; i-- {
		without := slices.Delete(slices.Clone(m.best), i, i+1)
		if m.try(without) || m.elsewhere(without) {
			return true
		}
		for j := i - 1; j >= 0; j-- {
			if m.try(slices.Delete(slices.Clone(without), j, j+1)) {
				return true
			}
		}
	}
	return false
}

// trade makes two steps one release by somebody: the shortest way to a lease
// that is free.
func (m *minimizer) trade() bool {
	for i := 0; i+2 < len(m.best); i++ {
		for _, who := range [...]Who{{1, 1}, {2, 1}} {
			cand := slices.Delete(slices.Clone(m.best), i, i+1)
			cand[i] = Step{Do: Release, Who: who, Token: Ref{Of: who}, On: m.best[i].On}
			if m.try(cand) {
				return true
			}
		}
	}
	return false
}

// elsewhere changes how long one passage of time is, or the token of one
// request, of steps that lack one.
func (m *minimizer) elsewhere(steps []Step) bool {
	if m.adjusted(steps) {
		return true
	}
	// Stores that round, to seconds or milliseconds, are right but for odd TTLs.
	for _, ttl := range [...]time.Duration{1500 * time.Millisecond, time.Second + 1} {
		odd := slices.Clone(steps)
		for i := range odd {
			if odd[i].Do.hasTTL() {
				odd[i].TTL = ttl
			}
		}
		if m.adjusted(odd) {
			return true
		}
	}
	return false
}

func (m *minimizer) adjusted(steps []Step) bool {
	for i, s := range steps {
		if s.Do.hasToken() {
			cand := slices.Clone(steps)
			cand[i].Token = Ref{Plus: 1}
			if m.try(cand) {
				return true
			}
		}
		if s.Do == Advance {
			for _, d := range m.passages() {
				cand := slices.Clone(steps)
				cand[i].D = d
				if m.try(cand) {
					return true
				}
			}
		}
	}
	return false
}

// merge makes one of two passages of time.
func (m *minimizer) merge() bool {
	for i, s := range m.best {
		if s.Do != Advance {
			continue
		}
		for j := i + 1; j < len(m.best); j++ {
			if m.best[j].Do != Advance {
				continue
			}
			for _, keep := range [...][2]int{{j, i}, {i, j}} {
				cand := slices.Clone(m.best)
				cand[keep[0]].D = later(cand[i].D, cand[j].D)
				if m.try(slices.Delete(cand, keep[1], keep[1]+1)) {
					return true
				}
			}
		}
	}
	return false
}

// scale gives other TTLs to all steps with one TTL, and lets time pass as it
// did in relation to it.
func (m *minimizer) scale() bool {
	for _, from := range m.ttls() {
		for _, to := range [...]time.Duration{10 * time.Second, time.Second, 1500 * time.Millisecond, time.Second + 1} {
			cand := slices.Clone(m.best)
			for i := range cand {
				s := &cand[i]
				switch {
				case s.Do.hasTTL() && s.TTL == from:
					s.TTL = to
				case s.Do == Advance && s.D > from/2 && s.D-from+to > 0:
					s.D += to - from
				}
			}
			if m.try(cand) {
				return true
			}
		}
	}
	return false
}

// ttls are those of the best, each once.
func (m *minimizer) ttls() []time.Duration {
	var ttls []time.Duration
	for _, s := range m.best {
		if s.Do.hasTTL() && !slices.Contains(ttls, s.TTL) {
			ttls = append(ttls, s.TTL)
		}
	}
	return ttls
}

// passages are durations that may matter to the best.
func (m *minimizer) passages() []time.Duration {
	out := slices.Clone(round[:])
	for _, t := range m.ttls() {
		for _, d := range [...]time.Duration{t, t - 1, t - time.Millisecond, t - time.Second, t + m.o.Late, t + m.o.LockDelay, t + m.o.LockDelay - 1} {
			if d > 0 && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// durations makes one duration plainer.
func (m *minimizer) durations() bool {
	any := false
	for i := 0; i < len(m.best); i++ {
		switch s := m.best[i]; {
		case s.Do == Advance:
			for _, d := range m.passages() {
				cand := slices.Clone(m.best)
				cand[i].D = d
				any = m.try(cand) || any
				if i >= len(m.best) {
					return true
				}
			}
		case s.Do.hasTTL():
			for _, d := range append(append(m.ttls(), 0), round[:]...) {
				cand := slices.Clone(m.best)
				cand[i].TTL = d
				any = m.try(cand) || any
				if i >= len(m.best) {
					return true
				}
			}
		}
	}
	return any
}

// rename lets candidates be others: the first one a, the next b, or fewer.
func (m *minimizer) rename() bool {
	var seen []Who
	for _, s := range m.best {
		for _, w := range [...]Who{s.Who, s.Token.Of} {
			if w.Node != 0 && !slices.Contains(seen, w) {
				seen = append(seen, w)
			}
		}
	}
	plain := [...]Who{{1, 1}, {2, 1}, {3, 1}, {1, 2}, {2, 2}, {1, 3}}
	for _, from := range seen {
		for _, to := range plain {
			if to == from {
				continue
			}
			if m.try(renamed(m.best, func(w Who) Who {
				if w == from {
					return to
				}
				return w
			})) || m.try(renamed(m.best, func(w Who) Who {
				switch w {
				case from:
					return to
				case to:
					return from
				}
				return w
			})) {
				return true
			}
		}
	}
	// Both nodes change places with all of their incarnations.
	for x := uint8(1); x <= 3; x++ {
		for y := x + 1; y <= 3; y++ {
			if m.try(renamed(m.best, func(w Who) Who {
				switch w.Node {
				case x:
					w.Node = y
				case y:
					w.Node = x
				}
				return w
			})) {
				return true
			}
		}
	}
	// One step is another's.
	for i, s := range m.best {
		if !s.Do.hasWho() {
			continue
		}
		for _, to := range plain[:3] {
			cand := slices.Clone(m.best)
			cand[i].Who = to
			if s.Token.Of == s.Who {
				cand[i].Token.Of = to
			}
			if m.try(cand) {
				return true
			}
		}
	}
	cand := slices.Clone(m.best)
	for i := range cand {
		cand[i].On = 0
	}
	return m.try(cand)
}

func renamed(steps []Step, name func(Who) Who) []Step {
	out := slices.Clone(steps)
	for i := range out {
		s := &out[i]
		s.Who = name(s.Who)
		s.Token.Of = name(s.Token.Of)
	}
	return out
}

// tokens has steps carry plainer ones.
func (m *minimizer) tokens() bool {
	for i, s := range m.best {
		if !s.Do.hasToken() {
			continue
		}
		refs := []Ref{{Of: s.Who}, {}}
		for _, l := range m.best {
			if l.Do == Acquire {
				refs = append(refs, Ref{Of: l.Who})
			}
		}
		for _, r := range refs {
			cand := slices.Clone(m.best)
			cand[i].Token = r
			if m.try(cand) {
				return true
			}
		}
	}
	return false
}
