package model_test

import (
	"math"
	"testing"

	"fencepost/model"
)

// The parties of the sequences below.
const (
	theStore   model.Node = 1
	theStorage model.Node = 2
	a          model.Node = 3 // clients
	b          model.Node = 4
	raw        model.Node = 5
)

var parties = [model.MaxNodes]model.Role{theStore: model.RoleStore, theStorage: model.RoleStorage,
	a: model.RoleClient, b: model.RoleClient, raw: model.RoleRaw}

func owner(n model.Node, seq uint32) model.Owner { return model.Owner{Node: n, Seq: seq} }

// The events of the sequences below. An owner is written as client and
// incarnation.

func handled(n model.Node, seq uint32, op model.Op, code model.Code, token uint64) model.Event {
	return model.Event{Kind: model.KindHandle, Node: theStore, Peer: n, Owner: owner(n, seq), Op: op, Asked: token, Code: code, Token: token}
}

func granted(n model.Node, seq uint32, token uint64) model.Event {
	return handled(n, seq, model.OpAcquire, model.CodeGranted, token)
}

func renewed(n model.Node, seq uint32, token uint64) model.Event {
	return handled(n, seq, model.OpRenew, model.CodeGranted, token)
}

func released(n model.Node, seq uint32, token uint64) model.Event {
	return handled(n, seq, model.OpRelease, model.CodeReleased, token)
}

func atStorage(n model.Node, op model.Op, code model.Code, token uint64, value int64) model.Event {
	return model.Event{Kind: model.KindHandle, Node: theStorage, Peer: n, Owner: owner(n, 1), Op: op, Asked: token, Code: code, Value: value}
}

func landed(n model.Node, token uint64) model.Event {
	return atStorage(n, model.OpWrite, model.CodeLanded, token, 0)
}

func stale(n model.Node, token uint64) model.Event {
	return atStorage(n, model.OpWrite, model.CodeStale, token, 0)
}

func fenced(n model.Node, token uint64) model.Event {
	return atStorage(n, model.OpFence, model.CodeFenced, token, 0)
}

func valueRead(value int64) model.Event {
	return atStorage(raw, model.OpRead, model.CodeValue, 0, value)
}

func valueLanded(token uint64, key uint8, value int64) model.Event {
	e := atStorage(raw, model.OpWrite, model.CodeLanded, token, value)
	e.Key = key
	return e
}

func termOf(k model.Kind, n model.Node, seq uint32, token uint64) model.Event {
	return model.Event{Kind: k, Node: n, Owner: owner(n, seq), Token: token}
}

func leads(n model.Node, seq uint32, token uint64) model.Event {
	return termOf(model.KindLead, n, seq, token)
}

func stepsDown(n model.Node, seq uint32, token uint64) model.Event {
	return termOf(model.KindStepDown, n, seq, token)
}

func resigns(n model.Node, seq uint32, token uint64) model.Event {
	return termOf(model.KindResign, n, seq, token)
}

func crashes(n model.Node) model.Event { return model.Event{Kind: model.KindCrash, Node: n} }

func lapses(n model.Node, seq uint32, token uint64) model.Event {
	return model.Event{Kind: model.KindLapse, Node: theStore, Holder: owner(n, seq), Token: token}
}

func deleted() model.Event { return model.Event{Kind: model.KindDelete, Node: theStore} }

// storeRestarts with the tenure of n, of nobody where n is zero.
func storeRestarts(n model.Node, seq uint32, token uint64) model.Event {
	return model.Event{Kind: model.KindRestart, Node: theStore, Holder: owner(n, seq), Token: token}
}

func storageRestarts(highest uint64) model.Event {
	return model.Event{Kind: model.KindRestart, Node: theStorage, Token: highest}
}

// slow marks the clocks of ns as beyond the bound.
func slow(e model.Event, ns ...model.Node) model.Event {
	for _, n := range ns {
		e.Slow |= 1 << n
	}
	return e
}

func observe(cfg model.MonitorConfig, events []model.Event) model.Monitor {
	cfg.Roles = parties
	m := model.NewMonitor(cfg)
	for i := range events {
		e := events[i]
		e.Action = int32(i + 1)
		m.Observe(&e)
	}
	return m
}

type sequence struct {
	name   string
	cfg    model.MonitorConfig
	events []model.Event
	want   model.Set // what the last event breaks
	first  model.Violation
	waived model.Set
}

