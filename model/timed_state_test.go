package model

import (
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestTimedNoStateHidesAnother applies operations in the order given: a search
// over orders would find another one for what a state too few left unexplained.
func TestTimedNoStateHidesAnother(t *testing.T) {
	raised := []TimedOp{timedAcq(0, 0, 1, 5, 1), timedLost(timedRen(1, 0, 1, 1, 6)),
		timedRen(4, 4, 1, 1, 5), timedRen(8, 8, 1, 1, 5), timedBack(12, 12)}
	longer := []TimedOp{timedAcq(0, 10, 1, 5, 1), timedLost(timedRen(0, 0, 1, 1, 7))}
	retried := []TimedOp{timedAcq(6, 6, 1, 2, 1), timedAcq(0, 9, 1, 10, 1)}
	for _, c := range []struct {
		rule   string
		anchor Anchor
		ops    []TimedOp
	}{
		{"the largest TTL was raised by one that is over", AnchorGrant, append(raised, timedSays(17, 17, 1, 1))},
		{"or it was not", AnchorGrant, append(raised, timedSays(17, 17, 0, 0))},
		{"the longer TTL runs", AnchorGrant, append(longer, timedSays(16, 16, 1, 1))},
		{"or it does not", AnchorGrant, append(longer, timedSays(6, 6, 0, 0))},
		{"a retry's longer TTL began before the first one's", AnchorCall, append(retried, timedSays(15, 15, 0, 0))},
		{"or after", AnchorCall, append(retried, timedSays(16, 16, 1, 1))},
	} {
		p := TimedParams{First: 1, Anchor: c.anchor}
		for _, p.NoRestarts = range []bool{false, true} {
			if p.NoRestarts && c.ops[len(c.ops)-2].Kind == TimedRestart {
				continue
			}
			if _, n := timedRun(p, c.ops); n < len(c.ops) {
				t.Errorf("%s: nothing leads past operation %d\n%s", c.rule, n, timedStory(p, c.ops))
			}
		}
	}
}

func TestTimedStateSaysWhatIsKnown(t *testing.T) {
	p := TimedParams{First: 5, LockDelay: 3, Late: 2}
	for _, c := range []struct {
		ops  []TimedOp
		want string
	}{
		{nil, "free, token 4"},
		{[]TimedOp{timedAcq(1, 2, 7, 10, 5)}, "held by 7, token 5, lapse in [11ns, inf), 10ns from [1ns, 2ns], now >= 1ns"},
		{[]TimedOp{timedAcq(1, 2, 7, 10, 5), timedRen(4, 5, 7, 5, 7)},
			"held by 7, token 5, lapse in [11ns, inf), 10ns from [1ns, 2ns], 7ns from [4ns, 5ns], now >= 4ns"},
		{[]TimedOp{timedAcq(1, 2, 7, 10, 5), timedSays(12, 12, 0, 0)}, "lapsed, token 5, lapse in [11ns, 12ns], now >= 12ns"},
		{[]TimedOp{timedAcq(1, 2, 7, 10, 5), timedRel(4, 4, 7, 5)}, "free, token 5, now >= 4ns"},
	} {
		states, _ := timedRun(p, c.ops)
		if len(states) != 1 || states[0].String() != c.want {
			t.Errorf("got  %v\nwant %s", states, c.want)
		}
	}
	p = TimedParams{RenewAfterLapse: true}
	states, _ := timedRun(p, []TimedOp{timedAcq(1, 2, 7, 10, 5), timedSays(15, 15, 0, 0)})
	if want := "lapsed, last held by 7, token 5, now >= 15ns"; len(states) != 1 || states[0].String() != want {
		t.Errorf("got  %v\nwant %s", states, want)
	}
	if got, want := p.Init()[0].String(), "free, token >= 0"; got != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

func TestTimedHashAndEqualFollowTheState(t *testing.T) {
	p := TimedParams{First: 1, LockDelay: 3} // keeps zones of two variables and more
	seen := map[TimedState]uint64{}
	hashes := map[uint64]bool{}
	for i := range 1000 {
		_, ops, _ := timedCase(i)
		states := p.Init()
		for _, op := range ops {
			var next []TimedState
			for _, s := range states {
				next = p.AppendStep(next, s, op)
				for k, again := range p.Step(s, op) {
					if same := p.Step(s, op)[k]; !same.Equal(again) || same.Hash() != again.Hash() {
						t.Fatalf("the same step gives %v and %v", same, again)
					}
				}
			}
			for _, s := range next {
				seen[s] = s.Hash()
				hashes[s.Hash()] = true
			}
			states = next
		}
	}
	if len(seen) < 500 || len(hashes) != len(seen) {
		t.Errorf("%d hashes of %d states: want as many, and 500 at least", len(hashes), len(seen))
	}
}

func TestTimedValidateNamesTheField(t *testing.T) {
	for field, p := range map[string]TimedParams{
		"DriftPPB":  {DriftPPB: 1e9},
		"Early":     {Early: -1},
		"Late":      {Late: -1},
		"LockDelay": {LockDelay: -1},
		"Tokens":    {Tokens: 3},
		"Anchor":    {Anchor: 2},
		"First":     {Tokens: TokensNone, First: 1},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), field+" is ") {
			t.Errorf("%+v: error %v, want one about %s", p, err, field)
		}
		if got := p.Step(p.Init()[0], timedAcq(0, 0, 1, 10, 1)); len(got) != 0 {
			t.Errorf("%+v: Step gives %v, want nothing", p, got)
		}
	}
	if err := (TimedParams{DriftPPB: 1e9 - 1, Early: Unbounded, Late: Unbounded, LockDelay: Unbounded}).Validate(); err != nil {
		t.Error(err)
	}
}

// timedPorcupine is p and ops as a checker wants them that compares and hashes
// states.
func timedPorcupine(p TimedParams, ops []TimedOp) (porcupine.Model, []porcupine.Operation) {
	model := porcupine.NondeterministicModel{
		Init: func() (states []any) {
			for _, s := range p.Init() {
				states = append(states, s)
			}
			return states
		},
		Step: func(s, op, _ any) (states []any) {
			for _, s := range p.Step(s.(TimedState), op.(TimedOp)) {
				states = append(states, s)
			}
			return states
		},
		Equal: func(a, b any) bool { return a.(TimedState).Equal(b.(TimedState)) },
		Hash:  func(s any) uint64 { return s.(TimedState).Hash() },
	}
	var history []porcupine.Operation
	for i, op := range ops {
		ret := op.Return
		if op.Outcome == TimedUnknown {
			ret = Unbounded
		}
		history = append(history, porcupine.Operation{ClientId: i, Input: op, Call: op.Call, Return: ret})
	}
	return model.ToModel(), history
}

func TestTimedPorcupineAgrees(t *testing.T) {
	for i := range 500 {
		p, ops, _ := timedCase(i)
		model, history := timedPorcupine(p, ops)
		if got, want := porcupine.CheckOperations(model, history), timedSearch(p, ops); got != want {
			t.Errorf("history %d: porcupine says %v, want %v\n%s", i, got, want, timedStory(p, ops))
		}
	}
}
