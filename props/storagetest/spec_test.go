package storagetest

import (
	"fmt"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/model"
)

// oracle is model.StorageSpec answering scripts.
type oracle struct {
	spec   model.StorageSpec
	values []string // by number; 0 is nothing
}

func (o *oracle) answer(st step) answer {
	e := &model.Event{Op: model.OpWrite, Asked: st.token}
	if st.key == "y" {
		e.Key = 1
	}
	switch st.do {
	case doRestart:
		return answer{said: saidNothing}
	case doFence:
		e.Op = model.OpFence
	case doRead:
		e.Op = model.OpRead
	case doWrite:
		o.values = append(o.values, st.value)
		e.Value = int64(len(o.values))
	}
	switch a := o.spec.Step(e); {
	case a.Code == model.CodeStale:
		return answer{said: saidStale, highest: a.Token}
	case a.Code == model.CodeValue && a.Value > 0:
		return answer{found: true, value: o.values[a.Value-1]}
	}
	return answer{}
}

// wrongs are the answers to st other than a.
func wrongs(st step, a answer) []answer {
	switch st.do {
	case doWrite, doFence:
		other := answer{said: saidStale}
		if a.said == saidStale {
			other = answer{}
		}
		all := []answer{other, {said: saidPanic}}
		if a.said == saidDone {
			all = append(all, answer{said: saidFailed})
		} else if st.token > 0 { // zero may be refused by any error
			all = append(all, answer{said: saidFailed}, answer{said: saidStale, highest: a.highest + 1})
		}
		return all
	case doRead:
		all := []answer{{found: true, value: a.value + "?"}, {said: saidFailed}, {said: saidPanic}}
		if a.found {
			all = append(all, answer{})
		}
		return all
	}
	return nil
}

// everyScript calls f with all scripts of n steps of the letters.
func everyScript(letters []step, n int, f func([]step)) {
	steps := make([]step, n)
	var at func(int)
	at = func(i int) {
		if i == n {
			f(steps)
			return
		}
		for _, st := range letters {
			if steps[i] = st; st.do == doWrite {
				steps[i].value = fmt.Sprintf("v%d", i)
			}
			at(i + 1)
		}
	}
	at(0)
}

// The judge accepts what model.StorageSpec answers, and nothing else, after all
// scripts of up to four steps.
func TestTheJudgeAgreesWithTheModel(t *testing.T) {
	letters := script("write 0 x=v; write 1 x=v; write 2 x=v; write 3 y=v; write 1 y=v; fence 0; fence 1; fence 2; fence 3; read x; read y; restart")
	judged := 0
	everyScript(letters, 4, func(steps []step) {
		var s spec
		var o oracle
		for i, st := range steps {
			a := o.answer(st)
			if i == len(steps)-1 {
				for _, wrong := range wrongs(st, a) {
					before := s.clone()
					judged++
					if b := before.judge(st, wrong); b == nil || b.rule == noRule || b.what == "" || b.want == "" {
						t.Fatalf("%v: accepts %+v as the answer to the last (%+v): %+v", steps, wrong, a, b)
					}
				}
			}
			if b := s.judge(st, a); b != nil {
				t.Fatalf("%v: %v refused: %+v", steps[:i+1], a, b)
			}
		}
	})
	if judged < 50_000 {
		t.Errorf("judged %d wrong answers, want many", judged)
	}
}

func (s *spec) clone() *spec {
	c := *s
	c.seen = append([]sight(nil), s.seen...)
	c.refused = append([]step(nil), s.refused...)
	c.landed = map[string]landing{}
	for k, l := range s.landed {
		c.landed[k] = l
	}
	return &c
}

// Under compare-and-swap it accepts what fence.Carries lets land.
func TestTheJudgeAgreesWithCarries(t *testing.T) {
	letters := script("grant; release; write 0 x=v; write 1 x=v; write 2 x=v; fence 1; fence 2; restart")
	everyScript(letters, 4, func(steps []step) {
		s := spec{cas: true}
		var d lease.Durable
		for i, st := range steps {
			a := answer{said: saidNothing}
			switch st.do {
			case doGrant:
				d.Token++
				d.Status = lease.Running
			case doRelease:
				d.Status = lease.Free
			case doWrite, doFence:
				a = answer{said: saidStale}
				if fence.Carries(d, lease.Token(st.token)) {
					a = answer{}
				}
				for _, wrong := range wrongs(st, a) {
					if wrong.highest == 0 && s.clone().judge(st, wrong) == nil {
						t.Fatalf("%v: accepts %+v as the answer to the last (%+v)", steps[:i+1], wrong, a)
					}
				}
			}
			if b := s.judge(st, a); b != nil {
				t.Fatalf("%v: %v refused: %+v", steps[:i+1], a, b)
			}
		}
	})
}

