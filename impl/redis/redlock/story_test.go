package redlock

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
	"fencepost/model"
)

var (
	alice = lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa11ce}
	bob   = lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb0b}
)

// ttl is long enough for servers to restart within it.
const ttl = 30 * time.Second

// tale is a story as it goes: what is done is on record, and told.
type tale struct {
	t *testing.T
	lease.Store
	lines []string
}

func (a *tale) say(format string, args ...any) {
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

// acquired is a grant that must be made: the story is of nothing otherwise.
func (a *tale) acquired(holder lease.Holder, by string) lease.Grant {
	a.t.Helper()
	g, err := a.Acquire(a.t.Context(), "lock", holder, ttl)
	if err != nil {
		a.t.Fatalf("%v does not get the lock: %v", holder, err)
	}
	a.say("%s acquires for %v by the votes of servers %s: granted, token %d", holder.Node, ttl, by, g.Token)
	return g
}

func (a *tale) released(g lease.Grant) {
	a.t.Helper()
	if err := a.Release(a.t.Context(), "lock", g.Holder, g.Token); err != nil {
		a.t.Fatal(err)
	}
	a.say("%s releases under token %d: released", g.Holder.Node, g.Token)
}

// convicted is the end of a story whose last line breaks rule.
func (a *tale) convicted(v linearizability.Verdict, rule model.Rule, who lease.Holder) {
	a.t.Helper()
	a.t.Logf("\n%s  ◄\n\nrule: %s: %s\n%v: %s", strings.Join(a.lines, "\n"), rule, rule.Says(), v.Result, v.Reason)
	if v.Result != linearizability.Violated || !strings.Contains(v.Reason, who.String()) {
		a.t.Errorf("%v: %s; expected: violated, because of %v", v.Result, v.Reason, who)
	}
}

// tell has a story recorded and gives what is said of its history. Tokens need
// only rise.
func tell(t *testing.T, s lease.Store, story func(*tale)) (*tale, linearizability.Verdict) {
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
	a := &tale{t: t, Store: record.Store(s, rec)}
	story(a)
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
	return a, v
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
	_, v := tell(t, newStore(clients, &oracle{}), func(a *tale) {
		g := a.acquired(alice, "1 to 5")
		if _, err := a.Acquire(t.Context(), "lock", bob, ttl); lease.Refusal(err) != lease.CodeHeld {
			t.Errorf("bob: %v; expected: held", err)
		}
		a.released(g)
		a.acquired(bob, "1 to 5")
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
	a, v := tell(t, newStore(clients, &oracle{}), func(a *tale) {
		away(servers[3:])
		a.acquired(alice, "1, 2 and 3")
		back(t, servers[3:])
		if err := servers[2].Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.say("servers 4 and 5, which alice did not reach, are back; server 3 restarts, and has no data")
		a.acquired(bob, "3, 4 and 5")
	})
	a.convicted(v, model.RuleAcquireHeld, bob)
}

// The clock of one server steps forward, by which a key expires before its time:
// the same, and no server was away. PEXPIRE is what the step does to the key.
func TestOneClockStepLetsTwoHold(t *testing.T) {
	servers, clients := five(t, server.Forgetful...)
	a, v := tell(t, newStore(clients, &oracle{}), func(a *tale) {
		away(servers[3:])
		a.acquired(alice, "1, 2 and 3")
		back(t, servers[3:])
		if err := servers[2].Control.PExpire(t.Context(), "lock", time.Millisecond).Err(); err != nil {
			t.Fatal(err)
		}
		gone(t, servers[2])
		a.say("servers 4 and 5 are back; the clock of server 3 steps forward, and the key has expired there")
		a.acquired(bob, "3, 4 and 5")
	})
	a.convicted(v, model.RuleAcquireHeld, bob)
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

// A counter on each server, and the highest of those that can be reached: the
// number falls although no server ever loses anything, and any two majorities
// have a server in common. That one has counted some of the grants before, and
// none of them has counted all.
func TestTheHighestOfFiveCountersFalls(t *testing.T) {
	servers, clients := five(t, server.Durable...)
	var tokens []lease.Token
	a, v := tell(t, newStore(clients, counters(clients)), func(a *tale) {
		holder := alice
		for _, c := range []struct {
			reached string
			away    []*server.Server
		}{
			{"1, 2 and 3", []*server.Server{servers[3], servers[4]}},
			{"1, 2 and 4", []*server.Server{servers[2], servers[4]}},
			{"1, 2 and 5", []*server.Server{servers[2], servers[3]}},
			{"3, 4 and 5", []*server.Server{servers[0], servers[1]}},
		} {
			away(c.away)
			g := a.acquired(holder, c.reached)
			tokens = append(tokens, g.Token)
			if len(tokens) < 4 {
				a.released(g)
			}
			back(t, c.away)
			holder = holder.Next()
		}
	})
	if want := []lease.Token{1, 2, 3, 2}; !slices.Equal(tokens, want) {
		t.Errorf("the numbers are %v; expected: %v", tokens, want)
	}
	a.convicted(v, model.RuleTokenNext, alice.Next().Next().Next())
}