// check runs each sequence, whose last event alone may break something.
func check(t *testing.T, sequences []sequence) {
	t.Helper()
	for _, s := range sequences {
		t.Run(s.name, func(t *testing.T) {
			before := observe(s.cfg, s.events[:len(s.events)-1])
			if before.Violated() != 0 {
				t.Fatalf("%v broke too early: %+v", before.Violated(), before.First())
			}
			m := observe(s.cfg, s.events)
			if m.Violated() != s.want {
				t.Fatalf("violated %v, want %v", m.Violated(), s.want)
			}
			if m.Waived() != s.waived {
				t.Errorf("waived %v, want %v", m.Waived(), s.waived)
			}
			if s.first != (model.Violation{}) {
				s.first.Action = int32(len(s.events))
				if m.First() != s.first {
					t.Errorf("first violation\n%+v, want\n%+v", m.First(), s.first)
				}
			}
		})
	}
}

func set(vs ...model.Invariant) model.Set { return model.SetOf(vs...) }

func TestEachChangeOfOwnershipGetsTheNextToken(t *testing.T) {
	breaks := func(token, next uint64, n model.Node) model.Violation {
		return model.Violation{Invariant: model.TokenMonotonicity, Node: n, Token: token, Limit: next}
	}
	broken := set(model.TokenMonotonicity)
	rising := model.MonitorConfig{Rising: true}
	check(t, []sequence{
		{name: "the first grant is 1", events: []model.Event{granted(a, 1, 1)}},
		{name: "the first grant is 2", events: []model.Event{granted(a, 1, 2)}, want: broken, first: breaks(2, 1, a)},
		{name: "the first grant is 0", events: []model.Event{granted(a, 1, 0)}, want: broken, first: breaks(0, 1, a)},
		{name: "the first grant is the configured one", cfg: model.MonitorConfig{First: 33}, events: []model.Event{granted(a, 1, 33), lapses(a, 1, 33), granted(b, 1, 34)}},
		{name: "the first grant is below the configured one", cfg: model.MonitorConfig{First: 33}, events: []model.Event{granted(a, 1, 1)}, want: broken, first: breaks(1, 33, a)},
		{name: "a retry and a renewal while held keep the token", events: []model.Event{granted(a, 1, 1), granted(a, 1, 1), renewed(a, 1, 1)}},
		{name: "next after a release", events: []model.Event{granted(a, 1, 1), released(a, 1, 1), granted(b, 1, 2)}},
		{name: "next after a lapse, for the same holder", events: []model.Event{granted(a, 1, 1), lapses(a, 1, 1), granted(a, 1, 2)}},
		{name: "next after a deletion", events: []model.Event{granted(a, 1, 1), deleted(), granted(a, 2, 2)}},
		{name: "next after a restart that remembers", events: []model.Event{granted(a, 1, 1), storeRestarts(a, 1, 1), renewed(a, 1, 1), lapses(a, 1, 1), granted(b, 1, 2)}},
		{name: "next although the holder before still holds", events: []model.Event{granted(a, 1, 1), granted(b, 1, 2)}},
		{name: "reused after a release", events: []model.Event{granted(a, 1, 1), released(a, 1, 1), granted(b, 1, 1)}, want: broken, first: breaks(1, 2, b)},
		{name: "reused after a lapse by the same holder", events: []model.Event{granted(a, 1, 1), lapses(a, 1, 1), granted(a, 1, 1)}, want: broken, first: breaks(1, 2, a)},
		{name: "renewed after a lapse", events: []model.Event{granted(a, 1, 1), lapses(a, 1, 1), renewed(a, 1, 1)}, want: broken, first: breaks(1, 2, a)},
		{name: "renewed by another", events: []model.Event{granted(a, 1, 1), renewed(b, 1, 1)}, want: broken, first: breaks(1, 2, b)},
		{name: "renewed by another incarnation", events: []model.Event{granted(a, 1, 1), renewed(a, 2, 1)}, want: broken, first: breaks(1, 2, a)},
		{name: "given to two", events: []model.Event{granted(a, 1, 1), granted(b, 1, 1)}, want: broken, first: breaks(1, 2, b)},
		{name: "starts again after a deletion", events: []model.Event{granted(a, 1, 1), released(a, 1, 1), granted(b, 1, 2), deleted(), granted(a, 2, 1)}, want: broken, first: breaks(1, 3, a)},
		{name: "starts again after a restart", events: []model.Event{granted(a, 1, 1), storeRestarts(0, 0, 0), granted(b, 1, 1)}, want: broken, first: breaks(1, 2, b)},
		{name: "skips one", events: []model.Event{granted(a, 1, 1), released(a, 1, 1), granted(b, 1, 3)}, want: broken, first: breaks(3, 2, b)},
		{name: "rising may skip", cfg: rising, events: []model.Event{granted(a, 1, 7), released(a, 1, 7), granted(b, 1, 4711)}},
		{name: "rising may not repeat", cfg: rising, events: []model.Event{granted(a, 1, 7), released(a, 1, 7), granted(b, 1, 7)}, want: broken, first: breaks(7, 8, b)},
		{name: "rising may not fall", cfg: rising, events: []model.Event{granted(a, 1, 7), released(a, 1, 7), granted(b, 1, 6)}, want: broken, first: breaks(6, 8, b)},
		{name: "a refusal grants nothing", events: []model.Event{granted(a, 1, 1), handled(b, 1, model.OpAcquire, model.CodeHeld, 1), handled(b, 1, model.OpGet, model.CodeHeld, 1), handled(b, 1, model.OpRenew, model.CodeLost, 9)}},
	})
}

