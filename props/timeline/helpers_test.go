package timeline_test

import (
	"os"
	"path/filepath"
	"testing"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/sim"
)

// unfenced lets everything in.
type unfenced struct{ sim.Storage }

func (unfenced) Handle(s *sim.StorageState, _ *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	return s.Apply(req, true)
}

// fromReply counts down from when the reply arrives, not from the send.
type fromReply struct{ sim.Client }

func (r fromReply) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	rep.Sent = now.Boot
	return r.Client.Receive(c, now, rep)
}

func subjects() map[string]sim.Subject {
	open, late := sim.Builtin(), sim.Builtin()
	open.Storage = unfenced{}
	late.Client = fromReply{}
	return map[string]sim.Subject{"builtin": sim.Builtin(), "mutant:unfenced": open, "mutant:from-reply": late}
}

// run replays a schedule of testdata.
func run(t testing.TB, name string) (*sim.Schedule, []model.Event, sim.Result) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := sim.ReadSchedule(f, f.Name())
	if err != nil {
		t.Fatal(err)
	}
	subject, ok := subjects()[s.Subject]
	if !ok {
		t.Fatalf("%s: no subject is called %q", f.Name(), s.Subject)
	}
	var trace sim.Trace
	res := s.Run(subject, sim.Options{Monitor: true, Trace: &trace})
	if res.First.Invariant != s.Expect {
		t.Fatalf("%s: %v is violated, expected %v", f.Name(), res.First.Invariant, s.Expect)
	}
	if _, all := res.Counts.Actions(); int(all) != len(s.Actions) && s.Expect == model.NoInvariant {
		t.Fatalf("%s: only %d of %d actions ran", f.Name(), all, len(s.Actions))
	}
	for k, n := range res.Counts.Noop {
		if n > 0 {
			t.Errorf("%s: %d actions %q did nothing", f.Name(), n, sim.Kind(k))
		}
	}
	return s, trace.Events, res
}
