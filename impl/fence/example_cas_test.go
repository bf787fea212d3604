package fence_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// lockedLease is a lease that can be looked at while nothing changes it: the
// least that a CompareAndSwap asks of a store.
type lockedLease struct {
	mu     sync.Mutex
	record lease.Record
	now    time.Duration
}

func (l *lockedLease) do(req lease.Request) lease.Reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rep lease.Reply
	l.record, rep = l.record.Handle(l.now, 0, req)
	return rep
}

func (l *lockedLease) View(_ context.Context, _ string, f func(lease.Durable)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.record.Durable)
	return nil
}

// The second holder has neither written nor fenced, and yet the first is
// refused: the storage looks at the lease, not at what came before.
func ExampleCompareAndSwap() {
	ctx := context.Background()
	l := &lockedLease{record: lease.Record{Durable: lease.Durable{Token: 32}}}
	s := fence.NewCompareAndSwap(l, "shard-1")

	c1 := lease.Holder{Node: "c1", Seq: 1}
	c2 := lease.Holder{Node: "c2", Seq: 1}
	first := l.do(lease.Request{Op: lease.OpAcquire, Holder: c1, TTL: 5 * time.Second})
	fmt.Println(s.Write(ctx, first.Token, "X", "1"))

	l.now += 5 * time.Second // it lapses
	l.do(lease.Request{Op: lease.OpAcquire, Holder: c2, TTL: 5 * time.Second})
	fmt.Println(s.Write(ctx, first.Token, "X", "1 again"))
	// Output:
	// <nil>
	// lease "shard-1" does not carry token 33: the last one issued is 34; stop, and acquire the lease anew
}
