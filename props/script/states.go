package script

import (
	"encoding/binary"
	"slices"
	"time"

	"fencepost/model"
	"fencepost/props/kit"
)

// state is a store between two steps, with those who ask it and the contract.
type state struct {
	snapshot []byte
	at       time.Duration
	lease    leaseState
	aims     aims

	parent int  // where it was first reached from, -1 for the first
	step   Step // by which
}

// key is what tells states apart: everything in them but where they come from.
// Instants in it are since the beginning, so that states at different instants
// differ even where nothing else does.
type key struct {
	snapshot, grants string
	at               time.Duration
	last             uint64
	contract         model.Contract
	aim              aim
}

func (s *state) key() key {
	grants := make([]byte, 0, 32)
	for _, g := range s.lease.grants {
		grants = binary.LittleEndian.AppendUint64(append(grants, g.who.Node, g.who.Seq), g.token)
	}
	return key{string(s.snapshot), string(grants), s.at, s.lease.last, s.lease.contract, s.aims[0]}
}

// states explores a store that can be put back, breadth-first: each state once.
func (e *explorer) states(p *player, store kit.Snapshotter) {
	x := newAlphabet(p.opts)
	p.logical = true
	r := run{player: p}
	take := func(parent int, s Step) state {
		l := p.leases[0]
		l.grants = slices.Clone(l.grants)
		var snapshot []byte
		p.lab.Within("Snapshot", func() { snapshot = store.Snapshot() })
		return state{snapshot, p.at, l, r.aims, parent, s}
	}
	all := []state{take(-1, Step{})}
	seen := map[key]struct{}{all[0].key(): {}}
	e.x.States = 1
	for depth, from := 0, 0; depth < e.opts.Depth; depth++ {
		for end := len(all); from < end; from++ {
			now := &all[from]
			p.at, p.leases[0], r.aims = now.at, now.lease, now.aims
			for _, s := range slices.Clone(x.steps(p, &r.aims, KindNone)) {
				if !e.spend() {
					return
				}
				now = &all[from] // which may have moved
				p.lab.Within("Restore", func() { store.Restore(now.snapshot) })
				p.at, p.leases[0], r.aims, p.lines = now.at, now.lease, now.aims, p.lines[:0]
				p.leases[0].grants = slices.Clone(now.lease.grants)
				ok := r.step(s)
				e.x.Transitions[s.Do]++
				if !ok {
					e.confirm(append(pathTo(all, from), s))
					return
				}
				if s.Do == Restart { // another process
					store = p.lab.Thing().(kit.Snapshotter)
				}
				next := take(from, s)
				if k := next.key(); p.lines[0].NoOp {
					continue
				} else if _, ok := seen[k]; !ok {
					seen[k] = struct{}{}
					all = append(all, next)
				}
			}
			e.x.States = len(all)
		}
		e.x.Depth = depth + 1
	}
	e.x.Bounded = "depth"
}

func pathTo(all []state, i int) []Step {
	var path []Step
	for ; all[i].parent >= 0; i = all[i].parent {
		path = append(path, all[i].step)
	}
	slices.Reverse(path)
	return path
}

// confirm plays a path that breaks a rule from the beginning.
func (e *explorer) confirm(path []Step) {
	if r := Run(e.open, e.o, path); r.Breach != nil {
		e.x.Failure = &r
	} else {
		e.x.Unfaithful = path
	}
}
