package model_test

import (
	"math"
	"testing"

	"fencepost/model"
)

// A step of a table: a request at an instant of the store's clock, or what is
// done to the store then.
type step struct {
	at    int64
	ask   model.Op
	by    model.Owner
	token uint64
	ttl   int64
	do    string // "delete" or "restart" instead of a request
	want  model.Answer
}

func acquire(at int64, by model.Owner, ttl int64, want model.Answer) step {
	return step{at: at, ask: model.OpAcquire, by: by, ttl: ttl, want: want}
}

func renew(at int64, by model.Owner, token uint64, ttl int64, want model.Answer) step {
	return step{at: at, ask: model.OpRenew, by: by, token: token, ttl: ttl, want: want}
}

func release(at int64, by model.Owner, token uint64, want model.Answer) step {
	return step{at: at, ask: model.OpRelease, by: by, token: token, want: want}
}

func get(at int64, want model.Answer) step { return step{at: at, ask: model.OpGet, want: want} }

func deletes(at int64) step  { return step{at: at, do: "delete"} }
func restarts(at int64) step { return step{at: at, do: "restart"} }

// The answers.

func grantOf(by model.Owner, token uint64, remaining int64) model.Answer {
	return model.Answer{Code: model.CodeGranted, Token: token, Holder: by, Remaining: remaining}
}

func heldBy(by model.Owner, token uint64, remaining int64) model.Answer {
	return model.Answer{Code: model.CodeHeld, Token: token, Holder: by, Remaining: remaining}
}

func refusedBy(code model.Code, token uint64) model.Answer {
	return model.Answer{Code: code, Token: token}
}

func lostTo(by model.Owner, token uint64, remaining int64) model.Answer {
	return model.Answer{Code: model.CodeLost, Token: token, Holder: by, Remaining: remaining}
}

func delayed(token uint64, remaining int64) model.Answer {
	return model.Answer{Code: model.CodeDelayed, Token: token, Remaining: remaining}
}

var invalid = model.Answer{Code: model.CodeInvalid}

