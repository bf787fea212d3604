package storagetest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fencepost/props/kit"
)

// ruleCheck asks one rule by one or more scripts.
type ruleCheck struct {
	name  string
	own   []rule // what it convicts of
	as    rule   // the rule to name instead, if any
	needs needs
	first string // a script that must go well, if there is one, for plays to tell anything
	plays []string
}

// needs is what a check cannot do without.
type needs uint8

const (
	needsRead needs = 1 << iota
	needsFence
	needsRestart
	needsVolatile
	needsHighest // the rule of the highest token seen
	needsCarry   // compare-and-swap
)

// lacks says which of n a storage with these options does not offer, "" if it
// has all.
func (o Options) lacks(n needs) string {
	switch {
	case n&needsHighest != 0 && o.Carry != nil:
		return "the rule is compare-and-swap (Options.Carry)"
	case n&needsCarry != 0 && o.Carry == nil:
		return "the rule is that of the highest token seen (no Options.Carry)"
	case n&needsRead != 0 && o.NoRead:
		return "the storage cannot be read (Options.NoRead)"
	case n&needsFence != 0 && o.NoFence:
		return "the storage has no barrier (Options.NoFence)"
	case n&needsVolatile != 0 && !o.Volatile:
		return "the storage does not forget at a restart (no Options.Volatile)"
	case n&needsRestart != 0 && o.Volatile:
		return "the storage forgets at a restart (Options.Volatile)"
	}
	return ""
}

// highestChecks ask a storage that goes by the highest token seen.
var highestChecks = []ruleCheck{
	{name: "rules/lower-token-is-refused", own: []rule{lowerTokenIsRefused}, plays: []string{
		"write 2 x=new; write 1 x=old; write 2 x=newer; write 1 x=old",
		"write 2 x=new; write 3 x=newer; write 2 x=old",
	}},
	{name: "rules/equal-token-lands", own: []rule{equalTokenLands}, plays: []string{"write 1 x=first; write 1 x=second; write 1 y=third; read x; read y", "fence 1; fence 1; write 1 x=first; fence 1"}},
	{name: "rules/higher-token-lands", own: []rule{higherTokenLands}, plays: []string{
		"write 1 x=old; write 2 x=new; read x",
		"write 1 x=old; fence 2; write 5 x=newer; read x",
		"fence 1; fence 3; write 4 x=new",
	}},
	{name: "rules/one-guard-for-all-keys", own: []rule{oneGuardForAllKeys}, plays: []string{
		"write 2 x=new; write 1 y=old",
		"write 1 y=base; write 2 x=new; write 1 y=old",
	}},
	{name: "rules/fence-bars-lower-tokens", own: []rule{fenceBarsLowerTokens}, needs: needsFence, plays: []string{
		"fence 2; write 1 x=old",
		"write 1 x=base; fence 2; write 1 x=old; read x",
	}},
	{name: "rules/fence-of-a-lower-token-is-refused", own: []rule{fenceOfALowerTokenIsRefused}, needs: needsFence, plays: []string{
		"fence 2; fence 1",
		"write 2 x=new; fence 1",
		"fence 2; fence 1; write 1 x=old",
	}},
	{name: "rules/token-zero-is-refused", own: []rule{tokenZeroIsRefused}, plays: []string{"write 0 x=old", "write 1 x=new; write 0 x=old", "fence 0"}},
	{name: "rules/refused-write-changes-nothing", own: []rule{refusedWriteChangesNothing}, needs: needsRead, plays: []string{
		"write 2 x=new; write 1 x=old; read x",
		"write 2 x=new; write 1 y=old; read y; read x",
		"fence 2; write 1 x=old; read x",
		"write 2 x=new; write 0 x=old; read x",
	}},
	{name: "rules/read-gives-what-landed-last", own: []rule{readGivesWhatLandedLast}, needs: needsRead, plays: []string{
		"read x; write 1 x=first; read x; write 1 x=second; read x; write 2 x=third; read x; read x; read y",
	}},
	{name: "rules/fence-writes-nothing", own: []rule{fenceWritesNothing}, needs: needsFence | needsRead, plays: []string{"fence 1; read x; write 1 x=new; fence 1; read x; fence 2; read x"}},
	{name: "rules/keys-are-apart", own: []rule{keysAreApart}, needs: needsRead, plays: []string{"write 1 x=this; write 1 y=that; read x; read y; write 2 x=other; read y; read x"}},
	{name: "rules/empty-values-are-values", own: []rule{emptyValuesAreValues}, needs: needsRead, plays: []string{`write 1 x=""; read x; write 1 y=this; write 1 y=""; read y; read z`}},
	{name: "rules/refusal-matches-ErrStale", own: []rule{refusalMatchesErrStale}, plays: []string{"write 2 x=new; write 1 x=old", "write 2 x=new; fence 1", "fence 2; fence 1"}},
	{name: "rules/refusal-names-the-highest", own: []rule{refusalNamesTheHighest}, plays: []string{"write 3 x=new; write 2 x=old", "write 2 x=new; write 3 y=newer; fence 1"}},
}

