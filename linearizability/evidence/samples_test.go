package evidence_test

import (
	"fmt"
	"slices"
	"time"

	"fencepost/linearizability/evidence"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

func span(from, to int64) evidence.Span { return evidence.Span{From: from, To: to} }

// frozenClient is the story that fencing tokens are told with (Kleppmann 2016):
// A freezes while it leads, its lease lapses, B takes over, and A wakes up and
// writes. At a storage that checks tokens its write is refused; if it landed,
// the storage is to blame.
func frozenClient(landed bool) evidence.Page {
	lease := evidence.Resource{
		Name: "shard-1", Model: "timed lease", Verdict: evidence.Holds,
		Tenures: []evidence.Tenure{
			{Who: "A", Token: 1, Must: span(1100*ms, 7700*ms), May: span(1000*ms, 7800*ms)},
			{Who: "B", Token: 2, Must: span(8600*ms, 16000*ms), May: span(8400*ms, 16400*ms)},
		},
		Beliefs: []evidence.Belief{
			{Who: "A", Token: 1, Span: span(1100*ms, 13500*ms), Waived: "its clock stood still for 8 s"},
			{Who: "B", Token: 2, Span: span(9300*ms, 16000*ms)},
		},
		Operations: []evidence.Operation{
			{ID: 0, Process: "A", Who: "A", Call: 1000 * ms, Return: 1100 * ms, Label: "acquire: token 1", Details: "ttl 5s", Lines: []int{2, 3}},
			{ID: 1, Process: "A", Who: "A", Call: 2700 * ms, Return: 2800 * ms, Label: "renew", Details: "ttl 5s", Lines: []int{5, 6}},
			{ID: 2, Process: "B", Who: "B", Call: 3400 * ms, Return: 3500 * ms, Outcome: evidence.Fail, Label: "acquire: held by A", Lines: []int{7, 8}},
			{ID: 3, Process: "B", Who: "B", Call: 5900 * ms, Return: 6000 * ms, Outcome: evidence.Fail, Label: "acquire: held by A", Lines: []int{9, 10}},
			{ID: 4, Process: "B", Who: "B", Call: 8400 * ms, Return: 8600 * ms, Label: "acquire: token 2", Details: "ttl 5s", Lines: []int{12, 13}},
			{ID: 5, Process: "B", Who: "B", Call: 10900 * ms, Return: 11000 * ms, Label: "renew", Details: "ttl 5s", Lines: []int{18, 19}},
			{ID: 6, Process: "A", Who: "A", Call: 13300 * ms, Return: 13500 * ms, Outcome: evidence.Fail, Label: "renew: lapsed", Lines: []int{22, 25}},
		},
		Order: evidence.Linearization{Start: "held by nobody", Placed: []evidence.Placed{
			{Op: 0, State: "held by A, token 1"}, {Op: 1, State: "held by A, token 1"}, {Op: 2, State: "held by A, token 1"}, {Op: 3, State: "held by A, token 1"},
			{Op: 4, State: "held by B, token 2"}, {Op: 5, State: "held by B, token 2"}, {Op: 6, State: "held by B, token 2"},
		}},
	}
	disk := evidence.Resource{
		Name: "disk", Model: "fenced storage", Verdict: evidence.Holds,
		Operations: []evidence.Operation{
			{ID: 10, Process: "A writes", Who: "A", Call: 1900 * ms, Return: 2000 * ms, Label: "write x=1: landed", Details: "token 1", Lines: []int{4, 4}},
			{ID: 11, Process: "B writes", Who: "B", Call: 8800 * ms, Return: 9300 * ms, Label: "fence: token 2", Lines: []int{14, 15}},
			{ID: 12, Process: "B writes", Who: "B", Call: 10400 * ms, Return: 10500 * ms, Label: "write x=2: landed", Details: "token 2", Lines: []int{16, 17}},
			{ID: 13, Process: "A writes", Who: "A", Call: 12800 * ms, Return: 12900 * ms, Outcome: evidence.Fail, Label: "write x=7: stale, highest 2", Details: "token 1", Lines: []int{20, 21}},
		},
		Highest: []evidence.Step{{At: 0, Token: 0}, {At: 2000 * ms, Token: 1}, {At: 9300 * ms, Token: 2}},
		Writes:  []evidence.Write{{Op: 10, Token: 1, Landed: true}, {Op: 12, Token: 2, Landed: true}, {Op: 13, Token: 1}},
		Order: evidence.Linearization{Start: "x = 0, highest token 0", Placed: []evidence.Placed{
			{Op: 10, State: "x = 1, highest token 1"}, {Op: 11, State: "x = 1, highest token 2"}, {Op: 12, State: "x = 2, highest token 2"}, {Op: 13, State: "x = 2, highest token 2"},
		}},
	}
	p := evidence.Page{
		Title: "frozen-client.jsonl", Verdict: evidence.Holds, Model: "fencepost",
		Reason:  "A froze for 8 s and believed on beside B; the storage refused what it wrote.",
		Command: "fencepost check frozen-client.jsonl --html evidence.html",
		Faults:  []evidence.Fault{{Name: "A frozen", Details: "process and both clocks stand still", Span: span(4300*ms, 12300*ms), Lines: []int{11, 20}}},
		Findings: []evidence.Finding{{
			Check: "belief-safety", Text: "A believes under token 1 while B believes under token 2; waived, as A's clock stood still", Blame: evidence.Client,
			Spans: []evidence.Span{span(9300*ms, 13500*ms)}, Ops: []int{4, 6},
			Lines: []evidence.Line{{Number: 13, Text: `{"index":12,"time":8600000000,"process":1,"type":"ok","f":"acquire","token":2}`}, {Number: 25, Text: `{"index":24,"time":13500000000,"process":0,"type":"fail","f":"renew","error":"lapsed"}`}},
		}},
	}
	if landed {
		p.Title, p.Verdict, p.Blame = "frozen-client-unfenced.jsonl", evidence.Violated, evidence.Storage
		p.Reason = "The write of A under token 1 landed at 12.9 s, after the storage had processed token 2."
		disk.Verdict, disk.Reason = evidence.Violated, p.Reason
		disk.Operations[3].Outcome, disk.Operations[3].Label = evidence.OK, "write x=7: landed"
		disk.Operations[3].Violates, disk.Operations[3].Evidence = true, true
		disk.Operations[1].Evidence = true
		disk.Writes[2].Landed = true
		disk.Order = evidence.Linearization{Start: "x = 0, highest token 0", Placed: disk.Order.Placed[:3], Partial: true, Stuck: 13,
			Tried: []evidence.Attempt{{Op: 13, Why: "token 1 is below the highest, 2: it must be refused"}}}
		p.Findings = append([]evidence.Finding{{
			Check: "storage-safety", Text: "a write under token 1 landed after the storage had processed token 2", Blame: evidence.Storage, Violates: true,
			Ops: []int{11, 13}, Spans: []evidence.Span{span(12800*ms, 12900*ms)},
			Lines: []evidence.Line{{Number: 15, Text: `{"index":14,"time":9300000000,"process":3,"type":"ok","f":"fence"}`}, {Number: 21, Text: `{"index":20,"time":12900000000,"process":2,"type":"ok","f":"write"}`}},
		}}, p.Findings...)
	}
	p.Resources = []evidence.Resource{lease, disk}
	return p
}

// jepsen is a mutex under partitions, as Jepsen records it: 5 processes, some
// operations that time out, and in the end two acquires that both succeed.
func jepsen() evidence.Page {
	r := evidence.Resource{Name: "lock", Model: "mutex", Verdict: evidence.Violated}
	rng := uint64(3)
	random := func(n int64) int64 {
		rng = rng*6364136223846793005 + 1442695040888963407
		return int64(rng>>33) % n
	}
	var (
		ready  [5]int64 // from when each process is free
		until  int64    // the lock is held
		holder = -1
		line   = 1
		state  = "free"
	)
	partition := []evidence.Span{span(4*sec, 6500*ms), span(8400*ms, 9700*ms)}
	add := func(op evidence.Operation) {
		op.ID, op.Lines = len(r.Operations), []int{line, line + 1}
		line += 2
		r.Operations = append(r.Operations, op)
		if op.Outcome == evidence.OK {
			if op.Label == "acquire" {
				state = "locked"
			} else {
				state = "free"
			}
			r.Order.Placed = append(r.Order.Placed, evidence.Placed{Op: op.ID, State: state})
		}
	}
	for len(r.Operations) < 118 {
		p := 0
		for i := range ready {
			if ready[i] < ready[p] {
				p = i
			}
		}
		call := ready[p] + 40*ms + random(550*ms)
		process := fmt.Sprintf("process %d", p)
		cut := false
		for _, s := range partition {
			cut = cut || call > s.From && call < s.To
		}
		switch {
		case holder == p:
			call = max(call, until)
			add(evidence.Operation{Process: process, Call: call, Return: call + 8*ms + random(60*ms), Label: "release"})
			holder = -1
			ready[p] = call + 70*ms
			until = ready[p]
		case cut && random(5) == 0:
			add(evidence.Operation{Process: process, Call: call, Return: evidence.Unbounded, Outcome: evidence.Info, Label: "acquire: timeout", Details: "indeterminate: timed out after 1 s"})
			ready[p] = call + sec
		case holder < 0:
			call = max(call, until+5*ms)
			add(evidence.Operation{Process: process, Call: call, Return: call + 10*ms + random(90*ms), Label: "acquire"})
			holder, until, ready[p] = p, call+120*ms+random(200*ms), call+110*ms
		default:
			add(evidence.Operation{Process: process, Call: call, Return: call + 1*ms + random(9*ms), Outcome: evidence.Fail, Label: "release: not held"})
			ready[p] = call + 20*ms
		}
	}
	at := max(slices.Max(ready[:]), until) + 60*ms
	if holder >= 0 {
		add(evidence.Operation{Process: fmt.Sprintf("process %d", holder), Call: at, Return: at + 30*ms, Label: "release"})
		at += 90 * ms
	}
	add(evidence.Operation{Process: "process 1", Call: at, Return: at + 80*ms, Label: "acquire", Evidence: true})
	add(evidence.Operation{Process: "process 3", Call: at + 60*ms, Return: at + 290*ms, Label: "acquire", Evidence: true, Violates: true})
	first, second := len(r.Operations)-2, len(r.Operations)-1
	r.Order.Placed = r.Order.Placed[:len(r.Order.Placed)-1]
	r.Order.Start, r.Order.Partial, r.Order.Stuck = "free", true, second
	r.Order.Tried = []evidence.Attempt{{Op: second, Why: "locked by process 1, which has not released it"}}
	r.Reason = "process 3 acquires the lock while process 1 has it"
	return evidence.Page{
		Title: "etcd.edn", Verdict: evidence.Violated, Model: "mutex", Blame: evidence.Store,
		Reason:    "Process 3 acquires the lock while process 1 has it: no order of the operations explains both.",
		Notes:     []string{"5 fields were not known and are kept"},
		Command:   "fencepost check --model mutex etcd.edn --html evidence.html",
		Faults:    []evidence.Fault{{Name: "partition: majorities ring", Span: partition[0], Lines: []int{80, 120}}, {Name: "partition: halves", Span: partition[1], Lines: []int{160, 200}}, {Name: "kill n3", Span: span(7*sec, 7*sec), Lines: []int{131}}},
		Resources: []evidence.Resource{r},
		Findings: []evidence.Finding{{
			Check: "two-holders", Text: "two acquires overlap and both succeed, with no release between", Blame: evidence.Store, Violates: true, Ops: []int{first, second},
			Lines: []evidence.Line{{Number: line - 3, Text: `{:type :ok, :f :acquire, :process 1, :index 237}`}, {Number: line - 1, Text: `{:type :ok, :f :acquire, :process 3, :index 239}`}},
		}},
	}
}
