package sim

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// generateMany draws schedules as the properties do and gives what they reached.
func generateMany(t *testing.T, p Profile, schedules uint64, each func(*World, *Action) bool) (c Counts) {
	t.Helper()
	for seed := range schedules {
		src := rand.NewPCG(seed, 3)
		cfg := RandomConfig(src)
		w, err := NewWorld(cfg, Builtin(), Options{Monitor: true, Lockstep: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		Generate(src, &p, &w, 120, each)
		if v := w.First(); v.Invariant != model.NoInvariant {
			t.Fatalf("%s, seed %d: %v: %s\n%+v", p.Name, seed, v.Invariant, v.Describe(Names()), w.Mismatch())
		}
		c.Add(w.Counts())
	}
	return c
}

func TestGeneratedActionsAreEffective(t *testing.T) {
	for _, p := range []Profile{Chaos(), Raw()} {
		c := generateMany(t, p, 500, nil)
		effective, all := c.Actions()
		if all < 500*120 {
			t.Errorf("%s: only %d actions", p.Name, all)
		}
		if float64(effective) < 0.9*float64(all) {
			t.Errorf("%s: %d of %d actions did something, want 9 in 10", p.Name, effective, all)
		}
	}
}

// A run that reached nothing has checked nothing.
func TestGeneratedSchedulesReachWhatMatters(t *testing.T) {
	chaos, raw := generateMany(t, Chaos(), 500, nil), generateMany(t, Raw(), 500, nil)
	for _, c := range []struct {
		name   string
		counts *Counts
	}{{"chaos", &chaos}, {"raw", &raw}} {
		n := c.counts
		for what, reached := range map[string]int64{
			"terms": n.Terms, "takeovers": n.Takeovers, "stale requests refused": n.StaleRefused, "writes landed": n.Landed,
			"renewals lost": n.RenewalsLost, "terms that survived one": n.Survived, "terms that waited for the barrier": n.Fencing,
			"barriers that failed": n.BarrierFailed, "copies handled": n.Copies, "restarts of clients": n.ClientRestarts,
			"restarts of the store": n.StoreRestarts, "restarts of the storage": n.Storage, "calms": n.Calms,
			"lapsed terms": n.StepDown[model.ReasonLapsed], "refused terms": n.StepDown[model.ReasonRefused], "resigned terms": n.StepDown[model.ReasonResigned],
		} {
			if reached == 0 {
				t.Errorf("%s: no %s", c.name, what)
			}
		}
		for k := KindNone + 1; k < kinds; k++ {
			if raws := k >= Acquire && k <= Fence && k != Get && k != Read; n.Effective[k] == 0 && (c.name == "raw" || !raws) {
				t.Errorf("%s: %v never did anything", c.name, k)
			} else if c.name == "chaos" && raws && n.Effective[k]+n.Noop[k] > 0 {
				t.Errorf("%s: %v is no part of it", c.name, k)
			}
		}
	}
	for op, codes := range map[model.Op][]model.Code{
		model.OpAcquire: {model.CodeGranted, model.CodeHeld, model.CodeDelayed, model.CodeInvalid},
		model.OpRenew:   {model.CodeGranted, model.CodeLapsed, model.CodeLost, model.CodeInvalid},
		model.OpRelease: {model.CodeReleased, model.CodeLapsed, model.CodeLost, model.CodeInvalid},
		model.OpGet:     {model.CodeHeld, model.CodeDelayed, model.CodeFree},
		model.OpFence:   {model.CodeFenced, model.CodeStale},
		model.OpWrite:   {model.CodeLanded, model.CodeStale},
		model.OpRead:    {model.CodeValue},
	} {
		for code := range raw.Answers[op] {
			n := raw.Answers[op][code]
			if want := slices.Contains(codes, model.Code(code)); want != (n > 0) {
				t.Errorf("raw: %v was answered %v %d times", op, model.Code(code), n)
			}
			if code := model.Code(code); code != model.CodeInvalid && slices.Contains(codes, code) && chaos.Answers[op][code] == 0 {
				t.Errorf("chaos: %v was never answered %v", op, code)
			}
		}
	}
}

// A raw request under a client's live holder and token would be the client's.
func TestRawPartiesNeverPoseAsALiveTerm(t *testing.T) {
	asClient := 0
	generateMany(t, Raw(), 500, func(w *World, a *Action) bool {
		switch a.Kind {
		case Acquire, Renew, Release:
			if a.Who < firstRaw {
				t.Errorf("%v by a client", a)
			}
			if a.As.Node != 0 && a.As.Node < firstRaw {
				asClient++
			}
		case Write, Fence:
			if a.Who < firstRaw {
				t.Errorf("%v by a client", a)
			}
		}
		for i := range w.setup.cfg.Clients {
			st, _ := w.Client(i)
			switch live := a.As == ownerOf(st.Holder); {
			case a.Kind == Acquire && live:
				t.Errorf("%v as the live incarnation of C%d", a, i+1)
			case (a.Kind == Renew || a.Kind == Release) && live && (a.Token == uint64(st.Token) || st.Phase == lease.Campaigning):
				t.Errorf("%v poses as C%d in its term", a, i+1)
			}
		}
		return !t.Failed()
	})
	if asClient == 0 {
		t.Error("no raw request ever named a client's incarnation")
	}
}

func TestRandomConfigurationsAreValidAndVaried(t *testing.T) {
	src := rand.NewPCG(1, 1)
	seen := map[Config]bool{}
	barrier, delay, offset := 0, 0, 0
	for range 1000 {
		c := RandomConfig(src)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, d := range append(c.Offsets[:], c.Lease.TTL, c.Lease.SafetyMargin, c.Lease.RetryInterval, c.Lease.LockDelay) {
			if d%time.Millisecond != 0 {
				t.Errorf("%v is not in whole milliseconds: %+v", d, c)
			}
		}
		seen[c] = true
		barrier += btoi(c.Lease.Barrier)
		delay += btoi(c.Lease.LockDelay > 0)
		offset += btoi(c.Offsets != [model.MaxNodes]time.Duration{})
	}
	if len(seen) < 500 || barrier < 100 || delay < 100 || offset < 100 {
		t.Errorf("of 1000 configurations %d differ; barrier %d, lock delay %d, offsets %d", len(seen), barrier, delay, offset)
	}
}

// Clocks of generated schedules stay inside the bound, so that belief safety is
// put to the test: only a freeze or a deletion may waive it.
func TestGeneratedClocksKeepTheBound(t *testing.T) {
	p := Chaos()
	p.Weights[Freeze], p.Weights[Delete] = 0, 0
	waived := model.Set(0)
	drifts := generateMany(t, p, 500, func(w *World, _ *Action) bool {
		waived |= w.Waived()
		return true
	}).Effective[Drift]
	if waived != 0 || drifts == 0 {
		t.Errorf("waived %v in runs with %d drifts", waived, drifts)
	}
}

func TestGenerateStopsWhereItIsTold(t *testing.T) {
	src := rand.NewPCG(1, 1)
	w, err := NewWorld(plainConfig(), Builtin(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := Chaos()
	applied := Counts{}
	actions := AppendGenerated([]Action{{ID: 99}}, src, &p, &w, 50, func(w *World, a *Action) bool {
		applied = *w.Counts()
		return a.ID < 7
	})
	if len(actions) != 8 || actions[0].ID != 99 || actions[7].ID != 7 {
		t.Errorf("%d actions, the last %d", len(actions), actions[len(actions)-1].ID)
	}
	if _, n := applied.Actions(); n != 6 {
		t.Errorf("%d actions were applied before the seventh", n)
	}
	if _, n := w.Counts().Actions(); n != 6 {
		t.Errorf("%d actions were applied: the one that was told to be the last is one too many", n)
	}
}

func TestGeneratedSchedulesReplayToTheSameWorld(t *testing.T) {
	for seed := range uint64(50) {
		src := rand.NewPCG(seed, 9)
		cfg := RandomConfig(src)
		p := Raw()
		var drawn, replayed Trace
		w, _ := NewWorld(cfg, Builtin(), Options{Monitor: true, Trace: &drawn})
		s := Schedule{Config: cfg, Actions: Generate(src, &p, &w, 120, nil)}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		s.Run(Builtin(), Options{Monitor: true, Trace: &replayed})
		if !slices.Equal(drawn.Events, replayed.Events) {
			t.Fatalf("seed %d: drawn\n%s\nreplayed\n%s", seed, traceText(&drawn), traceText(&replayed))
		}
	}
}

// byteSource draws from a fuzzer's bytes, eight to a number, and then zeros.
type byteSource []byte

func (b *byteSource) Uint64() uint64 {
	var eight [8]byte
	n := copy(eight[:], *b)
	*b = (*b)[n:]
	return binary.LittleEndian.Uint64(eight[:])
}

func FuzzSchedule(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 4))
		b := make([]byte, 8*80)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		src := byteSource(b)
		p := Chaos()
		if src.Uint64()%2 == 1 {
			p = Raw()
		}
		cfg := RandomConfig(&src)
		w, err := NewWorld(cfg, Builtin(), Options{Monitor: true, Lockstep: true})
		if err != nil {
			t.Fatal(err)
		}
		s := &Schedule{Name: "fuzz", Subject: SubjectBuiltin, Config: cfg}
		s.Actions = Generate(&src, &p, &w, min(len(src)/8, 200), nil)
		if v := w.First(); v.Invariant != model.NoInvariant {
			s = Minimize(s, FailsOn(Builtin(), v.Invariant))
			var file strings.Builder
			text, _ := s.MarshalJSON()
			file.Write(text)
			t.Fatalf("%v: %s\n%+v\n%s", v.Invariant, v.Describe(Names()), w.Mismatch(), file.String())
		}
	})
}