func TestARestartCannotChangeOwnership(t *testing.T) {
	broken := set(model.TokenMonotonicity)
	breaks := func(n model.Node, token, next uint64) model.Violation {
		return model.Violation{Invariant: model.TokenMonotonicity, Node: n, Token: token, Limit: next}
	}
	check(t, []sequence{
		{name: "to its holder", events: []model.Event{granted(a, 1, 1), storeRestarts(a, 1, 1)}},
		{name: "again and again", events: []model.Event{granted(a, 1, 1), storeRestarts(a, 1, 1), storeRestarts(a, 1, 1)}},
		{name: "to its holder, whose lapse nobody was told of", events: []model.Event{granted(a, 1, 1), lapses(a, 1, 1), storeRestarts(a, 1, 1)}},
		{name: "to nobody", events: []model.Event{granted(a, 1, 1), storeRestarts(0, 0, 1)}},
		{name: "to another", events: []model.Event{granted(a, 1, 1), storeRestarts(b, 1, 1)}, want: broken, first: breaks(b, 1, 2)},
		{name: "to another incarnation", events: []model.Event{granted(a, 1, 1), storeRestarts(a, 2, 1)}, want: broken, first: breaks(a, 1, 2)},
		{name: "under another token", events: []model.Event{granted(a, 1, 1), storeRestarts(a, 1, 2)}, want: broken, first: breaks(a, 2, 2)},
		{name: "to somebody who never held it", events: []model.Event{storeRestarts(a, 1, 0)}, want: broken, first: breaks(a, 0, 1)},
		{name: "to the holder before", events: []model.Event{granted(a, 1, 1), released(a, 1, 1), granted(b, 1, 2), storeRestarts(a, 1, 1)}, want: broken, first: breaks(a, 1, 3)},
		{name: "to whom released it", events: []model.Event{granted(a, 1, 1), released(a, 1, 1), storeRestarts(a, 1, 1)}, want: broken, first: breaks(a, 1, 2)},
		{name: "to whom it was taken from", events: []model.Event{granted(a, 1, 1), deleted(), storeRestarts(a, 1, 1)}, want: broken, first: breaks(a, 1, 2)},
		{name: "to whom it was taken from after the lapse", events: []model.Event{granted(a, 1, 1), lapses(a, 1, 1), deleted(), storeRestarts(a, 1, 1)}, want: broken},
		{name: "to whom it had forgotten", events: []model.Event{granted(a, 1, 1), storeRestarts(0, 0, 1), storeRestarts(a, 1, 1)}, want: broken},
		{name: "to a new holder after a release", events: []model.Event{granted(a, 1, 1), released(a, 1, 1), granted(b, 1, 2), storeRestarts(b, 1, 2)}},
	})
}

func TestEventsOfNoNodeAreIgnored(t *testing.T) {
	for _, n := range []model.Node{model.MaxNodes, math.MaxUint8} {
		for k := range 40 {
			for _, e := range []model.Event{{Kind: model.Kind(k), Node: n}, {Kind: model.Kind(k), Node: theStore, Owner: owner(n, 1), Holder: owner(n, 1), Code: model.CodeGranted},
				{Kind: model.Kind(k), Node: theStorage, Owner: owner(n, 1), Code: model.CodeLanded}} {
				if m := observe(model.MonitorConfig{}, []model.Event{e}); e.Node == n && m != observe(model.MonitorConfig{}, nil) {
					t.Errorf("%+v is not ignored", e)
				}
			}
		}
	}
}

