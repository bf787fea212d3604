package etcd

import (
	"context"
	"sync"

	"fencepost/impl/lease"
)

// batchWidth is how many acquires and releases of a batch are on their way at
// once. Each waits for the cluster's log, which takes many at a time.
const batchWidth = 32

// Batch implements [lease.Batcher]. Renewals share one stream of keep-alives and
// a read for each 128: that is what makes thousands of leases cheap. One that
// comes just after its lapse, before etcd has noticed, holds up those behind it
// until it has, for about a second at most.
//
// Acquires and releases are made 32 at a time, and cost what they cost alone.
func (s *Store) Batch(ctx context.Context, calls []lease.Call) []lease.Answer {
	answers := make([]lease.Answer, len(calls))
	var renewals []lease.Call
	var where []int // in calls, of each renewal
	var wg sync.WaitGroup
	slots := make(chan struct{}, batchWidth)
	for i, c := range calls {
		if c.Op == lease.OpRenew {
			renewals, where = append(renewals, c), append(where, i)
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			answers[i] = s.one(ctx, c)
			<-slots
		})
	}
	for i, a := range s.renew(ctx, renewals) {
		answers[where[i]] = a
	}
	wg.Wait()
	return answers
}

func (s *Store) one(ctx context.Context, c lease.Call) (a lease.Answer) {
	switch c.Op {
	case lease.OpAcquire:
		a.Grant, a.Err = s.Acquire(ctx, c.Resource, c.Holder, c.TTL)
	case lease.OpRelease:
		a.Err = s.Release(ctx, c.Resource, c.Holder, c.Token)
	default:
		a.Err = &lease.InvalidError{Resource: c.Resource, Op: c.Op}
	}
	return a
}
