package model

import "math/rand/v2"

// timedRandomParams are parameters of which each is often at its plainest, so
// that histories also meet their features one at a time.
func timedRandomParams(r *rand.Rand) TimedParams {
	one := func(in int) bool { return r.IntN(in) == 0 }
	p := TimedParams{First: uint64(r.IntN(3))}
	if !one(3) {
		p.DriftPPB = []int64{100_000_000, 200_000_000, 333_000_000, 37_000_000}[r.IntN(4)]
	}
	if one(4) {
		p.Early = 1 + r.Int64N(2)
	}
	if one(3) {
		p.Late = 1 + r.Int64N(3)
	}
	if one(20) {
		p.Late = Unbounded
	}
	switch r.IntN(6) {
	case 0:
		p.Tokens, p.First = TokensNone, 0
	case 1:
		p.Tokens = TokensRising
	}
	if one(4) {
		p.Anchor = AnchorCall
	}
	if one(3) {
		p.LockDelay = 1 + r.Int64N(6)
	}
	p.RenewAfterLapse = one(7)
	p.NoRestarts = one(2)
	return p
}

// timedTheme makes one corner of the specification busier than chance would.
type timedTheme struct {
	kinds   []TimedKind
	lost    int   // one answer in so many is
	waiting int64 // acquires are called so much earlier
	guess   int   // one token in so many is a guess
	ttls    int   // one TTL in so many differs
	alone   bool  // one owner asks for nearly everything
}

var timedThemes = []struct {
	timedTheme
	params func(r *rand.Rand, p *TimedParams)
}{
	{timedTheme{kinds: []TimedKind{TimedAcquire, TimedAcquire, TimedAcquire, TimedAcquire, TimedRenew, TimedRenew, TimedRelease,
		TimedGet, TimedGet, TimedWrite, TimedRestart, TimedDelete}, lost: 6, guess: 10, ttls: 3},
		func(*rand.Rand, *TimedParams) {}},
	{timedTheme{kinds: []TimedKind{TimedAcquire, TimedAcquire, TimedRenew, TimedGet}, lost: 10, waiting: 12, guess: 30, ttls: 2},
		func(r *rand.Rand, p *TimedParams) { p.Anchor, p.Late = AnchorCall, r.Int64N(2) }},
	{timedTheme{kinds: []TimedKind{TimedAcquire, TimedAcquire, TimedRenew, TimedGet, TimedRestart}, lost: 2, guess: 10, ttls: 3},
		func(r *rand.Rand, p *TimedParams) { p.LockDelay, p.NoRestarts = 8*r.Int64N(2), false }},
	{timedTheme{kinds: []TimedKind{TimedAcquire, TimedAcquire, TimedRenew, TimedWrite, TimedGet}, lost: 3, guess: 2, ttls: 5, alone: true},
		func(r *rand.Rand, p *TimedParams) { p.Tokens, p.First = TokenRule(r.IntN(2)), 0 }},
	{timedTheme{kinds: []TimedKind{TimedAcquire, TimedRenew, TimedRenew, TimedGet}, lost: 10, guess: 30, ttls: 1, alone: true},
		func(r *rand.Rand, p *TimedParams) { p.Late, p.LockDelay = r.Int64N(2), 2*r.Int64N(2) }},
	{timedTheme{kinds: []TimedKind{TimedAcquire, TimedAcquire, TimedRenew, TimedGet}, lost: 10, guess: 30, ttls: 1},
		func(r *rand.Rand, p *TimedParams) { p.Early, p.LockDelay = 5, 2*r.Int64N(2) }},
}

// timedStore is a correct store, written for one recorder's time 0 to 200 and
// a clock that drifts at will, of which reading is the value at each tick.
type timedStore struct {
	TimedParams
	r       *rand.Rand
	reading [400]int64
	second  int64 // one tick at the nominal rate
	ttl     int64

	token   uint64
	holder  int32
	running bool  // not known to have lapsed
	known   bool  // known to have lapsed
	until   int64 // end of the TTL, or the instant of a lapse known before a restart
	late    int64 // the store acts on its clock so many ticks late
	largest int64
	tokens  [4]uint64 // last granted to each owner
}

