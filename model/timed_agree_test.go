package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// timedSearch is the verdict on ops by Step, over all orders (Wing & Gong).
func timedSearch(p TimedParams, ops []TimedOp) bool {
	return timedSearchFrom(p, ops, 0, p.Init())
}

func timedSearchFrom(p TimedParams, ops []TimedOp, done uint, states []TimedState) bool {
	first := int64(Unbounded) // return of the operations that are left
	for i, op := range ops {
		if done&(1<<i) == 0 && op.Outcome != TimedUnknown {
			first = min(first, op.Return)
		}
	}
	if done == 1<<len(ops)-1 {
		return true
	}
	for i, op := range ops {
		if done&(1<<i) != 0 || op.Call > first {
			continue
		}
		var next []TimedState
		for _, s := range states {
			next = p.AppendStep(next, s, op)
		}
		if len(next) > 0 && timedSearchFrom(p, ops, done|1<<i, next) {
			return true
		}
	}
	return false
}

func timedStory(p TimedParams, ops []TimedOp) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", p)
	for _, op := range ops {
		fmt.Fprintf(&b, "[%d, %d] %v    %+v\n", op.Call, op.Return, op, op)
	}
	return b.String()
}

// timedCase is the i-th random history: as recorded, or in three cases of four
// perturbed.
func timedCase(i int) (p TimedParams, ops []TimedOp, asRecorded bool) {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	p = timedRandomParams(r)
	theme := timedThemes[0]
	if r.IntN(2) == 0 {
		theme = timedThemes[r.IntN(len(timedThemes))]
		theme.params(r, &p)
	}
	ops = timedRandomHistory(r, p, theme.timedTheme, 2+r.IntN(6))
	if asRecorded = i%4 == 0; !asRecorded {
		timedPerturb(r, &p, ops)
	}
	return p, ops, asRecorded
}

// timedFeatures are what histories must have had, to have checked it.
var timedFeatures = []struct {
	name string
	has  func(p TimedParams, ops []TimedOp) bool
}{
	{"drift", func(p TimedParams, _ []TimedOp) bool { return p.DriftPPB > 0 }},
	{"early", func(p TimedParams, _ []TimedOp) bool { return p.Early > 0 }},
	{"late", func(p TimedParams, _ []TimedOp) bool { return p.Late > 0 && p.Late != Unbounded }},
	{"late without a promise", func(p TimedParams, _ []TimedOp) bool { return p.Late == Unbounded }},
	{"rising tokens", func(p TimedParams, _ []TimedOp) bool { return p.Tokens == TokensRising }},
	{"no tokens", func(p TimedParams, _ []TimedOp) bool { return p.Tokens == TokensNone }},
	{"anchor call", func(p TimedParams, _ []TimedOp) bool { return p.Anchor == AnchorCall }},
	{"lock delay", func(p TimedParams, _ []TimedOp) bool { return p.LockDelay > 0 }},
	{"renewal after a lapse", func(p TimedParams, _ []TimedOp) bool { return p.RenewAfterLapse }},
	{"two grants", timedCount(2, func(op TimedOp) bool { return op.Kind == TimedAcquire && op.Outcome == TimedOK })},
	{"renewals", timedCount(1, func(op TimedOp) bool { return op.Kind == TimedRenew && op.Outcome == TimedOK })},
	{"releases", timedCount(1, func(op TimedOp) bool { return op.Kind == TimedRelease && op.Outcome == TimedOK })},
	{"writes", timedCount(1, func(op TimedOp) bool { return op.Kind == TimedWrite && op.Outcome == TimedOK })},
	{"refusals as held", timedCount(1, func(op TimedOp) bool { return op.Outcome == TimedHeld })},
	{"refusals by delay", timedCount(1, func(op TimedOp) bool { return op.Outcome == TimedDelay })},
	{"other refusals", timedCount(1, func(op TimedOp) bool { return op.Outcome == TimedRefused })},
	{"unknown outcomes", timedCount(2, func(op TimedOp) bool { return op.Outcome == TimedUnknown })},
	{"gets of a holder", timedCount(1, func(op TimedOp) bool { return op.Kind == TimedGet && op.Holder != 0 })},
	{"gets of nobody", timedCount(1, func(op TimedOp) bool { return op.Kind == TimedGet && op.Outcome == TimedOK && op.Holder == 0 })},
	{"restarts", timedCount(1, func(op TimedOp) bool { return op.Kind == TimedRestart })},
	{"deletions", timedCount(1, func(op TimedOp) bool { return op.Kind == TimedDelete })},
	{"several TTLs", func(_ TimedParams, ops []TimedOp) bool {
		var ttls []int64
		for _, op := range ops {
			if op.TTL > 0 && op.Outcome == TimedOK && !slices.Contains(ttls, op.TTL) {
				ttls = append(ttls, op.TTL)
			}
		}
		return len(ttls) > 2
	}},
}

func timedCount(n int, is func(TimedOp) bool) func(TimedParams, []TimedOp) bool {
	return func(_ TimedParams, ops []TimedOp) bool {
		k := 0
		for _, op := range ops {
			if is(op) {
				k++
			}
		}
		return k >= n
	}
}