func TestNoWriteLandsBelowATokenThatStorageProcessed(t *testing.T) {
	broken := set(model.StorageSafety)
	// a has had 1, b has 2.
	took := []model.Event{granted(a, 1, 1), lapses(a, 1, 1), granted(b, 1, 2)}
	after := func(es ...model.Event) []model.Event { return append(took[:3:3], es...) }
	check(t, []sequence{
		{name: "a zombie after the successor's write", events: after(landed(b, 2), landed(a, 1)), want: broken,
			first: model.Violation{Invariant: model.StorageSafety, Node: a, Token: 1, Limit: 2}},
		{name: "a zombie after the successor's fence", events: after(fenced(b, 2), landed(a, 1)), want: broken},
		{name: "a zombie's fence is no write", events: after(landed(b, 2), fenced(a, 1))},
		{name: "a zombie's write after its fence", events: after(landed(b, 2), fenced(a, 1), landed(a, 1)), want: broken},
		{name: "a zombie after a restart of the storage", events: after(landed(b, 2), storageRestarts(0), landed(a, 1)), want: broken},
		{name: "below a forged token", events: after(landed(raw, 9), landed(b, 2)), want: broken},
		{name: "clocks and operators excuse nothing", events: after(deleted(), landed(b, 2), slow(landed(a, 1), a, b)), want: broken},
		{name: "refused", events: after(landed(b, 2), stale(a, 1))},
		{name: "an equal token", events: after(landed(b, 2), landed(b, 2), fenced(b, 2), landed(b, 2))},
		{name: "a zombie before the successor's first write", events: after(landed(a, 1), landed(b, 2))},
		{name: "a refused higher token is not processed", events: after(stale(b, 2), landed(a, 1))},
	})
}

func TestAtMostOneClientLeads(t *testing.T) {
	broken := set(model.BeliefSafety)
	// Only the one invariant, so that ownership does not speak first.
	only := model.MonitorConfig{Only: broken}
	check(t, []sequence{
		{name: "two at once", cfg: only, events: []model.Event{leads(a, 1, 1), leads(b, 1, 2)}, want: broken,
			first: model.Violation{Invariant: model.BeliefSafety, Node: b, Other: a, Token: 2, Limit: 1}},
		{name: "one after the other at one instant", cfg: only, events: []model.Event{leads(a, 1, 1), stepsDown(a, 1, 1), leads(b, 1, 2)}},
		{name: "the other crashed", cfg: only, events: []model.Event{leads(a, 1, 1), crashes(a), leads(b, 1, 2)}},
		{name: "the other only resigned: its work goes on", cfg: only, events: []model.Event{leads(a, 1, 1), resigns(a, 1, 1), leads(b, 1, 2)}, want: broken},
		{name: "the other waits for the barrier", cfg: only, events: []model.Event{leads(a, 1, 1), termOf(model.KindFencing, b, 1, 2)}},
		{name: "after two years of nobody", cfg: only, events: []model.Event{leads(a, 1, 1), stepsDown(a, 1, 1), {Kind: model.KindHeal, At: math.MaxInt64}, leads(b, 1, 2)}},
	})
}

