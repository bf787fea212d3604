package linearizability_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fencepost/linearizability"

	"github.com/anishathalye/porcupine"
)

// peerInput and peerOutput are an operation on a register as porcupine's own
// tests of this set have it.
type peerInput struct {
	op       string
	old, new int64
}

type peerOutput struct {
	ok, exists, unknown bool
	value               int64
}

var peerModel = porcupine.Model{
	Init: func() any { return peerOutput{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(peerOutput), input.(peerInput), output.(peerOutput)
		switch in.op {
		case "read":
			return out.unknown || out.exists == s.exists && out.value == s.value, s
		case "write":
			return true, peerOutput{exists: true, value: in.new}
		}
		if holds := s.exists && s.value == in.old; holds {
			return out.ok || out.unknown, peerOutput{exists: true, value: in.new}
		}
		return !out.ok || out.unknown, s
	},
}

// peerEvents are a history as porcupine takes it.
func peerEvents(h *linearizability.History) []porcupine.Event {
	var events []porcupine.Event
	open := make(map[int64]int)
	n := 0
	for i := range h.Events {
		e := &h.Events[i]
		v := e.Field("value")
		switch {
		case e.Type == linearizability.Invoke:
			in := peerInput{op: e.F}
			switch e.F {
			case "write":
				in.new, _ = v.Int()
			case "cas":
				in.old, _ = v.Elems()[0].Int()
				in.new, _ = v.Elems()[1].Int()
			}
			open[e.Process] = n
			events = append(events, porcupine.Event{Kind: porcupine.CallEvent, Value: in, Id: n})
			n++
		case e.Type != linearizability.Info:
			out := peerOutput{ok: e.Type == linearizability.OK}
			if e.F == "read" {
				out.unknown = !out.ok
				out.value, out.exists = v.Int()
			}
			events = append(events, porcupine.Event{Kind: porcupine.ReturnEvent, Value: out, Id: open[e.Process]})
			delete(open, e.Process)
		}
	}
	var unknown []int
	for _, id := range open {
		unknown = append(unknown, id)
	}
	slices.Sort(unknown)
	for _, id := range unknown {
		events = append(events, porcupine.Event{Kind: porcupine.ReturnEvent, Value: peerOutput{unknown: true}, Id: id})
	}
	return events
}

// BenchmarkEtcdSet checks Jepsen's recordings of etcd, all of which Porcupine's
// own tests check, with it and with this package in turn, and reports how many
// times as long this package takes.
func BenchmarkEtcdSet(b *testing.B) {
	dir, rows := corpus(b)
	var histories []linearizability.History
	var events [][]porcupine.Event
	for _, row := range rows {
		if row[4] != "cas-register(nil)" {
			continue
		}
		h, err := linearizability.ReadFile(filepath.Join(dir, row[0]))
		if err != nil {
			continue // one is empty
		}
		histories, events = append(histories, h), append(events, peerEvents(&h))
	}
	o := linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelCASRegister}}
	var ours, theirs time.Duration
	for b.Loop() {
		for i, h := range histories {
			start := time.Now()
			legal := porcupine.CheckEvents(peerModel, events[i])
			theirs += time.Since(start)
			start = time.Now()
			v, err := linearizability.Check(b.Context(), h, o)
			ours += time.Since(start)
			if err != nil || (v.Result == linearizability.Holds) != legal {
				b.Fatalf("porcupine says %v: %v %v", legal, v, err)
			}
		}
	}
	b.ReportMetric(float64(theirs.Milliseconds())/float64(b.N), "porcupine-ms/op")
	b.ReportMetric(float64(ours)/float64(theirs), "times-porcupine")
}
