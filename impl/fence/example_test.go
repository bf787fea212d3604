package fence_test

import (
	"context"
	"errors"
	"fmt"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// The rule by itself, as a storage of one's own runs it.
func ExampleGuard_Admit() {
	var g fence.Guard
	for _, token := range []lease.Token{33, 33, 34, 33} {
		var ok bool
		g, ok = g.Admit(token)
		fmt.Println(token, ok, "highest", g.Highest)
	}
	// Output:
	// 33 true highest 33
	// 33 true highest 33
	// 34 true highest 34
	// 33 false highest 34
}

// The frozen client: C1 leads under token 33 and stands still for so long that
// its lease lapses. C2 leads under 34, reads, and writes what follows from it.
// Then C1 goes on, as if no time had passed.
func ExampleStorage() {
	ctx := context.Background()
	var s fence.Storage
	fmt.Println("C1:", s.Fence(ctx, 33))
	fmt.Println("C1:", s.Write(ctx, 33, "X", "old"))

	fmt.Println("C2:", s.Fence(ctx, 34))
	fmt.Println("C2:", s.Write(ctx, 34, "X", "2"))

	fmt.Println("C1:", s.Write(ctx, 33, "X", "1"))
	x, _, _ := s.Read(ctx, "X")
	fmt.Println("X is", x)
	// Output:
	// C1: <nil>
	// C1: <nil>
	// C2: <nil>
	// C2: <nil>
	// C1: token 33 is stale: the storage has seen 34; stop, and acquire the lease anew
	// X is 2
}

// The same without fencing: the update of C2 is lost, and nobody is told.
func ExampleUnfenced() {
	ctx := context.Background()
	var u fence.Unfenced
	fmt.Println("C1:", u.Write(ctx, 33, "X", "old"))
	fmt.Println("C2:", u.Write(ctx, 34, "X", "2"))
	fmt.Println("C1:", u.Write(ctx, 33, "X", "1"))
	x, _, _ := u.Read(ctx, "X")
	fmt.Println("X is", x)
	// Output:
	// C1: <nil>
	// C2: <nil>
	// C1: <nil>
	// X is 1
}

// Once the barrier is acknowledged, what a new leader reads stays so until it
// writes itself.
func ExampleStorage_Fence() {
	ctx := context.Background()
	var s fence.Storage
	fmt.Println(s.Write(ctx, 33, "X", "old"))
	fmt.Println(s.Fence(ctx, 34))
	x, _, _ := s.Read(ctx, "X")
	fmt.Println("C2 goes by", x)
	fmt.Println(errors.Is(s.Write(ctx, 33, "X", "1"), fence.ErrStale))
	// Output:
	// <nil>
	// <nil>
	// C2 goes by old
	// true
}

func ExampleStorage_Read() {
	ctx := context.Background()
	var s fence.Storage
	if err := s.Write(ctx, 33, "X", "1"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(s.Read(ctx, "X"))
	fmt.Println(s.Read(ctx, "Y"))
	// Output:
	// 1 true <nil>
	//  false <nil>
}

// The error says by what a writer was overtaken.
func ExampleStaleTokenError() {
	ctx := context.Background()
	var s fence.Storage
	fmt.Println(s.Fence(ctx, 34))
	err := s.Write(ctx, 33, "X", "1")
	if stale, ok := errors.AsType[*fence.StaleTokenError](err); ok {
		fmt.Println("refused", stale.Token, "after", stale.Highest)
	}
	// Output:
	// <nil>
	// refused 33 after 34
}

// A storage is moved by its snapshot.
func ExampleStorage_Durable() {
	ctx := context.Background()
	var s fence.Storage
	fmt.Println(s.Write(ctx, 34, "X", "2"))
	moved := fence.Restore(s.Durable(), nil)
	fmt.Println(moved.Highest())
	// Output:
	// <nil>
	// 34
}

// A journal is replayed one entry at a time, and one out of order is noticed.
func ExampleDurable_Apply() {
	var d fence.Durable
	fmt.Println(d.Apply(fence.Entry{Token: 34, Key: "X", Value: "2"}))
	fmt.Println(d.Apply(fence.Entry{Token: 33, Key: "X", Value: "1"}))
	fmt.Println(d.Values["X"])
	// Output:
	// <nil>
	// token 33 is stale: the storage has seen 34; stop, and acquire the lease anew
	// 2
}

// The rule of compare-and-swap by itself, for a store that keeps its own data.
func ExampleCarries() {
	d := lease.Durable{Token: 34, Holder: lease.Holder{Node: "c2", Seq: 1}, Status: lease.Running}
	fmt.Println(fence.Carries(d, 33), fence.Carries(d, 34))
	d.Status = lease.Free // released
	fmt.Println(fence.Carries(d, 34))
	// Output:
	// false true
	// false
}

// Whatever is a KV can be asked in the same way, whichever rule it keeps.
func ExampleKV() {
	ctx := context.Background()
	for _, kv := range []fence.KV{new(fence.Storage), new(fence.Unfenced)} {
		fmt.Println(kv.Write(ctx, 34, "X", "2"))
		fmt.Println(errors.Is(kv.Write(ctx, 33, "X", "1"), fence.ErrStale))
	}
	// Output:
	// <nil>
	// true
	// <nil>
	// false
}
