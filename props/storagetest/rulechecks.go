package storagetest

import (
	"fmt"
	"math"
	"strings"

	"fencepost/props/kit"
)

// ruleCheck asks one rule by one or more scripts.
type ruleCheck struct {
	name  string
	needs needs
	as    rule // the rule to name, if it is not the one that a script finds broken
	plays []string
}

// needs is what a check cannot do without.
type needs uint8

const (
	needsRead needs = 1 << iota
	needsFence
	needsRestart
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
	case n&needsRestart != 0 && o.Volatile:
		return "the storage forgets at a restart (Options.Volatile)"
	}
	return ""
}

// highestChecks ask a storage that goes by the highest token seen.
var highestChecks = []ruleCheck{
	{name: "rules/lower-token-is-refused", plays: []string{
		"write 2 x=new; write 1 x=old",
		"write 2 x=new; write 3 x=newer; write 2 x=old",
	}},
	{name: "rules/equal-token-lands", plays: []string{"write 1 x=first; write 1 x=second; write 1 y=third; read x; read y", "fence 1; fence 1; write 1 x=first; fence 1"}},
	{name: "rules/higher-token-lands", plays: []string{
		"write 1 x=old; write 2 x=new; read x",
		"write 1 x=old; fence 2; write 5 x=newer; read x",
		"fence 1; fence 3; write 4 x=new",
	}},
	{name: "rules/one-guard-for-all-keys", plays: []string{
		"write 2 x=new; write 1 y=old",
		"write 1 y=base; write 2 x=new; write 1 y=old",
	}},
	{name: "rules/fence-bars-lower-tokens", needs: needsFence, plays: []string{
		"fence 2; write 1 x=old",
		"write 1 x=base; fence 2; write 1 x=old; read x",
	}},
	{name: "rules/fence-of-a-lower-token-is-refused", needs: needsFence, plays: []string{
		"fence 2; fence 1",
		"write 2 x=new; fence 1",
		"fence 2; fence 1; write 1 x=old",
	}},
	{name: "rules/token-zero-is-refused", plays: []string{"write 0 x=old", "write 1 x=new; write 0 x=old", "fence 0"}},
	{name: "rules/refused-write-changes-nothing", needs: needsRead, plays: []string{
		"write 2 x=new; write 1 x=old; read x",
		"write 2 x=new; write 1 y=old; read y; read x",
		"fence 2; write 1 x=old; read x",
		"write 2 x=new; write 0 x=old; read x",
	}},
	{name: "rules/read-gives-what-landed-last", needs: needsRead, plays: []string{
		"read x; write 1 x=first; read x; write 1 x=second; read x; write 2 x=third; read x; read x; read y",
	}},
	{name: "rules/fence-writes-nothing", needs: needsFence | needsRead, plays: []string{"fence 1; read x; write 1 x=new; fence 1; read x; fence 2; read x"}},
	{name: "rules/keys-are-apart", needs: needsRead, plays: []string{"write 1 x=this; write 1 y=that; read x; read y; write 2 x=other; read y; read x"}},
	{name: "rules/empty-values-are-values", needs: needsRead, plays: []string{`write 1 x=""; read x; write 1 y=this; write 1 y=""; read y; read z`}},
	{name: "rules/refusal-matches-ErrStale", plays: []string{"write 3 x=new; write 2 x=old; write 1 y=old; write 3 x=newer"}},
}

// highestRestarts ask the same storage about restarts.
var highestRestarts = []ruleCheck{
	{name: "restarts/restart-keeps-the-highest-token", needs: needsRestart, plays: []string{
		"write 2 x=new; restart; write 1 x=old",
		"write 2 x=new; restart; write 1 y=old",
		"write 2 x=new; write 3 y=new; restart; restart; write 2 x=old",
	}},
	{name: "restarts/restart-keeps-a-fence", needs: needsRestart | needsFence, plays: []string{
		"fence 2; restart; write 1 x=old",
		"write 1 x=base; fence 2; restart; write 1 x=old",
		"fence 2; restart; fence 1",
	}},
	{name: "restarts/restart-keeps-what-landed", needs: needsRestart | needsRead, plays: []string{
		"write 1 x=new; restart; read x; read y",
		`write 1 x=old; write 1 x=new; write 1 y=""; restart; read x; read y; write 1 x=newer; restart; read x`,
	}},
	{name: "restarts/refused-write-stays-refused", needs: needsRestart | needsRead, plays: []string{
		"write 2 x=new; write 1 x=old; restart; read x",
		"write 2 x=new; write 1 y=old; restart; read y",
	}},
	{name: "restarts/holder-goes-on", needs: needsRestart, plays: []string{"write 2 x=new; restart; write 2 x=newer; restart; write 3 x=newest", "fence 2; restart; fence 2; write 2 x=new"}},
}