func TestWhoeverLeadsHoldsTheLease(t *testing.T) {
	broken := set(model.BeliefOwnership)
	led := []model.Event{granted(a, 1, 1), leads(a, 1, 1)}
	then := func(es ...model.Event) []model.Event { return append(led[:2:2], es...) }
	breaks := func(other model.Node, limit uint64) model.Violation {
		return model.Violation{Invariant: model.BeliefOwnership, Node: a, Other: other, Token: 1, Limit: limit}
	}
	check(t, []sequence{
		{name: "leads without a grant", events: []model.Event{leads(a, 1, 1)}, want: broken, first: breaks(0, 0)},
		{name: "leads under another token", events: []model.Event{granted(a, 1, 1), leads(a, 1, 2)}, want: broken},
		{name: "leads as another incarnation", events: []model.Event{granted(a, 1, 1), leads(a, 2, 1)}, want: broken},
		{name: "leads after a restart as the process before", events: []model.Event{granted(a, 1, 1), leadsAsBoot(a, 1)}, want: broken},
		{name: "leads with what another holds", events: []model.Event{granted(a, 1, 1), leads(b, 1, 1)}, want: broken,
			first: model.Violation{Invariant: model.BeliefOwnership, Node: b, Other: a, Token: 1, Limit: 1}},
		{name: "leads while it holds", events: then(renewed(a, 1, 1), granted(a, 1, 1))},
		{name: "stays past the lapse", events: then(lapses(a, 1, 1)), want: broken, first: breaks(0, 1)},
		{name: "steps down as it lapses", events: then(stepsDown(a, 1, 1), lapses(a, 1, 1))},
		{name: "crashes as it lapses", events: then(crashes(a), lapses(a, 1, 1))},
		{name: "leads as it lapses", events: []model.Event{granted(a, 1, 1), lapses(a, 1, 1), leads(a, 1, 1)}, want: broken},
		{name: "stays past its release", events: then(released(a, 1, 1)), want: broken, first: breaks(0, 1)},
		{name: "its work goes on past its release", events: then(resigns(a, 1, 1), released(a, 1, 1)), want: broken},
		{name: "stays while another is granted", events: then(granted(b, 1, 2)), want: broken, first: breaks(b, 2)},
		{name: "stays past a restart that forgot", events: then(storeRestarts(0, 0, 1)), want: broken, first: breaks(0, 1)},
		{name: "stays past a restart that gave it to another", cfg: model.MonitorConfig{Only: broken}, events: then(storeRestarts(b, 1, 1)), want: broken, first: breaks(b, 1)},
		{name: "stays past a restart that remembers", events: then(storeRestarts(a, 1, 1))},
		{name: "a restart of the storage is none of the store", events: then(storageRestarts(0))},
		{name: "a crash of the store keeps the tenure", events: then(crashes(theStore))},
		{name: "another's refusal", events: then(handled(b, 1, model.OpAcquire, model.CodeHeld, 1))},
	})
}

// leadsAsBoot is a leader of token 1 in its first incarnation after a restart.
func leadsAsBoot(n model.Node, boot uint16) model.Event {
	e := leads(n, 1, 1)
	e.Owner.Boot = boot
	return e
}

func TestWaivers(t *testing.T) {
	held := []model.Event{granted(a, 1, 1), leads(a, 1, 1)}
	then := func(es ...model.Event) []model.Event { return append(held[:2:2], es...) }
	ownership, safety := set(model.BeliefOwnership), set(model.BeliefSafety)
	check(t, []sequence{
		{name: "a slow clock excuses its own term", events: then(slow(lapses(a, 1, 1), a)), waived: ownership},
		{name: "another's slow clock excuses nothing", events: then(slow(lapses(a, 1, 1), b)), want: ownership},
		{name: "two leaders while one clock is slow", events: then(slow(lapses(a, 1, 1), a), slow(granted(b, 1, 2), a), slow(leads(b, 1, 2), a)), waived: ownership | safety},
		{name: "two leaders while the second's clock is slow", cfg: model.MonitorConfig{Only: safety}, events: then(slow(leads(b, 1, 2), b)), waived: safety},
		{name: "two leaders while neither clock is slow", events: then(slow(lapses(a, 1, 1), a), slow(granted(b, 1, 2), a), leads(b, 1, 2)), want: safety, waived: ownership},
		{name: "a deletion excuses the terms it took the lease from", events: then(deleted(), granted(b, 1, 2), leads(b, 1, 2)), waived: ownership | safety},
		{name: "a deletion excuses a term whose answer was on its way", events: []model.Event{granted(a, 1, 1), deleted(), leads(a, 1, 1)}, waived: ownership},
		{name: "a deletion excuses no later term", events: []model.Event{granted(a, 1, 1), deleted(), granted(b, 1, 2), leads(b, 1, 2), lapses(b, 1, 2)}, want: ownership},
		{name: "the deletion of a lapsed lease excuses nothing", events: []model.Event{granted(a, 1, 1), lapses(a, 1, 1), deleted(), leads(a, 1, 1)}, want: ownership},
		{name: "continuity is never excused", events: then(deleted(), slow(leads(a, 1, 1), a)), want: set(model.Continuity), waived: ownership},
		{name: "tokens are never excused", events: then(deleted(), slow(granted(b, 1, 1), a, b)), want: set(model.TokenMonotonicity), waived: ownership},
	})
}

