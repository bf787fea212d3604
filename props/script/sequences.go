package script

import (
	"slices"
	"time"
)

// class is sequences in which the store as a whole meets with the same: time
// passes and it crashes at the same steps, by as much. They are played at once
// on one store, each on leases of its own, so that a passage or a restart, by
// far the dearest step, is one for all of them.
type class struct {
	// beats are the steps that are common to all; a zero Step is where each has
	// a request of its own.
	beats []Step
	at    time.Duration // when they end, since the beginning
	nodes []node
}

// node is a sequence that was played, and what the steps after it depend on.
type node struct {
	steps  []Step
	grants []issued
	last   uint64
	aims   aims
}

// extension is a sequence that was played and a step after it.
type extension struct {
	from *node
	step Step
}

func (x extension) steps() []Step {
	return append(x.from.steps[:len(x.from.steps):len(x.from.steps)], x.step)
}

// part is the extensions of a class that are of one class again: those by a
// request, or by one passage of time, or by a restart.
type part struct {
	beat Step
	of   []extension
}

// sequences explores a store that can only be asked, breadth-first: the first
// sequence that breaks a rule is a shortest one.
func (e *explorer) sequences() {
	defer e.series.Close()
	p := e.series.join(1)
	e.series.played = 0 // that one only looks
	letters := newAlphabet(p.opts)
	level := []class{{nodes: []node{{}}}}
	for depth := 1; depth <= e.opts.Depth; depth++ {
		var next []class
		for i := range level {
			for _, part := range level[i].extend(p, &letters) {
				c, ok := e.class(&level[i], part, depth < e.opts.Depth)
				if !ok {
					return
				}
				next = append(next, c)
			}
			level[i].nodes = nil // they may be many
		}
		level, e.x.Depth = next, depth
	}
	e.x.Bounded = "depth"
}

// extend finds what may follow the sequences of c. p is only looked at.
func (c *class) extend(p *player, letters *alphabet) []part {
	parts := make([]part, 1, 8) // the requests first
	for i := range c.nodes {
		n := &c.nodes[i]
		last := KindNone
		if len(n.steps) > 0 {
			last = n.steps[len(n.steps)-1].Do
		}
		p.at, p.leases[0].grants, p.leases[0].last = c.at, n.grants, n.last
		for _, s := range letters.steps(p, &n.aims, last) {
			at := 0
			if s.Do == Advance || s.Do == Restart {
				at = slices.IndexFunc(parts, func(p part) bool { return p.beat == s })
				if at < 0 {
					at = len(parts)
					parts = append(parts, part{beat: s})
				}
			}
			parts[at].of = append(parts[at].of, extension{n, s})
		}
	}
	if len(parts[0].of) == 0 {
		return parts[1:]
	}
	return parts
}

// class plays the extensions of one part, as many at once as a store may have,
// and reports whether none breaks a rule and no bound was met. keep says that
// longer ones follow.
func (e *explorer) class(from *class, p part, keep bool) (class, bool) {
	c := class{beats: append(slices.Clone(from.beats), p.beat)}
	own := 0 // steps that each sequence has to itself
	for _, s := range c.beats {
		if s.Do == KindNone {
			own++
		}
	}
	for left := p.of; len(left) > 0; {
		n := min(len(left), e.series.most)
		if e.opts.MaxCalls > 0 && own > 0 {
			// What cannot be played to its end is not begun.
			n = min(n, (e.opts.MaxCalls-e.x.Calls-(len(c.beats)-own))/own)
		}
		if n <= 0 {
			e.x.Bounded = "calls"
			return c, false
		}
		runs := e.together(&c, left[:n])
		if runs == nil {
			return c, false
		}
		for i, r := range runs {
			c.at = r.at
			if keep && !r.lines[len(r.lines)-1].NoOp {
				c.nodes = append(c.nodes, node{left[i].steps(), r.leases[0].grants, r.leases[0].last, r.aims})
			}
		}
		left = left[n:]
	}
	return c, true
}

// together plays extensions of one class on one store; nil if a rule was broken
// or a bound met.
func (e *explorer) together(c *class, of []extension) []*run {
	runs := make([]*run, len(of))
	steps := make([][]Step, len(of))
	for i, x := range of {
		runs[i] = &run{player: e.series.join(len(of) - i)}
		runs[i].lines = make([]Line, 0, len(c.beats))
		steps[i] = x.steps()
	}
	for i, beat := range c.beats {
		was := runs[0].now()
		for j, r := range runs {
			s := steps[j][i]
			ok := true
			if beat.Do != KindNone && j > 0 {
				r.share(s, was)
			} else {
				if !e.spend() {
					return nil
				}
				r.lab.Tell(r.stuck)
				ok = r.play(s)
			}
			r.aims.learn(&r.lines[i])
			if i == len(c.beats)-1 {
				e.x.Sequences++
				e.x.Transitions[s.Do]++
			}
			if !ok {
				e.convict(r, steps[j][:i+1])
				return nil
			}
		}
	}
	return runs
}

// convict takes down that r breaks a rule, as the steps do when they are played
// alone, or else as it is.
func (e *explorer) convict(r *run, steps []Step) {
	found := e.series.told(r.player)
	if found.Others == 0 {
		e.x.Failure = &found
		return
	}
	if again := Run(e.open, e.o, steps); again.Breach != nil {
		e.x.Failure = &again
		return
	}
	e.suspect = &found
}