// highestRestarts ask the same storage about restarts.
var highestRestarts = []ruleCheck{
	{name: "restarts/restart-keeps-the-highest-token", own: []rule{restartKeepsTheHighestToken}, needs: needsRestart, plays: []string{
		"write 2 x=new; restart; write 1 x=old",
		"write 2 x=new; restart; write 1 y=old",
		"write 2 x=new; write 3 y=new; restart; restart; write 2 x=old",
	}},
	{name: "restarts/restart-keeps-a-fence", own: []rule{restartKeepsTheHighestToken}, needs: needsRestart | needsFence, plays: []string{
		"fence 2; restart; write 1 x=old",
		"write 1 x=base; fence 2; restart; write 1 x=old",
		"fence 2; restart; fence 1",
	}},
	{name: "restarts/restart-keeps-what-landed", own: []rule{restartKeepsWhatLanded}, needs: needsRestart | needsRead, plays: []string{
		"write 1 x=new; restart; read x; read y",
		`write 1 x=old; write 1 x=new; write 1 y=""; restart; read x; read y; write 1 x=newer; restart; read x`,
	}},
	{name: "restarts/refused-write-stays-refused", own: []rule{refusedWriteChangesNothing, restartKeepsWhatLanded}, needs: needsRestart | needsRead, plays: []string{
		"write 2 x=new; write 1 x=old; restart; read x",
		"write 2 x=new; write 1 y=old; restart; read y",
	}},
	{name: "restarts/holder-goes-on", own: []rule{equalTokenLands, higherTokenLands}, needs: needsRestart, plays: []string{"write 2 x=new; restart; write 2 x=newer; restart; write 3 x=newest", "fence 2; restart; fence 2; write 2 x=new"}},
}

// carryChecks ask a storage that compares with the lease.
var carryChecks = []ruleCheck{
	{name: "rules/only-the-carried-token-lands", own: []rule{onlyTheCarriedTokenLands}, plays: []string{
		"grant; grant; write 1 x=old",
		"grant; write 1 x=base; grant; write 1 x=old",
		"grant; write 2 x=forged",
		"write 1 x=forged",
	}},
	{name: "rules/the-carried-token-lands", own: []rule{theCarriedTokenLands}, plays: []string{"grant; write 1 x=first; write 1 x=second; grant; write 2 x=third; write 2 y=fourth; release; grant; write 3 x=fifth; read x"}},
	{name: "rules/after-a-release-nothing-lands", own: []rule{afterAReleaseNothingLands}, plays: []string{"grant; release; write 1 x=old", "grant; write 1 x=new; release; write 1 y=old", "grant; grant; release; write 1 x=old"}},
	{name: "rules/fence-needs-the-carried-token", own: []rule{onlyTheCarriedTokenLands, theCarriedTokenLands, afterAReleaseNothingLands}, needs: needsFence, plays: []string{"grant; fence 1; fence 1; write 1 x=new", "grant; grant; fence 1", "grant; release; fence 1", "grant; fence 2"}},
	{name: "rules/token-zero-is-refused", own: []rule{tokenZeroIsRefused}, plays: []string{"write 0 x=old", "grant; write 0 x=old", "grant; release; write 0 x=old", "grant; fence 0"}},
	{name: "rules/refused-write-changes-nothing", own: []rule{refusedWriteChangesNothing}, needs: needsRead, plays: []string{"grant; write 1 x=new; grant; write 1 x=old; read x", "grant; write 1 x=new; release; write 1 x=old; write 1 y=old; read x; read y"}},
	{name: "rules/read-gives-what-landed-last", own: []rule{readGivesWhatLandedLast}, needs: needsRead, plays: []string{"read x; grant; write 1 x=first; read x; write 1 x=second; read x; grant; read x; write 2 x=third; release; read x; read y"}},
	{name: "rules/fence-writes-nothing", own: []rule{fenceWritesNothing}, needs: needsFence | needsRead, plays: []string{"grant; fence 1; read x; write 1 x=new; fence 1; read x"}},
	{name: "rules/keys-are-apart", own: []rule{keysAreApart}, needs: needsRead, plays: []string{"grant; write 1 x=this; write 1 y=that; read x; read y; grant; write 2 x=other; read y; read x"}},
	{name: "rules/empty-values-are-values", own: []rule{emptyValuesAreValues}, needs: needsRead, plays: []string{`grant; write 1 x=""; read x; write 1 y=this; write 1 y=""; read y; read z`}},
	{name: "rules/refusal-matches-ErrStale", own: []rule{refusalMatchesErrStale}, plays: []string{"grant; grant; write 1 x=old; release; write 2 x=old"}},
	{name: "restarts/restart-keeps-the-lease", own: []rule{onlyTheCarriedTokenLands, theCarriedTokenLands, afterAReleaseNothingLands}, needs: needsRestart, plays: []string{
		"grant; grant; restart; write 1 x=old; write 2 x=new",
		"grant; release; restart; write 1 x=old",
	}},
	{name: "restarts/restart-keeps-what-landed", own: []rule{restartKeepsWhatLanded}, needs: needsRestart | needsRead, plays: []string{`grant; write 1 x=new; write 1 y=""; restart; read x; read y; write 1 x=newer; restart; read x`}},
}