// carryChecks ask a storage that compares with the lease.
var carryChecks = []ruleCheck{
	{name: "rules/only-the-carried-token-lands", plays: []string{
		"grant; grant; write 1 x=old",
		"grant; write 1 x=base; grant; write 1 x=old",
		"grant; write 2 x=forged",
		"write 1 x=forged",
	}},
	{name: "rules/the-carried-token-lands", plays: []string{"grant; write 1 x=first; write 1 x=second; grant; write 2 x=third; write 2 y=fourth; release; grant; write 3 x=fifth; read x"}},
	{name: "rules/after-a-release-nothing-lands", plays: []string{"grant; release; write 1 x=old", "grant; write 1 x=new; release; write 1 y=old", "grant; grant; release; write 1 x=old"}},
	{name: "rules/fence-needs-the-carried-token", needs: needsFence, plays: []string{"grant; fence 1; fence 1; write 1 x=new", "grant; grant; fence 1", "grant; release; fence 1", "grant; fence 2"}},
	{name: "rules/token-zero-is-refused", plays: []string{"write 0 x=old", "grant; write 0 x=old", "grant; release; write 0 x=old", "grant; fence 0"}},
	{name: "rules/refused-write-changes-nothing", needs: needsRead, plays: []string{"grant; write 1 x=new; grant; write 1 x=old; read x", "grant; write 1 x=new; release; write 1 x=old; write 1 y=old; read x; read y"}},
	{name: "rules/read-gives-what-landed-last", needs: needsRead, plays: []string{"read x; grant; write 1 x=first; read x; write 1 x=second; read x; grant; read x; write 2 x=third; release; read x; read y"}},
	{name: "rules/fence-writes-nothing", needs: needsFence | needsRead, plays: []string{"grant; fence 1; read x; write 1 x=new; fence 1; read x"}},
	{name: "rules/keys-are-apart", needs: needsRead, plays: []string{"grant; write 1 x=this; write 1 y=that; read x; read y; grant; write 2 x=other; read y; read x"}},
	{name: "rules/empty-values-are-values", needs: needsRead, plays: []string{`grant; write 1 x=""; read x; write 1 y=this; write 1 y=""; read y; read z`}},
	{name: "rules/refusal-matches-ErrStale", plays: []string{"grant; grant; write 1 x=old; release; write 2 x=old"}},
	{name: "restarts/restart-keeps-the-lease", needs: needsRestart, plays: []string{
		"grant; grant; restart; write 1 x=old; write 2 x=new",
		"grant; release; restart; write 1 x=old",
	}},
	{name: "restarts/restart-keeps-what-landed", needs: needsRestart | needsRead, plays: []string{`grant; write 1 x=new; write 1 y=""; restart; read x; read y; write 1 x=newer; restart; read x`}},
}

// integerChecks are rules/tokens-compare-as-integers: numbers that are in order
// as integers and not, or not apart, in other forms.
func integerChecks(o Options) ruleCheck {
	c := ruleCheck{name: "rules/tokens-compare-as-integers", as: tokensCompareAsIntegers, needs: needsHighest}
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

// check is c as it is asked of a storage.
func (c ruleCheck) check(open opener, o Options) kit.Check {
	return kit.Check{Name: c.name, Run: func() kit.Outcome {
		if why := o.lacks(c.needs); why != "" {
			return kit.Outcome{Skipped: why}
		}
		return attempt(func() kit.Outcome {
			for _, text := range c.plays {
				r := play(open, o, script(text))
				if f := r.failure(o, c.as); f != nil {
					return kit.Outcome{Failure: f}
				}
			}
			return kit.Outcome{Covered: counted(len(c.plays), "script")}
		})
	}}
}

// attempt runs a check, which comes to nothing if the storage could not be set
// up.
func attempt(f func() kit.Outcome) (out kit.Outcome) {
	if err := kit.Attempt(func() { out = f() }); err != nil {
		return kit.Outcome{Unknown: err.Error()}
	}
	return out
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