func TestOneTermOneToken(t *testing.T) {
	broken := set(model.Continuity)
	only := model.MonitorConfig{Only: broken}
	led := func(n model.Node, token uint64) []model.Event {
		return []model.Event{leads(n, uint32(token), token), stepsDown(n, uint32(token), token)}
	}
	var many []model.Event // 1 to 300, each led under once
	for token := range uint64(300) {
		many = append(many, led(a, token+1)...)
	}
	after := func(es ...model.Event) []model.Event { return append(many[:len(many):len(many)], es...) }
	check(t, []sequence{
		{name: "lost and regained inside one belief", cfg: only, events: []model.Event{leads(a, 1, 1), leads(a, 1, 3)}, want: broken,
			first: model.Violation{Invariant: model.Continuity, Node: a, Token: 3, Limit: 1}},
		{name: "the same token again after a step-down", events: []model.Event{granted(a, 1, 1), leads(a, 1, 1), stepsDown(a, 1, 1), leads(a, 1, 1)}, want: broken,
			first: model.Violation{Invariant: model.Continuity, Node: a, Token: 1, Limit: 1}},
		{name: "the same token again after a crash", cfg: only, events: []model.Event{leads(a, 1, 1), crashes(a), leads(a, 1, 1)}, want: broken},
		{name: "the same token by another", cfg: only, events: []model.Event{leads(a, 1, 1), stepsDown(a, 1, 1), leads(b, 1, 1)}, want: broken},
		{name: "another token after a step-down", cfg: only, events: []model.Event{leads(a, 1, 1), stepsDown(a, 1, 1), leads(a, 2, 3)}},
		{name: "a later deadline is the same term", cfg: only, events: []model.Event{leads(a, 1, 1), termOf(model.KindExtend, a, 1, 1)}},
		{name: "a lower token than before, once", cfg: only, events: []model.Event{leads(a, 1, 5), stepsDown(a, 1, 5), leads(b, 1, 3)}},
		{name: "a lower token than before, twice", cfg: only, events: append(append(led(a, 5), led(b, 3)...), leads(b, 2, 3)), want: broken},
		{name: "the latest of many", cfg: only, events: after(leads(b, 1, 300)), want: broken},
		{name: "the 256th latest", cfg: only, events: after(leads(b, 1, 45)), want: broken},
		{name: "the 257th latest is forgotten", cfg: only, events: after(leads(b, 1, 44))},
		{name: "the next of many", cfg: only, events: after(leads(b, 1, 301))},
		{name: "a far higher one is the next", cfg: only, events: after(leads(b, 1, 556))},
		{name: "far higher, twice", cfg: only, events: after(leads(b, 1, 1_000_000), stepsDown(b, 1, 1_000_000), leads(b, 2, 1_000_000)), want: broken},
		{name: "far higher, and the one before again", cfg: only, events: after(leads(b, 1, 1_000_000), stepsDown(b, 1, 1_000_000), leads(b, 2, 300)), want: broken},
		{name: "far higher, and one just below it", cfg: only, events: after(leads(b, 1, 1_000_000), stepsDown(b, 1, 1_000_000), leads(b, 2, 999_999))},
		{name: "the highest there is, twice", cfg: only, events: after(leads(b, 1, math.MaxUint64), stepsDown(b, 1, math.MaxUint64), leads(b, 2, math.MaxUint64)), want: broken},
	})
}

func TestAReadGivesTheLastLandedWrite(t *testing.T) {
	broken := set(model.Durability)
	refused := atStorage(raw, model.OpWrite, model.CodeStale, 1, 8)
	beyond := valueLanded(1, model.Keys, 5)
	other := valueRead(0)
	other.Key = 1
	check(t, []sequence{
		{name: "nothing yet", events: []model.Event{valueRead(0)}},
		{name: "from nowhere", events: []model.Event{valueRead(5)}, want: broken, first: model.Violation{Invariant: model.Durability, Node: theStorage, Value: 5}},
		{name: "the last", events: []model.Event{valueLanded(1, 0, 5), valueLanded(1, 0, 6), valueRead(6)}},
		{name: "the one before", events: []model.Event{valueLanded(1, 0, 5), valueLanded(1, 0, 6), valueRead(5)}, want: broken,
			first: model.Violation{Invariant: model.Durability, Node: theStorage, Value: 5, Want: 6}},
		{name: "lost at a restart", events: []model.Event{valueLanded(1, 0, 5), storageRestarts(1), valueRead(0)}, want: broken},
		{name: "kept at a restart", events: []model.Event{valueLanded(1, 0, 5), crashes(theStorage), storageRestarts(1), valueRead(5)}},
		{name: "a refused write", events: []model.Event{valueLanded(1, 0, 5), refused, valueRead(5)}},
		{name: "of a refused write", events: []model.Event{valueLanded(1, 0, 5), refused, valueRead(8)}, want: broken},
		{name: "another key", events: []model.Event{valueLanded(1, 0, 5), other}},
		{name: "a key beyond those followed", events: []model.Event{beyond, {Kind: model.KindHandle, Node: theStorage, Op: model.OpRead, Code: model.CodeValue, Key: model.Keys, Value: 77}}},
	})
}

