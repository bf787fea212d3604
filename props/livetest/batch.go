package livetest

import (
	"context"
	"fmt"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

const (
	ruleBatch = "a-batch-answers-as-single-calls-would"
	saysBatch = "A batch gives one answer to each of its calls, in their order, and each is what the single call would have been answered: a refusal of one keeps no other from being granted. Whoever renews thousands of leases in one call leads by these answers."
)

// batched makes one batch of every kind of call, on leases of its own.
func batched(w *world[lease.Store], o Options) kit.Outcome {
	o.Options = o.For(w.process(0))
	b, ok := w.process(0).(lease.Batcher)
	if !ok {
		return kit.Outcome{Skipped: "the store has no Batch: see lease.Batcher"}
	}
	// Long enough for everything to be in time, however slow the machine.
	ttl := max(o.TTL, patience) + 4*patience
	if o.MaxTTL > 0 {
		ttl = min(ttl, o.MaxTTL)
	}
	store := plain{w.process(1), w.clk}
	ctx := context.Background()
	a, other := w.holder("a"), w.holder("b")

	type want struct {
		what string
		is   func(lease.Answer) bool
	}
	var calls []lease.Call
	var wants []want
	add := func(op lease.Op, resource string, holder lease.Holder, token lease.Token, what string, is func(lease.Answer) bool) {
		calls = append(calls, lease.Call{Resource: resource, Request: lease.Request{Op: op, Holder: holder, Token: token, TTL: ttl}})
		wants = append(wants, want{what, is})
	}
	var setup error
	acquire := func(resource string) lease.Token {
		g, err := store.Acquire(ctx, resource, a, ttl)
		if err != nil && setup == nil {
			setup = err
		}
		return g.Token
	}
	code := func(codes ...lease.Code) func(lease.Answer) bool {
		return func(got lease.Answer) bool {
			return answer{code: lease.Refusal(got.Err)}.is(codes...) && got.Err != nil
		}
	}
	// Several rounds, so that the answers of two that are alike could be mixed up.
	for range 3 {
		free := w.resource()
		add(lease.OpAcquire, free, other, 0, "granted to b: nobody holds it", func(got lease.Answer) bool {
			return got.Err == nil && got.Grant.Resource == free && got.Grant.Holder == other && got.Grant.Token > 0
		})
		held := w.resource()
		acquire(held)
		add(lease.OpAcquire, held, other, 0, "refused as held: a holds it", code(lease.CodeHeld))
		mine := w.resource()
		token := acquire(mine)
		add(lease.OpRenew, mine, a, token, fmt.Sprintf("granted: a holds it under token %d", token), func(got lease.Answer) bool {
			return got.Err == nil && got.Grant.Resource == mine && got.Grant.Holder == a && got.Grant.Token == token
		})
		theirs := w.resource()
		add(lease.OpRenew, theirs, other, acquire(theirs), "refused as lost: a holds it", code(lease.CodeLost, lease.CodeLapsed))
		done := w.resource()
		add(lease.OpRelease, done, a, acquire(done), "released: a holds it", func(got lease.Answer) bool { return got.Err == nil })
		add(lease.OpAcquire, w.resource(), lease.Holder{}, 0, "refused as invalid: it names no holder", code(lease.CodeInvalid))
	}
	if setup != nil {
		return kit.Outcome{Unknown: fmt.Sprintf("the leases for a batch were not granted: %v", setup)}
	}
	var answers []lease.Answer
	err := guarded(ctx, w.clk, patience, func(ctx context.Context) error {
		answers = b.Batch(ctx, calls)
		return nil
	})
	if f := fault("a batch", err); f != nil {
		return kit.Outcome{Failure: f}
	}
	failure := func(what string, story ...string) kit.Outcome {
		return kit.Outcome{Failure: &kit.Failure{Rule: ruleBatch, Says: saysBatch, What: what, Story: story, Read: "go doc fencepost/impl/lease Batcher", Log: w.log.String()}}
	}
	if len(answers) != len(calls) {
		return failure(fmt.Sprintf("%d calls were given %d answers", len(calls), len(answers)))
	}
	var story []string
	for i, got := range answers {
		said := "done"
		if got.Err != nil {
			said = got.Err.Error()
		} else if calls[i].Op != lease.OpRelease {
			said = fmt.Sprintf("granted: %s, token %d, to %s", got.Grant.Resource, got.Grant.Token, named(got.Grant.Holder))
		}
		story = append(story, fmt.Sprintf("%d  %s: %s", i, calls[i].Resource, describe(calls[i].Request)), "     "+said)
		if wants[i].is(got) {
			continue
		}
		if lease.Refusal(got.Err) == lease.CodeNone && got.Err != nil {
			return kit.Outcome{Unknown: fmt.Sprintf("call %d of a batch has no answer: %v", i, got.Err)}
		}
		story[len(story)-1] += "  ◄ expected: " + wants[i].what
		return failure(fmt.Sprintf("call %d was answered %q; expected: %s", i, said, wants[i].what), story[max(len(story)-8, 0):]...)
	}
	// What was answered also happened.
	for i, c := range calls {
		var err error
		switch {
		case c.Op == lease.OpRenew && c.Holder == a:
			_, err = store.Renew(ctx, c.Resource, a, c.Token, ttl)
		case c.Op == lease.OpAcquire && answers[i].Err == nil:
			_, err = store.Renew(ctx, c.Resource, other, answers[i].Grant.Token, ttl)
		case c.Op == lease.OpRelease:
			_, err = store.Acquire(ctx, c.Resource, other, ttl)
		default:
			continue
		}
		if err != nil {
			return failure(fmt.Sprintf("call %d (%s) was granted, and a call after it was answered %q", i, describe(c.Request), err))
		}
	}
	return kit.Outcome{Covered: fmt.Sprintf("%d calls in one batch", len(calls))}
}
