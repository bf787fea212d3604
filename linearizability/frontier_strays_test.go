package linearizability

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// randomStrays runs a store in whole instants that a few have asked for the lease
// at the beginning, who never learned anything and are not heard of again. Their
// requests land at any time, or never. Store and answers may be wrong.
func randomStrays(rng *rand.Rand) History {
	h := History{Name: "strays", Meta: DefaultMeta()}
	m := &h.Meta
	m.Late = []int64{0, 0, 1}[rng.IntN(3)]
	m.LockDelay = []int64{0, 0, 2}[rng.IntN(3)]
	m.Tokens = []TokenRule{TokensNext, TokensNext, TokensRising, TokensNone}[rng.IntN(4)]
	m.RenewAfterLapse = rng.IntN(6) == 0
	m.Eps = []int64{0, 0, 0, 1}[rng.IntN(4)]
	m.Anchor = []Anchor{AnchorGrant, AnchorGrant, AnchorCall}[rng.IntN(3)]
	odd := int64(rng.IntN(4) / 3)
	lapse := []int64{0, 0, -1, 1, 2}[rng.IntN(5)] // too early or too late
	now, process := int64(m.Eps), int64(0)
	emit := func(p int64, typ Type, f string, fields ...Field) {
		h.Events = append(h.Events, Event{Index: int64(len(h.Events)), Time: now, Process: p, Type: typ, F: f, Fields: fields})
	}
	type request struct {
		owner string
		ttl   int64
	}
	var strays []request
	for range 1 + rng.IntN(3) {
		r := request{fmt.Sprintf("s%d", rng.IntN(2)), 4 + odd*rng.Int64N(3)}
		strays = append(strays, r)
		emit(process, Invoke, "acquire", Field{"owner", String(r.owner)}, Field{"ttl", Int(r.ttl)})
		process++
		now += rng.Int64N(2)
	}
	var (
		holder  string
		token   uint64
		expires int64
		owners  int
	)
	grant := func(r request) bool {
		held := holder != "" && now < expires
		switch {
		case held && holder != r.owner, !held && holder != "" && now < expires+m.LockDelay:
			return false
		case held:
			expires = max(expires, now+r.ttl+lapse)
		default:
			holder, expires = r.owner, now+r.ttl+lapse
			token++
		}
		return true
	}
	for range 3 + rng.IntN(5) {
		now += 1 + rng.Int64N(4)
		if len(strays) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(strays))
			grant(strays[i])
			strays = slices.Delete(strays, i, i+1)
			now += rng.Int64N(2)
		}
		held := holder != "" && now < expires
		known := held && holder[0] == 'c'
		tok := max(1, token)
		switch f := []string{"acquire", "acquire", "get", "renew", "release"}[rng.IntN(5)]; {
		case (f == "renew" || f == "release") && known:
			fields := []Field{{"owner", String(holder)}, {"token", Uint(tok)}, {"ttl", Int(4)}}
			if f == "release" {
				fields = fields[:2]
			}
			emit(process, Invoke, f, fields...)
			if f == "release" {
				holder = ""
			} else {
				expires = max(expires, now+4+lapse)
			}
			now += rng.Int64N(2)
			emit(process, OK, f)
		case f == "get" && (!held || known):
			emit(process, Invoke, f)
			now += rng.Int64N(2)
			if held {
				emit(process, OK, f, Field{"owner", String(holder)}, Field{"token", Uint(tok)})
			} else {
				emit(process, OK, f, Field{"owner", String("")})
			}
		default:
			owners++
			r := request{fmt.Sprintf("c%d", owners), 4}
			emit(process, Invoke, "acquire", Field{"owner", String(r.owner)}, Field{"ttl", Int(r.ttl)})
			ok := grant(r)
			if rng.IntN(12) == 0 {
				token++
			}
			now += rng.Int64N(2)
			switch {
			case ok:
				emit(process, OK, "acquire", Field{"token", Uint(max(1, token))})
			case held:
				emit(process, Fail, "acquire", Field{"error", Keyword("held")})
			default:
				emit(process, Fail, "acquire", Field{"error", Keyword("delay")})
			}
		}
		process++
	}
	return h
}

// TestStraysAgreeWithOracle: to count what nobody is heard of again changes no
// verdict, and the order that explains a history names actions that can have been
// the ones.
func TestStraysAgreeWithOracle(t *testing.T) {
	runs := uint64(3_000)
	if long() {
		runs = 200_000
	}
	seen := map[bool]int{}
	joined, used, again, late := 0, 0, 0, 0
	for seed := range runs {
		rng := rand.New(rand.NewPCG(seed, 8))
		h := randomStrays(rng)
		p := compiled(t, &h, ModelLease)
		want := leaseLegal(&h, h.spans())
		f := newFrontier(t.Context(), &h.Meta, p, DefaultMemory, 1<<40)
		f.joinEvery, f.keep = 1, true
		got := f.run()
		if (got == porcupine.Ok) != want {
			h.WriteJSON(t.Output())
			t.Fatalf("seed %d: the walk says %v, the oracle %v", seed, got, want)
		}
		seen[want]++
		if len(f.strayed) > 0 {
			joined++
		}
		if !want {
			continue
		}
		order := f.now.list[0].order.list()
		for _, l := range order {
			switch {
			case l.stray == nil:
			case l.late:
				late++
			case l.stray.kind == strayAgain:
				again++
			case l.stray.kind == strayGrant:
				used++
			}
		}
		if calls := p.calls(p.relocate(f.named(order))); !replays(p, calls) {
			h.WriteJSON(t.Output())
			t.Fatalf("seed %d: the order cannot be run: %v", seed, calls)
		}
	}
	t.Logf("legal and illegal: %v; %d had strays, used %d times, again %d, late %d", seen, joined, used, again, late)
	if n := int(runs); seen[false] < n/10 || joined < n/8 || used < n/100 || again < n/1000 || late < n/1000 {
		t.Error("too few")
	}
}