func newTimedStore(r *rand.Rand, p TimedParams) *timedStore {
	num, den := p.DriftPPB/1_000_000, int64(1000)
	s := &timedStore{TimedParams: p, r: r, second: den, ttl: 3 + r.Int64N(6), token: max(p.First, 1) - 1}
	rate := den
	for i := range len(s.reading) - 1 {
		if i%4 == 0 {
			rate = den + num*(r.Int64N(3)-1)
		}
		s.reading[i+1] = s.reading[i] + rate
	}
	if p.First == 0 && p.Tokens != TokensNone {
		s.token = r.Uint64N(4)
	}
	return s
}

// clock is what the store makes of tick t.
func (s *timedStore) clock(t int64) int64 { return s.reading[min(max(t-s.late+100, 0), 399)] }

func (s *timedStore) held(t int64) bool { return s.running && s.clock(t) < s.until }

func (s *timedStore) delayed(t int64) bool {
	return (s.running || s.known) && s.clock(t) < s.until+s.LockDelay*s.second
}

func (s *timedStore) start(t, ttl int64) { s.until = s.reading[t+100] + ttl*s.second }

func (s *timedStore) extend(t, ttl int64) {
	s.until = max(s.until, s.reading[t+100]+ttl*s.second)
	s.largest = max(s.largest, ttl)
}

// notice puts a lapse on record.
func (s *timedStore) notice() {
	if s.running {
		s.running, s.known = false, true
	}
}

// apply answers op at tick t.
func (s *timedStore) apply(op *TimedOp, t int64) {
	op.Outcome = TimedOK
	none := s.Tokens == TokensNone
	mine := (s.running || s.known) && s.holder == op.Owner && (none || op.Kind == TimedAcquire || s.token == op.Token)
	revive := s.RenewAfterLapse && mine && !s.held(t) && s.r.IntN(2) == 0
	switch op.Kind {
	case TimedAcquire:
		s.acquire(op, t, mine, revive)
		if op.Outcome == TimedOK && !none {
			op.Token, s.tokens[op.Owner] = s.token, s.token
		}
	case TimedGet:
		if s.held(t) {
			op.Holder = s.holder
			if !none && s.r.IntN(2) == 0 {
				op.HolderToken = s.token
			}
		} else {
			s.notice()
		}
	case TimedRestart:
		if s.running {
			s.start(t, s.largest)
		} else if s.known {
			s.start(t-s.late, 0)
		}
	case TimedDelete:
		s.running, s.known = false, false
	default:
		switch {
		case mine && s.held(t):
			if op.Kind == TimedRenew {
				s.extend(t, op.TTL)
			} else if op.Kind == TimedRelease {
				s.running = false
			}
		case revive && op.Kind == TimedRenew:
			s.start(t, op.TTL)
			s.largest, s.running, s.known = max(s.largest, op.TTL), true, false
		default:
			op.Outcome = TimedRefused
			if !s.held(t) && (mine || s.r.IntN(2) == 0) {
				s.notice()
			}
		}
	}
}

func (s *timedStore) acquire(op *TimedOp, t int64, mine, revive bool) {
	from := t
	if s.Anchor == AnchorCall {
		from -= s.r.Int64N(t - op.Call + 1)
	}
	switch {
	case mine && s.held(t):
		s.extend(from, op.TTL)
	case s.held(t):
		op.Outcome = TimedHeld
		if s.r.IntN(4) > 0 {
			op.Holder = s.holder
		}
	case !revive && s.delayed(t):
		s.notice()
		op.Outcome = TimedDelay
		if s.r.IntN(3) == 0 {
			op.Outcome = TimedHeld
		}
	default:
		if !revive {
			s.largest = 0
			s.grant(op)
		}
		s.running, s.known = true, false
		s.until, s.largest = 0, max(s.largest, op.TTL)
		if s.start(from, op.TTL); s.Anchor == AnchorCall && !s.held(t) {
			s.start(t, op.TTL)
		}
	}
}

func (s *timedStore) grant(op *TimedOp) {
	s.holder = op.Owner
	switch s.Tokens {
	case TokensNext:
		s.token++
	case TokensRising:
		s.token += 1 + s.r.Uint64N(2)
	}
	switch {
	case s.Late == Unbounded:
		s.late = s.r.Int64N(30)
	case s.Anchor == AnchorCall:
		s.late = s.r.Int64N(s.Late + 1)
	default:
		early := min(s.Early, op.TTL/2) // not before the grant, at any drift
		s.late = s.r.Int64N(early+s.Late+1) - early
	}
}