func TestTimedAgreesWithBruteForce(t *testing.T) {
	n := 20_000
	if testing.Short() || timedRace {
		n = 2_000
		t.Log("2,000 histories instead of 20,000, because of -short or -race")
	}
	const shards = 4
	type tally struct {
		legal, illegal, worlds int
		features               [30]struct{ legal, illegal int }
	}
	var tallies [shards]tally
	t.Run("shards", func(t *testing.T) {
		for k := range shards {
			t.Run(fmt.Sprint(k), func(t *testing.T) {
				t.Parallel()
				sum := &tallies[k]
				for i := k; i < n; i += shards {
					p, ops, asRecorded := timedCase(i)
					want, worlds := oracleLegal(p, ops)
					sum.worlds += worlds
					if asRecorded && !want {
						t.Fatalf("history %d: brute force refuses what a correct store did:\n%s", i, timedStory(p, ops))
					}
					if got := timedSearch(p, ops); got != want {
						ops := timedShrink(p, ops)
						t.Fatalf("history %d: Step says legal=%v, brute force says %v; shrunk:\n%s", i, got, want, timedStory(p, ops))
					}
					if want {
						sum.legal++
					} else {
						sum.illegal++
					}
					for f, feature := range timedFeatures {
						if !feature.has(p, ops) {
							continue
						}
						if want {
							sum.features[f].legal++
						} else {
							sum.features[f].illegal++
						}
					}
				}
			})
		}
	})
	var sum tally
	for _, s := range tallies {
		sum.legal, sum.illegal, sum.worlds = sum.legal+s.legal, sum.illegal+s.illegal, sum.worlds+s.worlds
		for f := range s.features {
			sum.features[f].legal += s.features[f].legal
			sum.features[f].illegal += s.features[f].illegal
		}
	}
	t.Logf("%d histories: %d legal, %d illegal; brute force went through %d worlds", n, sum.legal, sum.illegal, sum.worlds)
	if sum.legal < n/5 || sum.illegal < n/5 {
		t.Errorf("%d legal, %d illegal: want %d of each", sum.legal, sum.illegal, n/5)
	}
	for f, feature := range timedFeatures {
		got := sum.features[f]
		t.Logf("%6d legal, %6d illegal with %s", got.legal, got.illegal, feature.name)
		if got.legal < n/200 || got.illegal < n/200 {
			t.Errorf("%s: %d legal, %d illegal: want %d of each", feature.name, got.legal, got.illegal, n/200)
		}
	}
}

// timedShrink leaves out operations on which a disagreement does not depend.
func timedShrink(p TimedParams, ops []TimedOp) []TimedOp {
	for i := 0; i < len(ops); i++ {
		less := slices.Delete(slices.Clone(ops), i, i+1)
		if want, _ := oracleLegal(p, less); want != timedSearch(p, less) {
			ops, i = less, -1
		}
	}
	return ops
}

// timedRace says whether the race detector, which is slow, is watching.
var timedRace = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

// TestTimedVerdictDoesNotDependOnUnitsAndOrigin repeats random histories in
// seconds of Unix time, and with a tick of a tenth of a year.
func TestTimedVerdictDoesNotDependOnUnitsAndOrigin(t *testing.T) {
	for i := range 400 {
		p, ops, _ := timedCase(i)
		want := timedSearch(p, ops)
		for _, c := range []struct{ unit, origin int64 }{{1e9 + 7, 1_800_000_000e9}, {3e15, -1e18}, {1e9, -int64(1e18)}} {
			p, ops := p, slices.Clone(ops)
			p.Early *= c.unit
			if p.Late != Unbounded {
				p.Late *= c.unit
			}
			p.LockDelay *= c.unit
			for k := range ops {
				op := &ops[k]
				op.Call = c.origin + op.Call*c.unit
				if op.Return != Unbounded {
					op.Return = c.origin + op.Return*c.unit
				}
				op.TTL *= c.unit
			}
			if got := timedSearch(p, ops); got != want {
				t.Fatalf("history %d: legal=%v in units of %d ns from %d, want %v\n%s", i, got, c.unit, c.origin, want, timedStory(p, ops))
			}
		}
	}
}

// FuzzTimedStep feeds parameters and operations that nobody would.
func FuzzTimedStep(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0), uint8(0), []byte("\x00\x00\x00\x00\x00\x0a\x01\x01\x00\x01\x04\x05\x0a\x01\x01\x00"))
	f.Add(int64(100_000_000), int64(3), int64(5), uint8(9), []byte("\x00\x00\x00\x00\x01\x0a\x01\x01\x00"))
	f.Fuzz(func(t *testing.T, drift, slack, delay int64, flags uint8, ops []byte) {
		p := TimedParams{DriftPPB: drift, Early: slack >> 1, Late: slack, LockDelay: delay, Tokens: TokenRule(flags & 3),
			Anchor: Anchor(flags >> 2 & 1), RenewAfterLapse: flags&8 != 0, First: uint64(flags >> 5)}
		number := func(b byte) int64 { // small ones, and those at the edge of what fits
			if b < 200 {
				return int64(b) - 10
			}
			return (math.MinInt64 >> ((b - 200) / 4)) * (2*int64(b%2) - 1)
		}
		states := p.Init()
		for ; len(ops) >= 9 && len(states) > 0; ops = ops[9:] {
			op := TimedOp{Kind: TimedKind(ops[0] % 9), Outcome: TimedOutcome(ops[1] % 7), Owner: int32(number(ops[8]%8 + 10)),
				Call: number(ops[2]), Return: number(ops[3]), Token: uint64(number(ops[4])), TTL: number(ops[5]),
				Holder: int32(number(ops[6])), HolderToken: uint64(number(ops[7]))}
			var next []TimedState
			for _, s := range states {
				for _, n := range p.Step(s, op) {
					if n.String() == "" || !n.covers(&n) {
						t.Fatal(n)
					}
				}
				next = p.AppendStep(next, s, op)
			}
			if p.Validate() != nil && len(next) > 0 {
				t.Fatalf("%+v: legal under parameters that are not", p)
			}
			if len(next) > 64 {
				return
			}
			states = next
		}
	})
}
