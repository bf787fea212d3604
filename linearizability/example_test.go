package linearizability_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"fencepost/linearizability"
	"fencepost/model"
)

// A lease is taken over half a TTL after it was granted.
const takenEarly = `{"meta":{"version":1,"drift":0,"early":0,"late":0,"eps":0,"tokens":"next","anchor":"grant"}}
{"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"shard-1","owner":"a#1","ttl":2000000000}
{"index":1,"time":1000000,"process":0,"type":"ok","f":"acquire","token":10}
{"index":2,"time":1000000000,"process":1,"type":"invoke","f":"acquire","key":"shard-1","owner":"b#1","ttl":2000000000}
{"index":3,"time":1001000000,"process":1,"type":"ok","f":"acquire","token":11}
`

func ExampleCheck() {
	h, err := linearizability.Read(strings.NewReader(takenEarly), "early.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	v, err := linearizability.Check(ctx, h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v)
	// Output:
	// early.jsonl: lease: violated, 2 operations in 1 partition
	//   lease "shard-1": violated: no order of the operations explains line 5: process 1: acquire key=shard-1 owner=b#1 ttl=2000000000 → ok token=11
	//   overlap: "a#1" (token 10) and "b#1" (token 11) both led "shard-1" for 999ms: the store granted the lease before it could have lapsed; blame the store (line 3, line 5)
	//   taken-early: "shard-1" was granted to "b#1" (token 11) at least 999ms before the TTL of "a#1" (token 10) can have run out; blame the store (line 3, line 5)
}

func ExampleParseModel() {
	m, err := linearizability.ParseModel("cas-register(0)")
	fmt.Println(m, err)
	m, err = linearizability.ParseModel("permits(3)")
	fmt.Println(m, m.N, err)
	_, err = linearizability.ParseModel("permits")
	fmt.Println(err)
	// Output:
	// cas-register(0) <nil>
	// permits(3) 3 <nil>
	// model "permits": want permits(N) for an integer N from 1 to 1000000
}

func ExampleModels() {
	fmt.Println(strings.Join(linearizability.Models(), " "))
	// Output:
	// auto register(INIT) cas-register(INIT) multi-register(INIT) mutex owner-mutex reentrant-mutex(N) fenced-mutex reentrant-fenced-mutex(N) permits(N) kv storage cas-storage lease fencepost
}

func ExampleChoose() {
	h, _ := linearizability.Read(strings.NewReader(`{"process":0,"type":"invoke","f":"acquire"}
{"process":0,"type":"ok","f":"acquire"}
{"process":0,"type":"invoke","f":"release"}
{"process":0,"type":"ok","f":"release"}`), "h")
	_, why, err := linearizability.Choose(&h)
	fmt.Println(why, err)
	// Output:
	// acquire and release without owner, token or TTL: mutex <nil>
}

func ExampleChooseFrom() {
	events := slices.Values([]*linearizability.Event{
		{Process: 0, Type: linearizability.Invoke, F: "acquire", Fields: []linearizability.Field{{Name: "owner", Value: linearizability.String("a")}}},
		{Process: 0, Type: linearizability.OK, F: "acquire", Fields: []linearizability.Field{{Name: "token", Value: linearizability.Int(3)}}},
	})
	_, _, err := linearizability.ChooseFrom(events)
	fmt.Println(err)
	// Output:
	// no model chosen: acquires are granted tokens, and no TTL is given; name one: lease, with its TTL, if the lock lapses by itself, or fenced-mutex if it does not
}

func ExampleRead() {
	// Jepsen's EDN, told by its content.
	h, err := linearizability.Read(strings.NewReader(`[{:process 0, :type :invoke, :f :read, :value nil}
 {:process 0, :type :ok, :f :read, :value 3}]`), "history.edn")
	fmt.Println(len(h.Events), "events:", h.Events[1].F, h.Events[1].Field("value"), err)

	_, err = linearizability.Read(strings.NewReader(`{"process":0,"type":"ok","f":"read"}`), "history.jsonl")
	fmt.Println(err)
	// Output:
	// 2 events: read 3 <nil>
	// history.jsonl:1: field "process": 0 returns from "read" without a call
}

func ExampleHistory_WriteEDN() {
	h, _ := linearizability.Read(strings.NewReader(`{"index":0,"time":7,"process":0,"type":"invoke","f":"cas","value":[1,2],"host":"n1"}
{"index":1,"time":8,"process":0,"type":"fail","f":"cas","error":"mismatch"}`), "h")
	h.WriteEDN(os.Stdout)
	// Output:
	// {:index 0, :time 7, :process 0, :type :invoke, :f :cas, :value [1 2], :host "n1"}
	// {:index 1, :time 8, :process 0, :type :fail, :f :cas, :error :mismatch}
}

func ExampleRecorder() {
	var now time.Duration // a monotonic clock, in earnest
	r, err := linearizability.NewRecorder(os.Stdout, linearizability.DefaultMeta(), func() time.Duration { now++; return now })
	if err != nil {
		fmt.Println(err)
		return
	}
	read := r.Invoke("read")
	write := r.Invoke("write", linearizability.Field{Name: "value", Value: linearizability.Int(3)})
	read.OK(linearizability.Field{Name: "value"})
	write.Info() // the answer never came
	fmt.Println(r.Flush())
	// Output:
	// {"meta":{"version":1,"drift":0,"early":0,"late":null,"eps":0,"tokens":"next","anchor":"grant"}}
	// {"index":0,"time":1,"process":0,"type":"invoke","f":"read"}
	// {"index":1,"time":2,"process":1,"type":"invoke","f":"write","value":3}
	// {"index":2,"time":3,"process":0,"type":"ok","f":"read","value":null}
	// {"index":3,"time":4,"process":1,"type":"info","f":"write"}
	// <nil>
}

func ExampleVerdict_WriteHTML() {
	h, _ := linearizability.Read(strings.NewReader(takenEarly), "early.jsonl")
	v, _ := linearizability.Check(context.Background(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}})
	var page strings.Builder
	fmt.Println(v.WriteHTML(context.Background(), &page), strings.Contains(page.String(), "b#1"))
	// Output:
	// <nil> true
}