// timedRandomHistory is what n operations on a correct store may be recorded
// as.
func timedRandomHistory(r *rand.Rand, p TimedParams, th timedTheme, n int) []TimedOp {
	s := newTimedStore(r, p)
	ops := make([]TimedOp, n)
	t := r.Int64N(3)
	for i := range ops {
		op := &ops[i]
		op.Kind = th.kinds[r.IntN(len(th.kinds))]
		if i == 0 || op.Kind == TimedRestart && p.NoRestarts {
			op.Kind = TimedAcquire
		}
		op.Owner = 1 + r.Int32N(3)
		if s.holder != 0 && (th.alone || r.IntN(5) < 2) {
			op.Owner = s.holder
		}
		op.TTL = s.ttl
		if r.IntN(th.ttls) == 0 {
			op.TTL = 1 + r.Int64N(10)
		}
		op.Token = s.tokens[op.Owner]
		if r.IntN(th.guess) == 0 && p.Tokens != TokensNone {
			op.Token = r.Uint64N(s.token + 2)
		}
		switch op.Kind {
		case TimedAcquire:
			op.Token = 0
		case TimedGet, TimedRestart, TimedDelete:
			op.Owner, op.Token, op.TTL = 0, 0, 0
		case TimedRelease, TimedWrite:
			op.TTL = 0
		}
		if r.IntN(4) > 0 {
			t += r.Int64N(4)
		} else {
			t += r.Int64N(s.ttl + p.LockDelay + 3)
		}
		wide := r.Int64N(3)
		op.Call, op.Return = t-r.Int64N(wide+1), t+r.Int64N(wide+1)
		if op.Kind == TimedAcquire {
			op.Call -= r.Int64N(th.waiting + 1)
		}
		lost := r.IntN(th.lost) == 0 && op.Kind < TimedRestart
		if lost && r.IntN(2) == 0 {
			op.Call -= r.Int64N(10)
		}
		if !lost || r.IntN(3) > 0 {
			s.apply(op, t)
		}
		if lost {
			op.Outcome, op.Return, op.Holder, op.HolderToken = TimedUnknown, Unbounded, 0, 0
			if op.Kind == TimedAcquire {
				op.Token = 0
			}
		}
	}
	r.Shuffle(n, func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	return ops
}

// timedPerturb makes ops something a store may no longer have answered.
func timedPerturb(r *rand.Rand, p *TimedParams, ops []TimedOp) {
	for range 1 + r.IntN(5) {
		op := &ops[r.IntN(len(ops))]
		switch r.IntN(8) {
		case 0, 1: // at another time
			by := r.Int64N(13) - 6
			op.Call += by
			if op.Return != Unbounded {
				op.Return += by
			}
		case 2: // within less time
			if op.Return == Unbounded {
				op.Return = op.Call + 4
			}
			op.Call += r.Int64N(op.Return - op.Call + 1)
			op.Return -= r.Int64N(op.Return - op.Call + 1)
		case 3: // by somebody else
			if op.Owner != 0 {
				op.Owner = 1 + r.Int32N(3)
			} else if op.Kind == TimedGet {
				op.Holder, op.HolderToken = r.Int32N(4), 0
			}
		case 4: // under another token
			if p.Tokens != TokensNone && op.Token > 0 {
				op.Token += 1 - 2*r.Uint64N(2)
			}
		case 5: // answered otherwise
			if op.Kind == TimedAcquire {
				op.Outcome = []TimedOutcome{TimedOK, TimedHeld, TimedDelay}[r.IntN(3)]
				op.Holder = r.Int32N(4)
			} else if op.Kind != TimedGet && op.Kind < TimedRestart {
				op.Outcome = []TimedOutcome{TimedOK, TimedRefused}[r.IntN(2)]
			}
			if op.Return == Unbounded {
				op.Return = op.Call + r.Int64N(8)
			}
		case 6: // for another time
			if op.TTL > 0 {
				op.TTL = 1 + r.Int64N(12)
			}
		case 7: // of another store
			switch r.IntN(4) {
			case 0:
				p.DriftPPB = 0
			case 1:
				p.Early, p.Late = 0, 0
			case 2:
				p.LockDelay = r.Int64N(8)
			case 3:
				p.Anchor = AnchorGrant
			}
		}
	}
}