func TestNoWriteLandsBelowALeaderBehindTheBarrier(t *testing.T) {
	barrier := model.MonitorConfig{Barrier: true}
	// The storage never saw 2: the barrier was not what it should be.
	events := []model.Event{granted(a, 1, 1), lapses(a, 1, 1), granted(b, 1, 2), leads(b, 1, 2)}
	then := func(es ...model.Event) []model.Event { return append(events[:4:4], es...) }
	check(t, []sequence{
		{name: "a zombie before the leader's first write", cfg: barrier, events: then(landed(a, 1)), want: set(model.Barrier),
			first: model.Violation{Invariant: model.Barrier, Node: a, Other: b, Token: 1, Limit: 2}},
		{name: "a raw zombie", cfg: barrier, events: then(landed(raw, 1)), want: set(model.Barrier)},
		{name: "even after the leader stepped down", cfg: barrier, events: then(stepsDown(b, 1, 2), landed(a, 1)), want: set(model.Barrier)},
		{name: "and after its first write both break", cfg: barrier, events: then(landed(b, 2), landed(a, 1)), want: set(model.Barrier, model.StorageSafety)},
		{name: "without the barrier nothing was promised", events: then(landed(a, 1))},
		{name: "refused", cfg: barrier, events: then(stale(a, 1))},
		{name: "the leader's own", cfg: barrier, events: then(landed(b, 2))},
		{name: "a fence is no write", cfg: barrier, events: then(fenced(a, 1))},
		{name: "before the successor leads", cfg: barrier, events: []model.Event{granted(a, 1, 1), lapses(a, 1, 1), granted(b, 1, 2), landed(a, 1)}},
	})
}

func TestTheTokenOfAWriteWasGrantedToItsSender(t *testing.T) {
	broken := set(model.Attribution)
	events := []model.Event{granted(a, 1, 1), lapses(a, 1, 1), granted(b, 1, 2)}
	then := func(es ...model.Event) []model.Event { return append(events[:3:3], es...) }
	var many []model.Event // 1 to 300, all granted to b
	for token := range uint64(300) {
		many = append(many, granted(b, 1, token+1), released(b, 1, token+1))
	}
	after := func(es ...model.Event) []model.Event { return append(many[:len(many):len(many)], es...) }
	check(t, []sequence{
		{name: "its own", events: then(landed(b, 2), landed(b, 2))},
		{name: "its own of before", events: then(landed(a, 1))},
		{name: "its own of another incarnation", events: []model.Event{granted(a, 7, 1), landed(a, 1)}, want: broken,
			first: model.Violation{Invariant: model.Attribution, Node: a, Other: a, Token: 1}},
		{name: "its successor's", events: then(landed(a, 2)), want: broken,
			first: model.Violation{Invariant: model.Attribution, Node: a, Other: b, Token: 2}},
		{name: "its predecessor's", events: then(landed(b, 1)), want: broken,
			first: model.Violation{Invariant: model.Attribution, Node: b, Other: a, Token: 1}},
		{name: "never granted", events: then(landed(b, 3)), want: broken,
			first: model.Violation{Invariant: model.Attribution, Node: b, Token: 3}},
		{name: "none at all", events: []model.Event{granted(a, 1, 1), landed(a, 0)}, want: broken,
			first: model.Violation{Invariant: model.Attribution, Node: a}},
		{name: "skipped by a rising store", cfg: model.MonitorConfig{Rising: true}, events: []model.Event{granted(a, 1, 7), landed(a, 5)}, want: broken},
		{name: "skipped by a rising store, far below", cfg: model.MonitorConfig{Rising: true}, events: []model.Event{granted(a, 1, 1000), landed(a, 5)}, want: broken},
		{name: "of a rising store, another's, however far they are apart", cfg: model.MonitorConfig{Rising: true},
			events: []model.Event{granted(a, 1, 1000), released(a, 1, 1000), granted(b, 1, 2000), landed(b, 1000)}, want: broken,
			first: model.Violation{Invariant: model.Attribution, Node: b, Other: a, Token: 1000}},
		{name: "of a rising store, its own of before", cfg: model.MonitorConfig{Rising: true},
			events: []model.Event{granted(a, 1, 1000), released(a, 1, 1000), granted(b, 1, 2000), landed(a, 1000)}},
		{name: "of a raw party: it promises nothing", events: then(landed(raw, 2), landed(raw, 9))},
		{name: "refused", events: then(stale(a, 2))},
		{name: "the 256th latest, another's", events: after(landed(a, 45)), want: broken},
		{name: "the 257th latest is forgotten", events: after(landed(a, 44))},
	})
}