// Each sentence of the rules of the store.
func TestLeaseRules(t *testing.T) {
	a1, a2, b1 := owner(a, 1), owner(a, 2), owner(b, 1)
	nobody := model.Owner{}
	for _, rule := range []struct {
		name      string
		lockDelay int64
		issued    uint64
		steps     []step
	}{
		{name: "acquire while free: the next token", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10))}},
		{name: "acquire while free: the token after the last issued", issued: 32, steps: []step{
			acquire(0, a1, 10, grantOf(a1, 33, 10))}},
		{name: "acquire while held by another: refused, naming holder and remaining time", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(4, b1, 10, heldBy(a1, 1, 6)),
			acquire(9, b1, 10, heldBy(a1, 1, 1))}},
		{name: "acquire while held by the same holder: the same token, a later expiry", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(4, a1, 10, grantOf(a1, 1, 10)),
			acquire(13, b1, 10, heldBy(a1, 1, 1)),
			acquire(14, b1, 10, grantOf(b1, 2, 10))}},
		{name: "acquire while held by the same holder with a shorter TTL shortens nothing", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(4, a1, 1, grantOf(a1, 1, 6)),
			acquire(9, b1, 10, heldBy(a1, 1, 1))}},
		{name: "another incarnation of the holder is another", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(1, a2, 10, heldBy(a1, 1, 9)),
			acquire(1, model.Owner{Node: a, Seq: 1, Boot: 1}, 10, heldBy(a1, 1, 9))}},
		{name: "held on [granted, expires)", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			get(9, heldBy(a1, 1, 1)),
			get(10, refusedBy(model.CodeFree, 1))}},
		{name: "acquire after the lapse, also by the same holder: a new ownership", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(10, a1, 10, grantOf(a1, 2, 10)),
			acquire(20, b1, 10, grantOf(b1, 3, 10))}},
		{name: "acquire after the release, also by the same holder: a new ownership", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			release(1, a1, 1, refusedBy(model.CodeReleased, 1)),
			acquire(1, a1, 10, grantOf(a1, 2, 10))}},
		{name: "renew: a later expiry", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			renew(9, a1, 1, 10, grantOf(a1, 1, 10)),
			get(18, heldBy(a1, 1, 1))}},
		{name: "renew never shortens", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			renew(2, a1, 1, 3, grantOf(a1, 1, 8)),
			get(9, heldBy(a1, 1, 1))}},
		{name: "renew by another holder, another incarnation, or under another token: lost", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			renew(1, b1, 1, 10, lostTo(a1, 1, 9)),
			renew(2, a2, 1, 10, lostTo(a1, 1, 8)),
			renew(3, a1, 2, 10, lostTo(a1, 1, 7)),
			get(9, heldBy(a1, 1, 1))}},
		{name: "renew after the lapse: lapsed, and nobody is named", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			renew(10, a1, 1, 10, refusedBy(model.CodeLapsed, 1)),
			get(10, refusedBy(model.CodeFree, 1))}},
		{name: "renew after another was granted: lost, naming it", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(10, b1, 10, grantOf(b1, 2, 10)),
			renew(11, a1, 1, 10, lostTo(b1, 2, 9))}},
		{name: "renew after the release: lost", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			release(1, a1, 1, refusedBy(model.CodeReleased, 1)),
			renew(2, a1, 1, 10, refusedBy(model.CodeLost, 1))}},
		{name: "release by another holder or under another token: lost, and nothing is freed", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			release(1, b1, 1, lostTo(a1, 1, 9)),
			release(1, a1, 2, lostTo(a1, 1, 9)),
			release(1, a2, 1, lostTo(a1, 1, 9)),
			get(9, heldBy(a1, 1, 1))}},
		{name: "a late release of the tenure before frees nothing", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			release(1, a1, 1, refusedBy(model.CodeReleased, 1)),
			acquire(2, a1, 10, grantOf(a1, 2, 10)),
			release(3, a1, 1, lostTo(a1, 2, 9)),
			get(11, heldBy(a1, 2, 1))}},
		{name: "release after the lapse: lapsed", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			release(10, a1, 1, refusedBy(model.CodeLapsed, 1))}},
		{name: "release twice: lost", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			release(1, a1, 1, refusedBy(model.CodeReleased, 1)),
			release(2, a1, 1, refusedBy(model.CodeLost, 1))}},

		{name: "lock delay after a lapse, from its instant", lockDelay: 5, steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(10, b1, 10, delayed(1, 5)),
			acquire(12, a1, 10, delayed(1, 3)),
			get(14, delayed(1, 1)),
			acquire(15, b1, 10, grantOf(b1, 2, 10))}},
		{name: "lock delay over before anybody asked", lockDelay: 5, steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(15, b1, 10, grantOf(b1, 2, 10))}},
		{name: "no lock delay after a release", lockDelay: 5, steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			release(1, a1, 1, refusedBy(model.CodeReleased, 1)),
			acquire(1, b1, 10, grantOf(b1, 2, 10))}},
		{name: "a deletion ends the tenure without lock delay and keeps the counter", lockDelay: 5, steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			deletes(1),
			get(1, refusedBy(model.CodeFree, 1)),
			renew(1, a1, 1, 10, refusedBy(model.CodeLost, 1)),
			acquire(1, b1, 10, grantOf(b1, 2, 10))}},
		{name: "a deletion ends the lock delay", lockDelay: 5, steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			get(10, delayed(1, 5)),
			deletes(10),
			acquire(10, b1, 10, grantOf(b1, 2, 10))}},

		{name: "after a restart an unreleased tenure is held for its whole TTL on the new clock", steps: []step{
			acquire(100, a1, 10, grantOf(a1, 1, 10)),
			restarts(0),
			acquire(9, b1, 10, heldBy(a1, 1, 1)),
			acquire(10, b1, 10, grantOf(b1, 2, 10))}},
		{name: "after a restart it is the largest TTL of this tenure that counts", steps: []step{
			acquire(0, a1, 30, grantOf(a1, 1, 30)),
			release(1, a1, 1, refusedBy(model.CodeReleased, 1)),
			acquire(1, b1, 10, grantOf(b1, 2, 10)),
			renew(2, b1, 2, 20, grantOf(b1, 2, 20)),
			renew(3, b1, 2, 5, grantOf(b1, 2, 19)),
			restarts(0),
			get(0, heldBy(b1, 2, 20))}},
		{name: "after a restart the holder renews as before", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			restarts(0),
			renew(9, a1, 1, 10, grantOf(a1, 1, 10))}},
		{name: "after a restart a lapse that nobody was told of is forgotten", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			restarts(12),
			get(12, heldBy(a1, 1, 10)),
			get(22, refusedBy(model.CodeFree, 1))}},
		{name: "after a restart a lapse that somebody was told of stays", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			get(10, refusedBy(model.CodeFree, 1)),
			restarts(0),
			renew(0, a1, 1, 10, refusedBy(model.CodeLapsed, 1)),
			acquire(0, b1, 10, grantOf(b1, 2, 10))}},
		{name: "a refused renewal tells of the lapse too", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			renew(10, a1, 1, 10, refusedBy(model.CodeLapsed, 1)),
			restarts(0),
			get(0, refusedBy(model.CodeFree, 1))}},
		{name: "after a restart a told lapse has its whole lock delay again", lockDelay: 5, steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(14, b1, 10, delayed(1, 1)),
			restarts(0),
			acquire(0, b1, 10, delayed(1, 5)),
			acquire(5, b1, 10, grantOf(b1, 2, 10))}},
		{name: "after a restart a released lease is free, without lock delay", lockDelay: 5, steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			release(1, a1, 1, refusedBy(model.CodeReleased, 1)),
			restarts(0),
			acquire(0, b1, 10, grantOf(b1, 2, 10))}},
		{name: "after a restart a deleted lease is free", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			deletes(1),
			restarts(0),
			acquire(0, b1, 10, grantOf(b1, 2, 10))}},
		{name: "the counter survives restarts", steps: []step{
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			release(1, a1, 1, refusedBy(model.CodeReleased, 1)),
			restarts(0), restarts(0),
			get(0, refusedBy(model.CodeFree, 1)),
			acquire(0, a2, 10, grantOf(a2, 2, 10))}},

		{name: "requests that make no sense change nothing", steps: []step{
			acquire(0, nobody, 10, invalid),
			acquire(0, a1, 0, invalid),
			acquire(0, a1, -1, invalid),
			acquire(0, a1, 10, grantOf(a1, 1, 10)),
			acquire(1, a1, 0, invalid),
			renew(1, a1, 1, 0, invalid),
			renew(1, a1, 0, 10, invalid),
			renew(1, nobody, 1, 10, invalid),
			release(1, nobody, 1, invalid),
			release(1, a1, 0, invalid),
			{at: 1, ask: model.OpWrite, by: a1, token: 1, want: invalid},
			get(9, heldBy(a1, 1, 1))}},
		{name: "get while nobody ever held", steps: []step{
			get(0, refusedBy(model.CodeFree, 0))}},
		{name: "renew while nobody ever held", steps: []step{
			renew(0, a1, 1, 10, refusedBy(model.CodeLost, 0))}},
		{name: "a TTL of for ever lasts for ever", steps: []step{
			acquire(7, a1, math.MaxInt64, grantOf(a1, 1, math.MaxInt64-7)),
			acquire(1<<60, b1, 10, heldBy(a1, 1, math.MaxInt64-1<<60)),
			restarts(5),
			get(6, heldBy(a1, 1, math.MaxInt64-6))}},
		{name: "no token is left to issue", issued: math.MaxUint64, steps: []step{
			acquire(0, a1, 10, invalid)}},
		{name: "the store's clock may read below zero", steps: []step{
			acquire(-20, a1, 10, grantOf(a1, 1, 10)),
			get(-11, heldBy(a1, 1, 1)),
			get(-10, refusedBy(model.CodeFree, 1))}},
	} {
		t.Run(rule.name, func(t *testing.T) {
			spec := model.LeaseSpec{LockDelay: rule.lockDelay, Issued: rule.issued}
			for i, s := range rule.steps {
				switch s.do {
				case "delete":
					spec.Delete()
					continue
				case "restart":
					spec.Restart(s.at)
					continue
				}
				holder := spec.Holder(s.at)
				if s.want.Code == model.CodeHeld && holder != s.want.Holder || s.want.Code == model.CodeFree && holder != (model.Owner{}) {
					t.Errorf("step %d: Holder says %v before the answer names %v", i+1, holder, s.want.Holder)
				}
				e := model.Event{Kind: model.KindHandle, Node: theStore, Op: s.ask, Owner: s.by, Asked: s.token, TTL: s.ttl, Local: s.at}
				if got := spec.Step(&e); got != s.want {
					t.Fatalf("step %d, %v at %d:\ngot  %+v\nwant %+v", i+1, s.ask, s.at, got, s.want)
				}
			}
		})
	}
}

