package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
)

// A singleton, with the lease in a Lease object.
func ExampleNew() {
	leases := newMemory() // clientset.CoordinationV1().Leases("default")
	store, err := kubernetes.New(leases, kubernetes.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	alice := lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa}
	bob := lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb}
	g, err := store.Acquire(ctx, "scheduler", alice, 15*time.Second) // a lease.Elector does all this
	fmt.Println(g.Token, err)
	_, err = store.Acquire(ctx, "scheduler", bob, 15*time.Second)
	fmt.Println(lease.Refusal(err))
	fmt.Println(store.Release(ctx, "scheduler", alice, g.Token))
	g, err = store.Acquire(ctx, "scheduler", bob, 15*time.Second)
	fmt.Println(g.Token, err)
	// Output:
	// 2 <nil>
	// held
	// <nil>
	// 4 <nil>
}

// An object that only the leader updates remembers the highest token.
func ExampleAdmit() {
	o := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plan", ResourceVersion: "7"}} // as a Get gave it
	fmt.Println(kubernetes.Admit(o, 34))                                                    // and an Update follows
	err := kubernetes.Admit(o, 33)
	fmt.Println(err)
	fmt.Println(errors.Is(err, lease.ErrStale))
	// Output:
	// <nil>
	// token 33 is stale: the storage has seen 34; stop, and acquire the lease anew
	// true
}

// The object of a resource, for kubectl.
func ExampleObjectName() {
	fmt.Println(kubernetes.ObjectName("scheduler"))
	fmt.Println(kubernetes.ObjectName("Shards/7")[:14] + "...")
	// Output:
	// scheduler
	// fencepost-82e0...
}