// What breaks a rule is told under the name of that rule.
func TestABreachNamesItsRule(t *testing.T) {
	landed, stale, failed := answer{}, answer{said: saidStale}, answer{said: saidFailed, err: "no"}
	reads := func(v string) answer { return answer{found: true, value: v} }
	none := answer{said: saidNothing}
	for _, c := range []struct {
		cas     bool
		script  string
		answers []answer
		want    rule
	}{
		{false, "write 2 x=a; write 1 x=b", []answer{landed, landed}, lowerTokenIsRefused},
		{false, "fence 3; write 2 x=a; write 1 x=b", []answer{landed, stale, landed}, fenceBarsLowerTokens},
		{false, "write 2 x=a; fence 3; write 1 x=b", []answer{landed, landed, landed}, lowerTokenIsRefused},
		{false, "write 2 y=a; fence 3; write 1 x=b", []answer{landed, landed, landed}, oneGuardForAllKeys},
		{false, "write 2 x=a; write 1 y=b", []answer{landed, landed}, oneGuardForAllKeys},
		{false, "write 2 x=a; fence 1", []answer{landed, landed}, fenceOfALowerTokenIsRefused},
		{false, "fence 2; restart; write 1 x=a", []answer{landed, none, landed}, restartKeepsTheHighestToken},
		{false, "write 1 x=a; write 1 x=b", []answer{landed, stale}, equalTokenLands},
		{false, "write 1 x=a; write 2 x=b", []answer{landed, stale}, higherTokenLands},
		{false, "write 1 x=a", []answer{failed}, higherTokenLands},
		{false, "fence 0", []answer{landed}, tokenZeroIsRefused},
		{false, "write 2 x=a; write 1 x=b", []answer{landed, failed}, refusalMatchesErrStale},
		{false, "write 2 x=a; write 1 x=b", []answer{landed, {said: saidStale, highest: 1}}, refusalNamesTheHighest},
		{false, "write 2 x=a; write 1 x=b; read x", []answer{landed, stale, reads("b")}, refusedWriteChangesNothing},
		{false, "write 2 x=a; write 1 x=b; read x", []answer{landed, stale, {}}, refusedWriteChangesNothing},
		{false, "write 1 x=a; restart; read x", []answer{landed, none, {}}, restartKeepsWhatLanded},
		{false, `write 1 x=""; read x`, []answer{landed, {}}, emptyValuesAreValues},
		{false, "write 1 x=a; write 1 y=b; read x", []answer{landed, landed, reads("b")}, keysAreApart},
		{false, "write 1 x=a; read y", []answer{landed, reads("a")}, keysAreApart},
		{false, "write 1 x=a; fence 1; read x", []answer{landed, landed, {}}, fenceWritesNothing},
		{false, "write 1 x=a; write 1 x=b; read x", []answer{landed, landed, reads("a")}, readGivesWhatLandedLast},
		{false, "read x", []answer{{said: saidPanic}}, neverPanics},
		{true, "grant; grant; write 1 x=a", []answer{none, none, landed}, onlyTheCarriedTokenLands},
		{true, "grant; write 1 x=a", []answer{none, stale}, theCarriedTokenLands},
		{true, "grant; release; write 1 x=a", []answer{none, none, landed}, afterAReleaseNothingLands},
		{true, "grant; grant; release; write 1 x=a", []answer{none, none, none, landed}, onlyTheCarriedTokenLands},
		{true, "grant; fence 2", []answer{none, landed}, onlyTheCarriedTokenLands},
	} {
		s := spec{cas: c.cas}
		steps := script(c.script)
		for i, a := range c.answers {
			b := s.judge(steps[i], a)
			switch last := i == len(steps)-1; {
			case !last && b != nil:
				t.Errorf("%s: %v broke %v", c.script, steps[i], b.rule)
			case last && (b == nil || b.rule != c.want):
				t.Errorf("%s: breaks %v, want %v", c.script, b, c.want)
			}
		}
	}
}