func TestStorageRules(t *testing.T) {
	type request struct {
		op    model.Op
		token uint64
		key   uint8
		value int64
		want  model.Answer
	}
	write := func(token uint64, key uint8, value int64, want model.Answer) request {
		return request{model.OpWrite, token, key, value, want}
	}
	fence := func(token uint64, want model.Answer) request {
		return request{op: model.OpFence, token: token, want: want}
	}
	read := func(key uint8, value int64, highest uint64) request {
		return request{op: model.OpRead, key: key, want: model.Answer{Code: model.CodeValue, Token: highest, Value: value}}
	}
	says := func(code model.Code, highest uint64) model.Answer { return model.Answer{Code: code, Token: highest} }
	for _, rule := range []struct {
		name     string
		requests []request
	}{
		{"a write lands and is read", []request{write(1, 0, 7, says(model.CodeLanded, 1)), read(0, 7, 1), read(1, 0, 1)}},
		{"a lower token is refused, naming the highest", []request{write(34, 0, 2, says(model.CodeLanded, 34)), write(33, 0, 1, says(model.CodeStale, 34)), read(0, 2, 34)}},
		{"an equal token lands", []request{write(5, 0, 1, says(model.CodeLanded, 5)), write(5, 0, 2, says(model.CodeLanded, 5)), read(0, 2, 5)}},
		{"a fence bars lower tokens", []request{fence(2, says(model.CodeFenced, 2)), write(1, 0, 9, says(model.CodeStale, 2)), read(0, 0, 2)}},
		{"a fence admits an equal token", []request{fence(2, says(model.CodeFenced, 2)), fence(2, says(model.CodeFenced, 2)), write(2, 3, 9, says(model.CodeLanded, 2)), read(3, 9, 2)}},
		{"a lower fence is refused", []request{fence(2, says(model.CodeFenced, 2)), fence(1, says(model.CodeStale, 2))}},
		{"a refused token is not remembered", []request{write(3, 0, 1, says(model.CodeLanded, 3)), write(2, 0, 1, says(model.CodeStale, 3)), write(3, 0, 4, says(model.CodeLanded, 3))}},
		{"no token is never admitted", []request{write(0, 0, 1, says(model.CodeStale, 0)), fence(0, says(model.CodeStale, 0)), read(0, 0, 0)}},
		{"keys are apart", []request{write(1, 0, 1, says(model.CodeLanded, 1)), write(1, 3, 4, says(model.CodeLanded, 1)), read(0, 1, 1), read(3, 4, 1)}},
		{"there are so many keys and no more", []request{write(1, model.Keys, 1, says(model.CodeInvalid, 0)), {op: model.OpRead, key: model.Keys, want: says(model.CodeInvalid, 0)}, read(0, 0, 0)}},
		{"a store's request is none of its own", []request{{op: model.OpAcquire, token: 1, want: says(model.CodeInvalid, 0)}}},
	} {
		t.Run(rule.name, func(t *testing.T) {
			var spec model.StorageSpec
			for i, r := range rule.requests {
				e := model.Event{Kind: model.KindHandle, Node: theStorage, Op: r.op, Asked: r.token, Key: r.key, Value: r.value}
				if got := spec.Step(&e); got != r.want {
					t.Fatalf("request %d, %v with token %d:\ngot  %+v\nwant %+v", i+1, r.op, r.token, got, r.want)
				}
			}
		})
	}
}