func TestInvariantsAreJudgedIndependently(t *testing.T) {
	// b is granted 2 while a leads under 1, leads, and writes; a writes too.
	events := []model.Event{granted(a, 1, 1), leads(a, 1, 1), granted(b, 1, 2), leads(b, 1, 2), landed(b, 2), landed(a, 1)}
	for _, want := range []struct {
		v    model.Invariant
		last int // the event that breaks it
	}{{model.BeliefOwnership, 3}, {model.BeliefSafety, 4}, {model.StorageSafety, 6}, {model.Barrier, 6}} {
		m := observe(model.MonitorConfig{Only: set(want.v), Barrier: true}, events)
		if m.Violated() != set(want.v) || m.First().Action != int32(want.last) {
			t.Errorf("%v: violated %v at event %d, want at %d", want.v, m.Violated(), m.First().Action, want.last)
		}
	}
}

func TestNothingCountsAfterTheFirstViolation(t *testing.T) {
	m := observe(model.MonitorConfig{}, []model.Event{granted(a, 1, 2), leads(b, 1, 5), valueRead(9)})
	want := model.Violation{Invariant: model.TokenMonotonicity, Action: 1, Node: a, Token: 2, Limit: 1}
	if m.First() != want || m.Violated() != set(model.TokenMonotonicity) {
		t.Errorf("got %+v and %v, want %+v alone", m.First(), m.Violated(), want)
	}
}

func TestMonitorTellsTheHighestTokens(t *testing.T) {
	m := observe(model.MonitorConfig{First: 33}, nil)
	if m.Granted() != 32 || m.Seen() != 0 {
		t.Errorf("granted %d, seen %d at the beginning, want 32, 0", m.Granted(), m.Seen())
	}
	m = observe(model.MonitorConfig{}, []model.Event{granted(a, 1, 1), released(a, 1, 1), granted(b, 1, 2), landed(a, 1), stale(b, 2)})
	if m.Granted() != 2 || m.Seen() != 1 {
		t.Errorf("granted %d, seen %d, want 2, 1", m.Granted(), m.Seen())
	}
}

func TestAssigningAMonitorIsASnapshot(t *testing.T) {
	m := observe(model.MonitorConfig{}, []model.Event{granted(a, 1, 1), leads(a, 1, 1)})
	saved := m
	for _, e := range []model.Event{stepsDown(a, 1, 1), lapses(a, 1, 1), granted(b, 1, 2), leads(b, 1, 2), landed(b, 2)} {
		m.Observe(&e)
	}
	if m.Violated() != 0 {
		t.Fatalf("the run broke %v", m.Violated())
	}
	if saved.Granted() != 1 || saved.Seen() != 0 {
		t.Errorf("the snapshot moved on: granted %d, seen %d", saved.Granted(), saved.Seen())
	}
	e := lapses(a, 1, 1)
	if saved.Observe(&e); saved.Violated() != set(model.BeliefOwnership) {
		t.Errorf("the snapshot forgot that a leads: violated %v", saved.Violated())
	}
	e = leads(b, 1, 2)
	if m.Observe(&e); m.Violated() != set(model.Continuity) {
		t.Errorf("the run after the snapshot: violated %v", m.Violated())
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	events := []model.Event{{Kind: model.KindInvoke, Node: a, Op: model.OpAcquire, Owner: owner(a, 1), TTL: 10}, granted(a, 1, 1), leads(a, 1, 1), renewed(a, 1, 1),
		landed(a, 1), valueRead(0), stepsDown(a, 1, 1), lapses(a, 1, 1), granted(b, 1, 2), leads(b, 1, 2), slow(lapses(b, 1, 2), b),
		{Kind: model.KindCalm, Remaining: 1, TTL: 1}, {Kind: model.KindCalmEnd}, leads(a, 1, 2)}
	m := model.NewMonitor(model.MonitorConfig{Roles: parties})
	if n := testing.AllocsPerRun(100, func() {
		run := m
		for i := range events {
			run.Observe(&events[i])
		}
		if run.Violated() == 0 {
			t.Fatal("the last event breaks continuity, unnoticed")
		}
	}); n != 0 {
		t.Errorf("%v allocations a run of %d events, want none", n, len(events))
	}
}
