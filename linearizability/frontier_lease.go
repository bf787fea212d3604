package linearizability

import (
	"math"

	"fencepost/model"
)

// strayOwner stands for any owner of whom the rest of the history does not
// speak, otherStray for another one.
const (
	strayOwner = math.MaxInt32 - iota
	otherStray
)

// forward is what a frontier may know of the lease. Its states are sets of one
// timed state each.
func (c *leaseCompiler) forward() forward {
	only := func(s any) model.TimedState { return s.(*leaseState).set[0] }
	f := forward{
		parts: func(state any) []any {
			s := state.(*leaseState)
			if len(s.set) == 1 {
				return []any{s}
			}
			parts := make([]any, len(s.set))
			for i := range s.set {
				parts[i] = &leaseState{s.set[i : i+1 : i+1]}
			}
			return parts
		},
		covers: func(a, b any) bool { return only(a).Covers(only(b)) },
		kin:    func(s any) uint64 { return only(s).Kin() },
		past:   func(s any, a *action) bool { return c.params.Past(only(s), c.timed[a.timed]) },
	}
	l := c.lookahead()
	f.by = func(s any, until int64) bool { return only(s).By(until) }
	f.idle = func(s any, a *action) bool { return l.idle(only(s), c.timed[a.timed]) }
	f.may = func(before, after any, a *action) bool { return l.may(only(before), only(after), a, c.timed[a.timed]) }
	if l.late {
		f.late = func(s any, a *action) bool { return l.prolongs(only(s), c.timed[a.timed]) }
		f.hindsight = func(state any, a *action) (any, bool) {
			set := c.params.AppendLate(nil, only(state), c.timed[a.timed])
			return &leaseState{set}, len(set) > 0
		}
		f.cuts = func(state any, a *action) bool { return l.cuts(only(state), a, c.timed[a.timed]) }
	}
	// Where a restart leaves open whether a lapse is on record, but the owner may
	// renew after it, it is not known who holds the lease that a stray asked for.
	if c.params.NoRestarts || !c.params.RenewAfterLapse {
		f.strays = l.strays(c.timed)
	}
	return f
}

// strays are the acquires of unknown outcome by owners who are not heard of
// again.
func (l *leaseLookahead) strays(timed []model.TimedOp) *strayRules {
	acquire := func(owner int32, ttl int64) model.TimedOp {
		return model.TimedOp{
			Kind: model.TimedAcquire, Outcome: model.TimedUnknown, Owner: owner, TTL: ttl, Call: math.MinInt64, Return: Unbounded,
		}
	}
	only := func(s any) model.TimedState { return s.(*leaseState).set[0] }
	unknown := &action{unknown: true}
	return &strayRules{
		of: func(a *action) (int32, int64, bool) {
			op := timed[a.timed]
			return op.Owner, op.TTL, op.Kind == model.TimedAcquire
		},
		silent: func(owner int32) int64 { return l.silent[owner] },
		before: func(s any, a *action) bool {
			op := timed[a.timed]
			if l.params.Anchor == model.AnchorGrant {
				return !only(s).By(op.Call)
			}
			// Its TTL may run from the call on; but if it ran out before the grant,
			// there was none.
			held := l.params.Longest(op.TTL)
			return held < Unbounded-max(op.Call, 0) && !only(s).By(op.Call+held)
		},
		holder: func(s any) int32 { return only(s).Holder() },
		grant: func(s any, ttl int64) (any, bool) {
			state := s.(*leaseState)
			next := state.step(l.params, acquire(otherStray, ttl))
			if next == nil {
				return nil, false
			}
			for i, t := range next.set {
				next.set[i] = t.Renamed(otherStray, strayOwner)
			}
			return next, true
		},
		again: func(s any, ttl int64) (any, bool) { // where it leads to a new tenure, so does grant
			next := s.(*leaseState).step(l.params, acquire(strayOwner, ttl))
			return next, next != nil
		},
		may: func(before, after any, ttl int64) bool {
			return l.may(only(before), only(after), unknown, acquire(strayOwner, ttl))
		},
		idle: func(s any, ttl int64) bool { return l.idle(only(s), acquire(strayOwner, ttl)) },
		late: func(s any, ttl int64) bool { return l.prolongs(only(s), acquire(strayOwner, ttl)) },
		hindsight: func(s any, ttl int64) (any, bool) {
			set := l.params.AppendLate(nil, only(s), acquire(strayOwner, ttl))
			return &leaseState{set}, len(set) > 0
		},
	}
}

