package lease

import (
	"context"
	"testing"
	"time"

	"fencepost/impl/clock"
)

// What a renewal costs a process that holds 10,000 leases at a TTL of 15 s, but
// for its store, which grants whatever it is asked for: everything that Run does,
// as fast as it goes. core% is the share of one core that holding them takes.
func BenchmarkGroupRenewal(b *testing.B) {
	const leases = 10_000
	clk := clock.NewManual(0)
	batches, renewals := 0, 0
	store := counting{on: func(_ context.Context, calls []Call, _ func() []Answer) []Answer {
		batches, renewals = batches+1, renewals+len(calls)
		answers := make([]Answer, len(calls))
		for i, c := range calls {
			answers[i].Grant = Grant{Resource: c.Resource, Holder: c.Holder, Token: max(c.Token, 1), TTL: c.TTL}
		}
		return answers
	}}
	g, err := NewGroup(store, GroupConfig{
		Node: "alice", Nonce: 1, Clock: clk, Timing: Config{TTL: 15 * time.Second, MaxDriftRate: 0.01},
		MaxCalls: 1, Lead: func(context.Context, Term, func()) {},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range numbered(leases) {
		if err := g.Add(r); err != nil {
			b.Fatal(err)
		}
	}
	k, err := g.start(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	k.timer = clk.Timer(0)
	defer k.timer.Stop()
	// One turn of the loop in Run, and the answers to what it sent.
	turn := func() {
		now := clk.Now()
		k.tick(now)
		for {
			k.send(now)
			k.expire(now)
			k.timer.Reset(k.wake())
			if len(k.calls.flying) == 0 {
				return
			}
			k.answered(<-k.calls.results)
		}
	}
	turn()
	for clk.Now() < 15*time.Second { // until each is in its slot
		clk.Set(k.wake())
		turn()
	}
	if g.Held() != leases {
		b.Fatalf("%d held", g.Held())
	}
	batches, renewals = 0, 0
	begin := clk.Now()
	b.ReportAllocs()
	b.ResetTimer()
	for renewals < b.N {
		clk.Set(k.wake())
		turn()
	}
	b.StopTimer()
	held := clk.Now() - begin
	cost := float64(b.Elapsed()) / float64(renewals)
	b.ReportMetric(cost, "ns/renewal")
	b.ReportMetric(float64(renewals)/float64(batches), "renewals/call")
	// Renewals in a second of held time are what the period makes them.
	b.ReportMetric(100*cost*leases/float64(g.cfg.RenewAfter()), "core%")
	if held > 5*time.Second && renewals > int(1.1*leases*float64(held)/float64(g.cfg.RenewAfter()))+leases {
		b.Errorf("%d renewals in %v: more than once a period", renewals, held)
	}
	if g.Held() != leases {
		b.Errorf("%d held in the end", g.Held())
	}
}

// A call to Term and Valid, as made before each write.
func BenchmarkGroupTermValid(b *testing.B) {
	clk := clock.Monotonic()
	g, err := NewGroup(newMemory(b, clk, MemoryOptions{}), GroupConfig{Node: "alice", Clock: clk, Timing: Config{TTL: time.Minute}, Lead: func(ctx context.Context, _ Term, done func()) { context.AfterFunc(ctx, done) }})
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range numbered(10_000) {
		g.Add(r)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	for g.Held() < 10_000 {
		time.Sleep(time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !g.Term("shard-77").Valid() {
			b.Fatal("not valid")
		}
	}
	cancel()
	<-done
}