func TestAnAnswerHasAValueOnlyWhereItWasRead(t *testing.T) {
	e := model.Event{Op: model.OpRead, Code: model.CodeValue, Token: 3, Value: 7}
	if got, want := model.AnswerOf(&e), (model.Answer{Code: model.CodeValue, Token: 3, Value: 7}); got != want {
		t.Errorf("read: %+v, want %+v", got, want)
	}
	e = model.Event{Op: model.OpWrite, Code: model.CodeLanded, Token: 3, Value: 7, Holder: owner(a, 1), Remaining: 5}
	if got, want := model.AnswerOf(&e), (model.Answer{Code: model.CodeLanded, Token: 3, Holder: owner(a, 1), Remaining: 5}); got != want {
		t.Errorf("write: %+v, want %+v", got, want)
	}
}

func TestSpecsAllocateNothing(t *testing.T) {
	lease, storage := model.LeaseSpec{}, model.StorageSpec{}
	ask := model.Event{Op: model.OpAcquire, Owner: owner(a, 1), TTL: 10}
	write := model.Event{Op: model.OpWrite, Asked: 1, Value: 3}
	if n := testing.AllocsPerRun(100, func() {
		lease.Step(&ask)
		storage.Step(&write)
	}); n != 0 {
		t.Errorf("%v allocations a step, want none", n)
	}
}