// leaseLookahead is what the whole history tells of the operations of unknown
// outcome.
type leaseLookahead struct {
	params  model.TimedParams
	relaxed model.TimedParams // the same, of a lease that need not lapse
	owner   map[uint64]int32  // by token, who was shown to have it
	// late says that no renewal needs be placed before its effect is needed,
	// but those of owners who ask for TTLs that differ.
	late bool
	ttl  map[int32]int64 // by owner, the TTL that all his operations ask for; 0 if they differ
	// silent is by owner the place from which on nothing speaks of him but what
	// he called before and whose outcome is unknown.
	silent map[int32]int64
}

func (c *leaseCompiler) lookahead() *leaseLookahead {
	l := &leaseLookahead{params: c.params, relaxed: c.params, owner: make(map[uint64]int32), ttl: make(map[int32]int64), silent: make(map[int32]int64)}
	l.relaxed.Late = Unbounded
	l.ttl[strayOwner] = 1 // whichever it is, a stray has only one
	// Where operations of unknown outcome stand in the order is known by their
	// instants alone: so instants must order the events as their places do.
	l.late = c.params.NoRestarts && c.params.Anchor == model.AnchorGrant && !c.params.RenewAfterLapse &&
		c.meta.Eps == 0 && !c.meta.Journal
	for i := range c.actions {
		a := &c.actions[i]
		op := c.timed[a.timed]
		if op.Kind == model.TimedAcquire || op.Kind == model.TimedRenew {
			if ttl, seen := l.ttl[op.Owner]; seen && ttl != op.TTL {
				l.ttl[op.Owner] = 0
			} else {
				l.ttl[op.Owner] = op.TTL
			}
		}
		until := a.ret
		if a.unknown {
			until = a.call
		}
		l.silent[op.Owner] = max(l.silent[op.Owner], until)
		l.silent[op.Holder] = max(l.silent[op.Holder], until)
		if a.unknown || op.Outcome != model.TimedOK {
			continue
		}
		switch op.Kind {
		case model.TimedAcquire, model.TimedRenew, model.TimedRelease:
			l.owner[op.Token] = op.Owner
		case model.TimedGet:
			if op.HolderToken != 0 {
				l.owner[op.HolderToken] = op.Holder
			}
		}
	}
	return l
}

// idle reports that op, of unknown outcome, can do nothing in s but prolong its
// tenure, because the next token is another's.
func (l *leaseLookahead) idle(s model.TimedState, op model.TimedOp) bool {
	switch lo, hi := s.LastToken(); {
	case op.Kind == model.TimedRenew:
		return l.isLate(op)
	case l.params.Tokens != model.TokensNext || lo < hi || !l.isLate(op):
		return false
	default:
		owner, shown := l.owner[lo+1]
		return shown && owner != op.Owner
	}
}

// may reports whether an operation of unknown outcome can have led to a state,
// as far as its tokens go. A token has one owner.
func (l *leaseLookahead) may(before, after model.TimedState, a *action, op model.TimedOp) bool {
	if op.Kind != model.TimedAcquire || l.params.Tokens == model.TokensNone {
		return true
	}
	lo, hi := after.LastToken()
	if was, _ := before.LastToken(); lo == was {
		return !a.unknown || !l.isLate(op) // the tenure that ran already
	}
	owner, shown := l.owner[lo]
	return lo < hi || !shown || owner == op.Owner
}

// isLate reports whether op, of unknown outcome, may prolong a tenure in
// hindsight.
func (l *leaseLookahead) isLate(op model.TimedOp) bool {
	if !l.late || l.ttl[op.Owner] == 0 {
		return false
	}
	return op.Kind == model.TimedRenew || op.Kind == model.TimedAcquire && l.params.Tokens != model.TokensNone
}

// prolongs reports whether op, of unknown outcome, may prolong the tenure of s.
func (l *leaseLookahead) prolongs(s model.TimedState, op model.TimedOp) bool {
	return l.isLate(op) && s.Holds(op.Owner)
}

// cuts reports whether op needs the tenure of s to have lasted until some
// instants that s leaves open, or longer: where a lease that never lapses makes
// no difference to op, neither does a renewal before it.
func (l *leaseLookahead) cuts(s model.TimedState, a *action, op model.TimedOp) bool {
	if a.unknown && (op.Kind != model.TimedRelease || l.params.LockDelay == 0) {
		return false // the tenure is over by a lapse as well as by a release
	}
	strict, relaxed := leaseState{l.params.Step(s, op)}, leaseState{l.relaxed.Step(s, op)}
	return !strict.equal(&relaxed)
}