// integerChecks are rules/tokens-compare-as-integers: numbers that are in order
// as integers and not, or not apart, in other forms.
func integerChecks(o Options) ruleCheck {
	c := ruleCheck{
		name:  "rules/tokens-compare-as-integers",
		own:   []rule{lowerTokenIsRefused, equalTokenLands, higherTokenLands, fenceOfALowerTokenIsRefused},
		as:    tokensCompareAsIntegers,
		first: "write 1 x=old; write 2 x=new; write 1 x=old; fence 2; write 2 x=newer",
	}
	for _, n := range []uint64{9, 99, 255, 1<<15 - 1, 1<<16 - 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<32 + 1, 1 << 53, uint64(o.max()) - 1} {
		if n < o.max() {
			c.plays = append(c.plays, fmt.Sprintf("write %d x=old; write %d x=new; write %d x=old; fence %d; write %d x=newer", n, n+1, n, n+1, n+1))
		}
	}
	// Cut to 32 bits the higher one is the lower one.
	if o.max() > math.MaxUint32+2 {
		c.plays = append(c.plays, fmt.Sprintf("write %d x=new; write 2 x=old", uint64(1<<32+1)), fmt.Sprintf("write 2 x=old; write %d x=new; read x", uint64(1<<32+1)))
	}
	return c
}

// court tries one storage.
type court struct {
	open  opener
	o     Options
	rules []ruleCheck
}

// newCourt is the court of a storage with these options.
func newCourt(open opener, o Options) court {
	if o.Carry != nil {
		return court{open, o, carryChecks}
	}
	return court{open, o, slices.Concat(highestChecks, []ruleCheck{integerChecks(o)}, highestRestarts)}
}

// try asks c.
func (t court) try(c ruleCheck) kit.Outcome {
	if why := t.o.lacks(c.needs); why != "" {
		return kit.Outcome{Skipped: why}
	}
	if c.first != "" {
		if out := t.first(c.first); out != nil {
			return *out
		}
	}
	if r, ok := t.run(c); !ok {
		if slices.Contains(c.own, r.breach.rule) {
			return kit.Outcome{Failure: r.failure(t.o, c.as)}
		}
		return t.elsewhere(r)
	}
	return kit.Outcome{Covered: counted(len(c.plays), "script")}
}

// run plays c's scripts up to the first that breaks a rule.
func (t court) run(c ruleCheck) (r result, ok bool) {
	for _, text := range c.plays {
		if r = play(t.open, t.o, script(text)); r.breach != nil {
			return r, false
		}
	}
	return r, true
}

// first plays what must go well before a check can tell anything, nil if it
// does. The script is for the rule of the highest token.
func (t court) first(text string) *kit.Outcome {
	if t.o.Carry != nil {
		text = "grant; " + strings.ReplaceAll(text, "fence 2", "grant; fence 2")
	}
	if r := play(t.open, t.o, script(text)); r.breach != nil {
		out := t.elsewhere(r)
		return &out
	}
	return nil
}

// elsewhere is what becomes of a check that a breach of another rule stopped.
// It names the check of that rule; where there is none that convicts, the breach
// is told here, so that none goes unreported.
func (t court) elsewhere(r result) kit.Outcome {
	for _, c := range t.rules {
		if c.as != noRule || !slices.Contains(c.own, r.breach.rule) || t.o.lacks(c.needs) != "" {
			continue
		}
		if found, ok := t.run(c); !ok && slices.Contains(c.own, found.breach.rule) {
			return kit.Outcome{Skipped: fmt.Sprintf("not reached: the storage breaks %v first, see %s", r.breach.rule, c.name)}
		}
	}
	return kit.Outcome{Failure: r.failure(t.o, noRule)}
}

// counted is n of what, "script" for one of which the plural is "scripts".
func counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "y"):
		what = strings.TrimSuffix(what, "y") + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
