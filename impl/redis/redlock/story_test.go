package redlock

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
)

var (
	alice = lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa11ce}
	bob   = lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb0b}
)

// ttl is long enough for servers to restart within it.
const ttl = 30 * time.Second

// tell has a story recorded and gives what is said of its history. Tokens need
// only rise.
func tell(t *testing.T, s lease.Store, story func(lease.Store)) linearizability.Verdict {
	t.Helper()
	var buf bytes.Buffer
	clk := clock.Boot()
	began := clk.Now()
	meta := linearizability.DefaultMeta()
	meta.Tokens = linearizability.TokensRising
	meta.Drift = 10_000_000 // a hundredth, which Redlock takes off
	rec, err := linearizability.NewRecorder(&buf, meta, func() time.Duration { return clk.Now() - began })
	if err != nil {
		t.Fatal(err)
	}
	story(record.Store(s, rec))
	if err := rec.Flush(); err != nil {
		t.Fatal(err)
	}
	h, err := linearizability.Read(&buf, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	v, err := linearizability.Check(t.Context(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\n%v: %s", buf.String(), v.Result, v.Reason)
	return v
}

// acquired is a grant that must be made: the story is of nothing otherwise.
func acquired(t *testing.T, s lease.Store, holder lease.Holder) lease.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), "lock", holder, ttl)
	if err != nil {
		t.Fatalf("%v does not get the lock: %v", holder, err)
	}
	return g
}

// away kills the servers, and back has them answer again, with nothing.
func away(servers []*server.Server) {
	for _, s := range servers {
		s.Kill()
	}
}

func back(t *testing.T, servers []*server.Server) {
	t.Helper()
	for _, s := range servers {
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Where nothing goes wrong, and a perfect oracle numbers the grants, nobody has
// anything against it: what is convicted below is not the recording.
func TestNothingGoesWrongAndNothingIsSaid(t *testing.T) {
	_, clients := five(t, server.Forgetful...)
	v := tell(t, newStore(clients, &oracle{}), func(s lease.Store) {
		g := acquired(t, s, alice)
		if _, err := s.Acquire(t.Context(), "lock", bob, ttl); lease.Refusal(err) != lease.CodeHeld {
			t.Errorf("bob: %v; expected: held", err)
		}
		if err := s.Release(t.Context(), "lock", alice, g.Token); err != nil {
			t.Error(err)
		}
		acquired(t, s, bob)
	})
	if v.Result != linearizability.Holds {
		t.Errorf("%v: %s; expected: holds", v.Result, v.Reason)
	}
}

// One server restarts without its data: its vote is given twice, and two hold at
// once. (That it stays away for a TTL is what the published text asks of its
// operator.)
func TestOneRestartLetsTwoHold(t *testing.T) {
	servers, clients := five(t, server.Forgetful...)
	v := tell(t, newStore(clients, &oracle{}), func(s lease.Store) {
		away(servers[3:])
		acquired(t, s, alice) // by the servers 1, 2 and 3
		back(t, servers[3:])
		if err := servers[2].Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		acquired(t, s, bob) // by the servers 3, 4 and 5
	})
	mustSay(t, v, "bob")
}

// The clock of one server steps forward, by which a key expires before its time:
// the same, and no server was away. PEXPIRE is what the step does to the key.
func TestOneClockStepLetsTwoHold(t *testing.T) {
	servers, clients := five(t, server.Forgetful...)
	v := tell(t, newStore(clients, &oracle{}), func(s lease.Store) {
		away(servers[3:])
		acquired(t, s, alice)
		back(t, servers[3:])
		if err := servers[2].Control.PExpire(t.Context(), "lock", time.Millisecond).Err(); err != nil {
			t.Fatal(err)
		}
		gone(t, servers[2])
		acquired(t, s, bob)
	})
	mustSay(t, v, "bob")
}

func gone(t *testing.T, s *server.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for s.Control.Exists(ctx, "lock").Val() > 0 {
		if ctx.Err() != nil {
			t.Fatal("the key does not expire")
		}
	}
}

// mustSay is the conviction: alice was granted the lock for longer, and who was
// granted it within that time.
func mustSay(t *testing.T, v linearizability.Verdict, who string) {
	t.Helper()
	if v.Result != linearizability.Violated || !strings.Contains(v.Reason, who) {
		t.Errorf("%v: %s; expected: violated, because of %s", v.Result, v.Reason, who)
	}
}

// A counter on each server, and the highest of those that can be reached: the
// number falls although no server ever loses anything, and any two majorities
// have a server in common. That one has counted some of the grants before, and
// none of them has counted all.
func TestTheHighestOfFiveCountersFalls(t *testing.T) {
	servers, clients := five(t, server.Durable...)
	var tokens []lease.Token
	v := tell(t, newStore(clients, counters(clients)), func(s lease.Store) {
		holder := alice
		for _, unreachable := range [][]*server.Server{
			{servers[3], servers[4]},
			{servers[2], servers[4]},
			{servers[2], servers[3]},
			{servers[0], servers[1]},
		} {
			away(unreachable)
			g := acquired(t, s, holder)
			tokens = append(tokens, g.Token)
			if err := s.Release(t.Context(), "lock", holder, g.Token); err != nil {
				t.Fatal(err)
			}
			back(t, unreachable)
			holder = holder.Next()
		}
	})
	if want := []lease.Token{1, 2, 3, 2}; !slices.Equal(tokens, want) {
		t.Errorf("the numbers are %v; expected: %v", tokens, want)
	}
	mustSay(t, v, alice.Next().Next().Next().String())
}
