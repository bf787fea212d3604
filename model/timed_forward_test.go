package model_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost/model"
)

// forwardParams draws parameters under which renewals may be stepped late.
func forwardParams(rng *rand.Rand) model.TimedParams {
	return model.TimedParams{
		DriftPPB:   []int64{0, 250_000_000}[rng.IntN(2)],
		Early:      rng.Int64N(2),
		Late:       []int64{0, 0, 2, model.Unbounded}[rng.IntN(4)],
		LockDelay:  []int64{0, 3}[rng.IntN(2)],
		First:      uint64(rng.IntN(2)),
		Tokens:     []model.TokenRule{model.TokensNext, model.TokensRising}[rng.IntN(2)],
		NoRestarts: true,
	}
}

// forwardOp draws an operation around an instant.
func forwardOp(rng *rand.Rand, at int64) model.TimedOp {
	op := model.TimedOp{
		Kind: model.TimedKind(rng.IntN(int(model.TimedDelete) + 1)), Call: at - rng.Int64N(3), Return: at + rng.Int64N(3),
		Owner: 1 + rng.Int32N(2), Token: 1 + rng.Uint64N(3), TTL: 6,
	}
	switch op.Kind {
	case model.TimedAcquire:
		op.Outcome = []model.TimedOutcome{model.TimedOK, model.TimedOK, model.TimedHeld, model.TimedDelay}[rng.IntN(4)]
	case model.TimedRenew, model.TimedRelease:
		op.Outcome = []model.TimedOutcome{model.TimedOK, model.TimedRefused, model.TimedUnknown}[rng.IntN(3)]
	case model.TimedGet:
		op.Holder = rng.Int32N(3)
	}
	return op
}

func stepAll(p model.TimedParams, set []model.TimedState, ops ...model.TimedOp) []model.TimedState {
	for _, op := range ops {
		var next []model.TimedState
		for _, s := range set {
			next = p.AppendStep(next, s, op)
		}
		set = next
	}
	return set
}

// TestLateRenewalIsARenewalThen: what AppendStep makes of a renewal in its
// place, AppendLate covers; and whatever is legal after AppendLate is legal with
// the renewal in one of the places before.
func TestLateRenewalIsARenewalThen(t *testing.T) {
	covered, sound, delayed := 0, 0, 0
	for seed := range uint64(60_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := forwardParams(rng)
		grant := model.TimedOp{Call: 0, Return: rng.Int64N(3), Owner: 1, Token: 1, TTL: 6}
		set := stepAll(p, p.Init(), grant)
		renewal := model.TimedOp{Kind: model.TimedRenew, Call: rng.Int64N(8), Return: model.Unbounded, Owner: 1, Token: 1, TTL: 6}
		if rng.IntN(4) == 0 {
			renewal.Kind = model.TimedAcquire
		}
		for _, s := range set {
			now := stepAll(p, []model.TimedState{s}, renewal)
			late := p.AppendLate(nil, s, renewal)
			for _, n := range now {
				if n.Holds(1) && !slices.ContainsFunc(late, func(l model.TimedState) bool { return l.Covers(n) }) {
					t.Fatalf("seed %d: %v: %v leads to %v, late to %v", seed, s, renewal, now, late)
				}
				covered++
			}
		}
		// Operations that find the lease held, then the renewal, then others.
		var held []model.TimedOp
		at := int64(2)
		for range rng.IntN(3) {
			at += rng.Int64N(6)
			held = append(held, model.TimedOp{Kind: model.TimedGet, Call: at - rng.Int64N(2), Return: at + rng.Int64N(2), Holder: 1})
		}
		var after []model.TimedOp
		for range 1 + rng.IntN(3) {
			at += rng.Int64N(6)
			op := forwardOp(rng, at)
			op.Token = 1 + op.Token%2
			after = append(after, op)
		}
		var late []model.TimedState
		for _, s := range stepAll(p, set, held...) {
			late = p.AppendLate(late, s, renewal)
		}
		if len(stepAll(p, late, after...)) == 0 {
			continue
		}
		if sound++; p.LockDelay > 0 {
			delayed++
		}
		legal := false
		for i := range len(held) + 1 {
			ops := slices.Concat(held[:i], []model.TimedOp{renewal}, held[i:], after)
			legal = legal || len(stepAll(p, set, ops...)) > 0
		}
		if !legal {
			t.Fatalf("seed %d: %+v: %v, late %v, then %v is legal only late", seed, p, held, renewal, after)
		}
	}
	if covered < 10_000 || sound < 10_000 || delayed < 4_000 {
		t.Errorf("%d states covered, %d histories legal, %d with a lock delay: too few", covered, sound, delayed)
	}
}

// TestPastOperationChangesNothing steps an operation that is past in every
// state that follows.
func TestPastOperationChangesNothing(t *testing.T) {
	past := 0
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := forwardParams(rng)
		p.Tokens = model.TokenRule(rng.IntN(3))
		p.NoRestarts, p.RenewAfterLapse = rng.IntN(2) == 0, rng.IntN(3) == 0
		if p.Tokens == model.TokensNone {
			p.First = 0
		}
		op := forwardOp(rng, 0)
		op.Outcome = model.TimedUnknown
		set, gone := p.Init(), false
		for at := int64(0); at < 40 && len(set) > 0; at += rng.Int64N(6) {
			for _, s := range set {
				if gone = gone || len(set) == 1 && p.Past(s, op); !gone {
					continue
				}
				past++
				if next := p.Step(s, op); len(next) != 1 || !next[0].Covers(s) || !s.Covers(next[0]) {
					t.Fatalf("seed %d: %+v: %v: %v is past, yet leads to %v", seed, p, s, op, next)
				}
			}
			for range 10 {
				if next := stepAll(p, set, forwardOp(rng, at)); len(next) > 0 {
					set = next
					break
				}
			}
		}
	}
	if past < 20_000 {
		t.Errorf("%d states found an operation past: too few", past)
	}
}

// TestCoveringStatesAreKin also checks By against an operation that has to take
// effect by an instant.
func TestCoveringStatesAreKin(t *testing.T) {
	pairs, late := 0, 0
	for seed := range uint64(3_000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := forwardParams(rng)
		var seen []model.TimedState
		for range 20 {
			set := p.Init()
			for at := int64(0); at < 20; at += rng.Int64N(6) {
				if next := stepAll(p, set, forwardOp(rng, at)); len(next) > 0 {
					set = next
				}
			}
			seen = append(seen, set...)
		}
		for i, s := range seen {
			for _, u := range seen[:i] {
				if !s.Covers(u) && !u.Covers(s) {
					continue
				}
				if pairs++; s.Kin() != u.Kin() {
					t.Fatalf("seed %d: %v and %v are not kin", seed, s, u)
				}
			}
			at := rng.Int64N(24)
			// A deletion asks for nothing but its own instant.
			by := len(p.Step(s, model.TimedOp{Kind: model.TimedDelete, Call: -1 << 40, Return: at})) > 0
			if s.By(at) != by {
				t.Fatalf("seed %d: %v by %d: %v, want %v", seed, s, at, s.By(at), by)
			}
			if !by {
				late++
			}
		}
	}
	if pairs < 10_000 || late < 10_000 {
		t.Errorf("%d pairs, %d too late: too few", pairs, late)
	}
}
