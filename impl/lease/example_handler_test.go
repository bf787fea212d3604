package lease_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// table is a store of its own making: it keeps a record a resource, and has
// each call answered by the rules.
type table struct {
	lease.Handler

	clk  clock.Clock
	mu   sync.Mutex // where a database has a transaction
	rows map[string]lease.Record
}

func newTable(clk clock.Clock) *table {
	t := &table{clk: clk, rows: map[string]lease.Record{}}
	t.Handler = func(ctx context.Context, c lease.Call) (lease.Reply, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return lease.Reply{}, err
		}
		next, reply := t.rows[c.Resource].Handle(t.clk.Now(), 0, c.Request)
		t.rows[c.Resource] = next // durable before reply is given
		return reply, nil
	}
	return t
}

// The methods of a store from the one that answers.
func ExampleHandler() {
	store := newTable(clock.NewManual(0))
	ctx := context.Background()
	g, err := store.Acquire(ctx, "db", alice, 10*time.Second)
	fmt.Println(g.Token, g.TTL, err)
	_, err = store.Acquire(ctx, "db", bob, 10*time.Second)
	fmt.Println(lease.Refusal(err))
	fmt.Println(store.Release(ctx, "db", alice, g.Token))
	o, err := store.Get(ctx, "db")
	fmt.Println(o.Holder.IsZero(), o.Token, err)
	// Output:
	// 1 10s <nil>
	// held
	// <nil>
	// true 1 <nil>
}

// What a store of many calls gives for each.
func ExampleReply_Answer() {
	record := lease.Record{}
	_, reply := record.Handle(0, 0, lease.Request{Op: lease.OpAcquire, Holder: alice, TTL: 10 * time.Second})
	answer := reply.Answer("db")
	fmt.Println(answer.Grant.Resource, answer.Grant.Token, answer.Err)
	// Output: db 1 <nil>
}

// A store that keeps a holder's text refuses those whose text says something else.
func ExampleHolder_Valid() {
	for _, h := range []lease.Holder{alice, {}, {Node: "rack#7", Seq: 1, Nonce: 1}} {
		fmt.Printf("%q %v\n", h, h.Valid())
	}
	// Output:
	// "alice#1.a11ce" true
	// "" false
	// "rack#7#1.1" false
}
