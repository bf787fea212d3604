package livetest

import (
	"context"
	"fmt"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

// afterALapse has the same holder come back after a lapse: a new ownership.
func (t *trial) afterALapse() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	old := a.mustAcquire(t.ttl)
	t.until(t.over(old) + t.o.LockDelay + t.o.LockDelay/500)
	held := a.at(1).acquire(t.ttl)
	t.want(held.code == lease.CodeGranted, model.RuleOnTime, "granted: a's tenure is over")
	if held.grant.Token == old.grant.Token && t.o.RenewAfterLapse {
		b.mustBeHeld(a, held, model.RuleAcquireHeld)
		return
	}
	t.want(held.grant.Token > old.grant.Token, model.RuleTokenNext, "a token above %d", old.grant.Token)
	b.mustBeHeld(a, held, model.RuleAcquireHeld)
}

// afterDeletions has an operator delete the lease: held, and released before.
func (t *trial) afterDeletions() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	held := a.mustAcquire(4 * t.ttl)
	t.delete(t.behind)
	r := a.renew(held.grant.Token, t.ttl)
	t.want(r.notHeld(), model.RuleDeleteFrees, "refused as lost: it was deleted")
	next := b.acquire(t.ttl)
	t.want(next.code == lease.CodeGranted, model.RuleDeleteFrees, "granted: it was deleted")
	t.want(next.grant.Token > held.grant.Token, model.RuleDeleteCounter, "a token above %d", held.grant.Token)
	r = a.release(held.grant.Token)
	t.want(r.notHeld(), model.RuleReleaseHolder, "refused as lost: b holds it under token %d", next.grant.Token)
	b.mustRelease(next)
	t.delete(t.behind)
	last := a.acquire(t.ttl)
	t.want(last.code == lease.CodeGranted, model.RuleDeleteFrees, "granted: nobody holds it")
	t.want(last.grant.Token > next.grant.Token, model.RuleDeleteCounter, "a token above %d", next.grant.Token)
}

// behind is how an operator deletes a lease, behind the store's back if there is
// a way to.
func (t *trial) behind() func(context.Context, string) error {
	if t.o.Delete != nil {
		return t.o.Delete
	}
	return t.own()
}

// own is the store's own way to delete a lease, if there is one.
func (t *trial) own() func(context.Context, string) error {
	if d, ok := t.w.process(0).(kit.Deleter); ok {
		return d.Delete
	}
	return t.o.Delete
}

// delete deletes the lease, on record. That there is nothing to delete may be an
// error.
func (t *trial) delete(by func() func(context.Context, string) error) {
	remove := by()
	if remove == nil {
		panic(skipped("there is no way to delete a lease: see Options.Delete"))
	}
	at := t.w.clk.Now()
	c := t.rec.Invoke("delete", keyField(t.lease))
	err := guarded(context.Background(), t.w.clk, patience, func(ctx context.Context) error { return remove(ctx, t.lease) })
	if err != nil {
		c.Info()
		t.tell(at, "an operator deletes it", fmt.Sprintf("error: %v", err))
		return
	}
	c.OK()
	t.tell(at, "an operator deletes it", "done")
}