func ExampleJepsenLock() {
	h, _ := linearizability.Read(strings.NewReader(`
{:process 0, :type :invoke, :f :acquire, :time 0}
{:process 0, :type :ok, :f :acquire, :time 5}
{:process 0, :type :invoke, :f :release, :time 9}
{:process 0, :type :fail, :f :release, :time 10, :error [:not-found "etcdserver: requested lease not found"]}`), "lock.edn")
	lock, err := linearizability.JepsenLock(h, 2*time.Second)
	fmt.Println(lock.Events[3].Field("error"), lock.Meta.Anchor, err)
	// Output:
	// :lapsed call <nil>
}

func ExampleFromTrace() {
	var names model.Names
	names[1].Name, names[1].Role = "store", model.RoleStore
	names[2].Name, names[2].Role = "C1", model.RoleClient
	owner, request := model.Owner{Node: 2, Seq: 1}, model.Msg{Action: 1}
	h := linearizability.FromTrace([]model.Event{
		{At: 5, Kind: model.KindInvoke, Node: 2, Peer: 1, Req: request, Op: model.OpAcquire, Owner: owner, TTL: 1e9},
		{At: 7, Kind: model.KindHandle, Node: 1, Peer: 2, Req: request, Msg: request, Op: model.OpAcquire, Owner: owner, TTL: 1e9, Code: model.CodeGranted, Token: 1},
		{At: 9, Kind: model.KindReturn, Node: 2, Peer: 1, Req: request, Op: model.OpAcquire, Owner: owner, TTL: 1e9, Code: model.CodeGranted, Token: 1},
	}, &names, linearizability.DefaultMeta())
	h.WriteEDN(os.Stdout)
	// Output:
	// {:index 0, :time 5, :process 0, :type :invoke, :f :acquire, :key "store", :owner "C1#1", :ttl 1000000000}
	// {:index 1, :time 9, :process 0, :type :ok, :f :acquire, :token 1}
}

func ExampleDetect() {
	fmt.Println(linearizability.Detect([]byte("INFO  jepsen.util - 0\t:invoke\t:read\tnil")))
	// Output:
	// log
}

func ExampleHistory_Validate() {
	h := linearizability.History{Name: "h", Events: []linearizability.Event{
		{Index: 0, Process: 3, Type: linearizability.Invoke, F: "read"},
		{Index: 1, Process: 3, Type: linearizability.Invoke, F: "read"},
	}}
	fmt.Println(h.Validate())
	// Output:
	// h:2: field "process": 3 calls "read" while its "read" of line 1 is open
}

// A finding names its anomaly by one of these.
func ExampleChecks() {
	for _, c := range linearizability.Checks() {
		fmt.Printf("%-20s %-25s %v\n", c.Name, c.Invariant, c.Blame)
	}
	// Output:
	// overlap              belief-safety             [store client]
	// overstayed           belief-implies-ownership  [client]
	// led-ungranted        belief-implies-ownership  [client]
	// continuity           continuity                [client]
	// taken-early          belief-implies-ownership  [store]
	// lapsed-early         belief-implies-ownership  [store]
	// orphan-lease         availability              [store]
	// two-owners           token-monotonicity        [store client]
	// token-not-rising     token-monotonicity        [store]
	// token-gap            token-monotonicity        [store]
	// token-granted-twice  token-monotonicity        [store]
	// already-from-nowhere token-monotonicity        [store]
	// slot-out-of-range    belief-safety             [store]
	// stale-write-landed   storage-safety            [storage]
	// write-before-barrier barrier                   [client]
	// write-ungranted      attribution               [client]
	// phantom              durability                [storage]
	// lost-write           durability                [storage]
	// owner-misrecorded    none                      [recorder]
	// token-misrecorded    none                      [recorder]
}

// Check reads such a history by itself; what it makes of it is a history of a
// lease with slots.
func ExampleQueenLease() {
	h, err := linearizability.Read(strings.NewReader(`{"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"jl0"}
{"index":1,"time":1000000000,"process":0,"type":"ok","f":"acquire","owner":"A","ttl":2000000000,"token":10,"slot":0,"already":false,"key":"jl0"}
`), "queen.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	h = linearizability.QueenLease(h)
	fmt.Println(h.Meta.Slots, h.Meta.Tokens, h.Events[0].Field("owner"), h.Events[0].Field("ttl"))
	// Output: 1 rising "A" 2000000000
}
