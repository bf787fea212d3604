package judge

import (
	"context"

	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/sim"
)

// Linearize says whether the history of a run is explained by the timed lease
// and, unless writes were guarded by the lease itself, by the fenced storage.
// It is unknown where the search ran out of memory.
func Linearize(events []model.Event, cfg *sim.Config, p model.Promise) linearizability.Result {
	_, v := check(events, cfg, p)
	return resultOf(&v)
}

// Explain says in a sentence what [Linearize] does not find explained, or
// nothing where there is no such thing.
func Explain(events []model.Event, cfg *sim.Config, p model.Promise) string {
	_, v := check(events, cfg, p)
	if part := violated(&v); part != nil {
		return part.Reason
	}
	return ""
}

// linearize is Linearize, with the violation where there is one: at the request
// whose answer is the first that no order explains.
func linearize(events []model.Event, cfg *sim.Config, p model.Promise) (linearizability.Result, model.Violation) {
	h, verdict := check(events, cfg, p)
	part := violated(&verdict)
	if part == nil {
		return resultOf(&verdict), model.Violation{}
	}
	v := model.Violation{Invariant: model.Linearizability, At: events[len(events)-1].At}
	if part.Index >= int64(len(h.Events)) {
		return linearizability.Violated, v
	}
	answer := &h.Events[part.Index]
	owner := ""
	for i := part.Index; i >= 0; i-- {
		if call := &h.Events[i]; call.Process == answer.Process && call.Type == linearizability.Invoke {
			owner, _ = call.Field("owner").Word()
			break
		}
	}
	for i := range events {
		e := &events[i]
		if e.Kind == model.KindHandle && e.At <= answer.Time && e.Op.String() == answer.F && (owner == "" || owner == sim.Names().Owner(e.Owner)) {
			v.At, v.Action, v.Node = e.At, e.Action, e.Node
		}
	}
	return linearizability.Violated, v
}

// check is the history of a run, and the verdict on it.
func check(events []model.Event, cfg *sim.Config, p model.Promise) (linearizability.History, linearizability.Verdict) {
	h := History("run", events, cfg, p)
	if len(h.Events) == 0 {
		return h, linearizability.Verdict{}
	}
	o := linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelFencepost}, Memory: maxMemory}
	if cfg.Storage == sim.StorageCompareAndSwap {
		o.Model.Name, o.Ignore = linearizability.ModelLease, []string{"write", "read", "fence"}
	}
	v, err := linearizability.Check(context.Background(), h, o)
	if err != nil {
		panic(err) // a history made of a trace is well-formed
	}
	return h, v
}

func violated(v *linearizability.Verdict) *linearizability.Partition {
	for i := range v.Partitions {
		if p := &v.Partitions[i]; p.Result == linearizability.Violated {
			return p
		}
	}
	return nil
}

func resultOf(v *linearizability.Verdict) linearizability.Result {
	if violated(v) != nil {
		return linearizability.Violated
	}
	for i := range v.Partitions {
		if v.Partitions[i].Result == linearizability.Unknown {
			return linearizability.Unknown
		}
	}
	return linearizability.Holds
}
