package model_test

import (
	"fmt"
	"slices"

	"fencepost/model"
)

// A client leads on although its lease has lapsed in the store.
func ExampleMonitor() {
	const store, c1 = 1, 2
	names := model.Names{store: {Name: "store", Role: model.RoleStore}, c1: {Name: "C1", Role: model.RoleClient}}
	cfg := model.MonitorConfig{}
	for n := range names {
		cfg.Roles[n] = names[n].Role
	}
	me := model.Owner{Node: c1, Seq: 1}
	m := model.NewMonitor(cfg)
	for _, e := range []model.Event{
		{At: 0, Kind: model.KindHandle, Node: store, Peer: c1, Op: model.OpAcquire, Owner: me, Code: model.CodeGranted, Token: 1},
		{At: 1, Kind: model.KindLead, Node: c1, Owner: me, Token: 1},
		{At: 5, Kind: model.KindLapse, Node: store, Holder: me, Token: 1},
	} {
		m.Observe(&e)
	}
	fmt.Println(m.Violated())
	fmt.Println(m.First().Describe(&names))
	// Output:
	// belief-implies-ownership
	// C1 acts as leader under token 1, but nobody holds the lease in the store; the last token is 1
}

// Beyond the bound on clocks belief is not promised: that it broke is no
// violation, but a report should say it.
func ExampleMonitor_Waived() {
	const store, c1 = 1, 2
	cfg := model.MonitorConfig{Roles: [model.MaxNodes]model.Role{store: model.RoleStore, c1: model.RoleClient}}
	me := model.Owner{Node: c1, Seq: 1}
	m := model.NewMonitor(cfg)
	for _, e := range []model.Event{
		{At: 0, Kind: model.KindHandle, Node: store, Peer: c1, Op: model.OpAcquire, Owner: me, Code: model.CodeGranted, Token: 1},
		{At: 1, Kind: model.KindLead, Node: c1, Owner: me, Token: 1},
		{At: 5, Kind: model.KindLapse, Node: store, Holder: me, Token: 1, Slow: 1 << c1},
	} {
		m.Observe(&e)
	}
	fmt.Printf("violated: %q, waived: %q\n", m.Violated(), m.Waived())
	// Output:
	// violated: "", waived: "belief-implies-ownership"
}

// What a store must answer: the lease of one holder bars another until it
// lapses, and the next ownership has the next token.
func ExampleLeaseSpec() {
	c1, c2 := model.Owner{Node: 1, Seq: 1}, model.Owner{Node: 2, Seq: 1}
	var lease model.LeaseSpec
	for _, e := range []model.Event{
		{Local: 0, Op: model.OpAcquire, Owner: c1, TTL: 10},
		{Local: 4, Op: model.OpAcquire, Owner: c2, TTL: 10},
		{Local: 10, Op: model.OpAcquire, Owner: c2, TTL: 10},
		{Local: 11, Op: model.OpRenew, Owner: c1, Asked: 1, TTL: 10},
	} {
		answer := lease.Step(&e)
		fmt.Println(e.Op, answer.Code, "token", answer.Token, "for", answer.Remaining)
	}
	// Output:
	// acquire granted token 1 for 10
	// acquire held token 1 for 6
	// acquire granted token 2 for 10
	// renew lost token 2 for 9
}

// A fenced storage refuses what comes late from an earlier ownership.
func ExampleStorageSpec() {
	var storage model.StorageSpec
	for _, e := range []model.Event{
		{Op: model.OpWrite, Asked: 34, Value: 2},
		{Op: model.OpWrite, Asked: 33, Value: 1},
		{Op: model.OpRead},
	} {
		answer := storage.Step(&e)
		fmt.Println(e.Op, answer.Code, answer.Value)
	}
	// Output:
	// write landed 0
	// write stale 0
	// read value 2
}

// A store that comes back has a new clock: it grants its last holder the whole
// TTL again, since nobody knows how much of it is left.
func ExampleLeaseSpec_Restart() {
	c1, c2 := model.Owner{Node: 1, Seq: 1}, model.Owner{Node: 2, Seq: 1}
	var lease model.LeaseSpec
	lease.Step(&model.Event{Local: 0, Op: model.OpAcquire, Owner: c1, TTL: 10})
	lease.Restart(0) // at 9 on the clock before
	answer := lease.Step(&model.Event{Local: 1, Op: model.OpAcquire, Owner: c2, TTL: 10})
	fmt.Println(answer.Code, "for", answer.Remaining)
	// Output:
	// held for 9
}

// Whatever an operator deletes, the next token is the next.
func ExampleLeaseSpec_Delete() {
	c1, c2 := model.Owner{Node: 1, Seq: 1}, model.Owner{Node: 2, Seq: 1}
	var lease model.LeaseSpec
	lease.Step(&model.Event{Local: 0, Op: model.OpAcquire, Owner: c1, TTL: 10})
	lease.Delete()
	answer := lease.Step(&model.Event{Local: 1, Op: model.OpAcquire, Owner: c2, TTL: 10})
	fmt.Println(answer.Code, "token", answer.Token)
	// Output:
	// granted token 2
}

// Lockstep: what the store answered is set beside what it must answer.
func ExampleAnswerOf() {
	var lease model.LeaseSpec
	e := model.Event{Kind: model.KindHandle, Local: 0, Op: model.OpAcquire, Owner: model.Owner{Node: 1, Seq: 1}, TTL: 10,
		Code: model.CodeGranted, Token: 7, Remaining: 10}
	got, want := model.AnswerOf(&e), lease.Step(&e)
	fmt.Println(got == want, "token", got.Token, "instead of", want.Token)
	// Output:
	// false token 7 instead of 1
}

func ExampleSet() {
	s := model.SetOf(model.StorageSafety, model.TokenMonotonicity)
	fmt.Println(s)
	fmt.Println(s.Has(model.StorageSafety), s.Has(model.BeliefSafety))
	fmt.Println(len(slices.Collect(s.All())))
	// Output:
	// token-monotonicity, storage-safety
	// true false
	// 2
}

func ExampleInvariants() {
	for v := range model.Invariants() {
		fmt.Println(v)
	}
	// Output:
	// token-monotonicity
	// storage-safety
	// belief-safety
	// belief-implies-ownership
	// continuity
	// linearizability
	// durability
	// availability
	// barrier
	// attribution
	// lockstep
}
