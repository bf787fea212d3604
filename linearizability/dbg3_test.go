package linearizability

import (
	"fmt"
	"testing"
)

func TestDbg3(t *testing.T) {
	h := dbgHistory(62)
	spans := h.spans()
	m := Model{Name: ModelLease}
	parts, _ := divide(&h, families(m)[0], Options{Model: m}, spans)
	t.Logf("%+v", h.Meta)
	for _, a := range parts[0].p.actions {
		e := &h.Events[a.Call]
		until := fmt.Sprint(float64(a.until) / 1e9)
		if a.until == Unbounded {
			until = "inf"
		}
		t.Log(a.call, a.ret%100000, e.Process, float64(a.since)/1e9, until, a.unknown, describeOp(&h, a.Op))
	}
}
