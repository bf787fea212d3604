package model

import (
	"slices"
	"strings"
	"testing"
)

func TestInvariantNamesRoundTrip(t *testing.T) {
	for v := NoInvariant; v < invariants; v++ {
		text, err := v.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Invariant
		if err := got.UnmarshalText(text); err != nil || got != v {
			t.Errorf("%s reads back as %v, %v", text, got, err)
		}
	}
}

func TestAnUnknownInvariantIsRefusedWithTheNamesThereAre(t *testing.T) {
	v := Barrier
	err := v.UnmarshalText([]byte("liveness"))
	if err == nil {
		t.Fatal("liveness is accepted")
	}
	for name := range Invariants() {
		if !strings.Contains(err.Error(), name.String()) {
			t.Errorf("%v does not offer %v", err, name)
		}
	}
	if v != Barrier {
		t.Errorf("the refused name changed the value to %v", v)
	}
}

func TestSetKeepsItsMembersInOrder(t *testing.T) {
	s := SetOf(Durability, TokenMonotonicity, Durability)
	if got := slices.Collect(s.All()); !slices.Equal(got, []Invariant{TokenMonotonicity, Durability}) {
		t.Errorf("members %v", got)
	}
	if !s.Has(Durability) || s.Has(BeliefSafety) || s.String() != "token-monotonicity, durability" {
		t.Errorf("set is %q", s)
	}
	if all := SetOf(slices.Collect(Invariants())...); len(slices.Collect(all.All())) != int(invariants)-1 {
		t.Errorf("all invariants are %v", all)
	}
	for range s.All() {
		break // leaves the iterator early
	}
}

// Every constant has a name of its own: a name forgotten would shift all
// that follow, in every file and trace.
func TestEveryConstantHasItsName(t *testing.T) {
	for _, table := range []struct {
		what  string
		names []string
		count int
		last  string
	}{
		{"invariants", invariantNames[:], int(invariants), "lockstep"},
		{"kinds of events", kindNames[:], int(kinds), "calmend"},
		{"operations", opNames[:], int(OpRead) + 1, "read"},
		{"codes", codeNames[:], int(CodeValue) + 1, "value"},
		{"reasons", reasonNames[:], int(ReasonDown) + 1, "down"},
	} {
		names := slices.Sorted(slices.Values(table.names))
		if len(names) != table.count || table.names[len(names)-1] != table.last || len(slices.Compact(names)) != table.count || slices.Contains(names, "") {
			t.Errorf("%d %s have the names %q", table.count, table.what, table.names)
		}
	}
}

func TestEveryViolationIsDescribed(t *testing.T) {
	ns := Names{{}, {"store", RoleStore}, {"storage", RoleStorage}, {"C1", RoleClient}, {"C2", RoleClient}}
	for v, want := range map[Violation]string{
		{Invariant: TokenMonotonicity, Node: 3, Token: 7, Limit: 6}:           "C1 was granted token 7 where 6 came next",
		{Invariant: StorageSafety, Node: 3, Token: 33, Limit: 34}:             "a write of C1 with token 33 landed after the storage had processed 34",
		{Invariant: BeliefSafety, Node: 4, Other: 3, Token: 34, Limit: 33}:    "C2 leads under token 34 while C1 still leads under 33",
		{Invariant: BeliefOwnership, Node: 3, Token: 33, Limit: 34}:           "C1 acts as leader under token 33, but nobody holds the lease in the store; the last token is 34",
		{Invariant: BeliefOwnership, Node: 3, Other: 4, Token: 33, Limit: 34}: "C1 acts as leader under token 33, but the store's tenure is C2 under 34",
		{Invariant: Continuity, Node: 3, Token: 35, Limit: 33}:                "C1 leads under token 35, which was led under before or follows 33 without a break",
		{Invariant: Durability, Node: 2, Value: 0, Want: 5}:                   "a read at storage gave 0, but the last landed write was 5",
		{Invariant: Availability, Want: 1_500_000_000}:                        "nobody led within 1.5s of calm",
		{Invariant: Barrier, Node: 3, Other: 4, Token: 33, Limit: 34}:         "a write of C1 with token 33 landed although C2 already led under 34",
		{Invariant: Attribution, Node: 3, Other: 4, Token: 34}:                "a write of C1 landed with token 34, which was granted to C2",
		{Invariant: Attribution, Node: 3, Token: 99}:                          "a write of C1 landed with token 99, which was granted to nobody",
		{Invariant: Attribution, Node: 3, Other: 3, Token: 34}:                "a write of C1 landed with token 34, which was granted to another incarnation of it",
		{Invariant: Lockstep, Node: 1}:                                        "store answered otherwise than its specification",
		{Invariant: Linearizability}:                                          "no order of the recorded operations explains the answers",
		{}:                                                                    "none",
	} {
		if got := v.Describe(&ns); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestNames(t *testing.T) {
	ns := Names{3: {"C1", RoleClient}}
	for got, want := range map[string]string{
		ns.Of(3):                         "C1",
		ns.Of(0):                         "nobody",
		ns.Of(4):                         "nobody",
		ns.Of(MaxNodes):                  "nobody",
		ns.Owner(Owner{}):                "nobody",
		ns.Owner(Owner{Node: 3, Seq: 2}): "C1#2",
		ns.Owner(Owner{Node: 3, Seq: 2, Boot: 1}): "C1#2.1",
		Msg{Action: 12, N: 3}.String():            "12.3",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Events also come from others, who may know more kinds or are wrong.
func TestUnknownConstantsReadAsTheirNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"op(8)": (OpRead + 1).String(), "code(13)": (CodeValue + 1).String(), "kind(27)": kinds.String(), "kind(255)": Kind(255).String(),
		"reason(8)": (ReasonDown + 1).String(), "invariant(12)": invariants.String(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
