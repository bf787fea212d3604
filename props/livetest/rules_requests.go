package livetest

import (
	"context"
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

func (t *trial) releaseFrees() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	a.mustRelease(a.mustAcquire(4 * t.ttl))
	r := b.acquire(t.ttl)
	t.want(r.code == lease.CodeGranted, model.RuleReleaseFrees, "granted: a released it")
}

func (t *trial) releaseOnlyByHolder() {
	a, b, c := t.candidate("a", 0), t.candidate("b", 1), t.candidate("c", 1)
	held := a.mustAcquire(t.ttl)
	refused := func(c *candidate, token lease.Token, rule model.Rule) {
		r := c.release(token)
		t.want(r.notHeld(), rule, "refused as lost: a holds it under token %d", held.grant.Token)
	}
	refused(b, held.grant.Token, model.RuleReleaseHolder)
	refused(a.next(), held.grant.Token, model.RuleReleaseHolder)
	refused(a, held.grant.Token+1, model.RuleReleaseToken)
	c.mustBeHeld(a, held, model.RuleReleaseHolder)
	a.mustRelease(held)
}

// lateRelease delivers the release of an old tenure in a newer one, of the same
// holder and of another.
func (t *trial) lateRelease() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	old := a.mustAcquire(t.ttl)
	a.mustRelease(old)
	held := a.mustAcquire(t.ttl)
	r := a.at(1).release(old.grant.Token)
	t.want(r.notHeld(), model.RuleReleaseToken, "refused as lost: a holds it under token %d by now", held.grant.Token)
	b.mustBeHeld(a, held, model.RuleReleaseToken)
	a.mustRelease(held)
	next := b.mustAcquire(t.ttl)
	r = a.at(1).release(held.grant.Token)
	t.want(r.notHeld(), model.RuleReleaseHolder, "refused as lost: b holds it under token %d by now", next.grant.Token)
	b.mustRenew(next, t.ttl)
}

// lateCopies delivers each request twice, the second time by another process.
func (t *trial) lateCopies() {
	a, b := t.candidate("a", 0), t.candidate("b", 0)
	held := a.mustAcquire(t.ttl)
	copied := a.at(1).acquire(t.ttl)
	t.want(copied.code == lease.CodeGranted && copied.grant.Token == held.grant.Token, model.RuleAcquireAgain, "granted again: a holds it under token %d", held.grant.Token)
	a.mustRenew(held, t.ttl)
	a.at(1).mustRenew(held, t.ttl)
	a.mustRelease(held)
	r := a.at(1).release(held.grant.Token)
	t.want(r.notHeld(), model.RuleReleaseHeld, "refused as lost: a released it")
	next := b.mustAcquire(t.ttl)
	r = a.at(1).renew(held.grant.Token, t.ttl)
	t.want(r.notHeld(), model.RuleRenewHolder, "refused as lost: b holds it under token %d", next.grant.Token)
	a.at(1).mustBeHeld(b, next, model.RuleAcquireHeld)
	b.mustRenew(next, t.ttl)
}

func (t *trial) lapse() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	b.mustLapse(a, a.mustAcquire(t.ttl))
}

// takeover has a lease pass on, and its former holder come back.
func (t *trial) takeover() {
	a, b, c := t.candidate("a", 0), t.candidate("b", 1), t.candidate("c", 0)
	old := a.mustAcquire(t.ttl)
	held := b.mustLapse(a, old)
	r := a.renew(old.grant.Token, t.ttl)
	t.want(r.notHeld(), model.RuleRenewHolder, "refused as lost: b holds it under token %d", held.grant.Token)
	r = a.release(old.grant.Token)
	t.want(r.notHeld(), model.RuleReleaseHolder, "refused as lost: b holds it under token %d", held.grant.Token)
	a.mustBeHeld(b, held, model.RuleAcquireHeld)
	c.mustBeHeld(b, held, model.RuleReleaseHolder)
	b.mustRelease(held)
	again := a.mustAcquire(t.ttl)
	t.want(again.grant.Token > held.grant.Token, model.RuleTokenNext, "a token above %d", held.grant.Token)
}

func (t *trial) getTells() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	t.want(b.get().code == lease.CodeFree, model.RuleGet, "nobody: nobody ever held it")
	held := a.mustAcquire(t.ttl)
	seen := b.get()
	t.want(seen.seen.Holder == a.holder && seen.seen.Token == held.grant.Token, model.RuleGet, "a, token %d", held.grant.Token)
	if most := t.over(held) - seen.call; seen.seen.Remaining > most {
		t.tell(seen.call, "how long a is said to have it", seen.seen.Remaining.String())
		t.convict(model.RuleRemaining, fmt.Sprintf("no more than %v", most.Round(time.Millisecond)))
	}
	a.mustRelease(held)
	t.want(b.get().code == lease.CodeFree, model.RuleGet, "nobody: a released it")
	held = a.mustAcquire(t.ttl)
	t.until(t.over(held))
	t.want(b.get().code == lease.CodeFree, model.RuleGet, "nobody: a's tenure is over")
}

func (t *trial) malformed() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	nobody := &candidate{t, lease.Holder{}, 0}
	refused := func(r answer) {
		if t.answered(r); r.code != lease.CodeInvalid {
			t.convict(model.RuleMalformed, "refused as invalid")
		}
	}
	ask := func(token lease.Token) {
		refused(nobody.acquire(t.ttl))
		refused(a.acquire(0))
		refused(a.acquire(-t.ttl))
		refused(nobody.renew(token, t.ttl))
		refused(a.renew(token, 0))
		refused(a.renew(token, -t.ttl))
		refused(a.renew(0, t.ttl))
		refused(nobody.release(token))
		refused(a.release(0))
	}
	ask(1) // of a lease that nobody ever held
	held := a.mustAcquire(t.ttl)
	a.mustRenew(held, t.ttl)
	ask(held.grant.Token)
	b.mustBeHeld(a, a.mustRenew(held, t.ttl), model.RuleMalformed)
}

// endedContexts calls with contexts that have ended, or soon do. What was asked
// may have been done or not, but not half, and not to the next caller's cost.
func (t *trial) endedContexts() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range 8 {
		ctx := ended
		if i%2 == 1 {
			var end context.CancelFunc
			ctx, end = context.WithTimeout(context.Background(), time.Duration(i*i)*50*time.Microsecond)
			defer end()
		}
		a.ask(ctx, lease.Request{Op: lease.OpAcquire, TTL: t.ttl})
		b.ask(ctx, lease.Request{Op: lease.OpRelease, Token: 1})
	}
	held := a.acquire(t.ttl)
	t.want(held.code == lease.CodeGranted, model.RuleAnswers, "granted: nobody else has asked for it")
	b.mustBeHeld(a, held, model.RuleAcquireHeld)
	a.mustRenew(held, t.ttl)
	a.mustRelease(held)
	b.mustAcquire(t.ttl)
}
