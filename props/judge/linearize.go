package judge

import (
	"math/bits"
	"slices"

	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/sim"
)

// maxDrift, in parts per billion, is the drift of a clock that can do anything.
const maxDrift = 999_999_999

// maxMemory bounds one check, in bytes, about.
const maxMemory = 256 << 20

// History is what the clients of a run could have recorded, with what the
// observer knows besides: how the store's clock ran, and what became of
// requests whose answer was lost.
func History(name string, events []model.Event, cfg *sim.Config, p model.Promise) linearizability.History {
	seen := witnessed(events)
	if p.SteadyClock {
		// To the lease such a restart is nothing, and recorded would start TTLs anew.
		seen = slices.DeleteFunc(seen, func(e model.Event) bool { return e.Kind == model.KindRestart && e.Node == sim.StoreNode })
	}
	h := linearizability.FromTrace(seen, sim.Names(), Meta(events, cfg, p))
	h.Name = name
	return h
}

// Meta is what the recording of a run promises of it, where the store promises
// p; what it says of the lock delay is in cfg.
func Meta(events []model.Event, cfg *sim.Config, p model.Promise) linearizability.Meta {
	m := linearizability.DefaultMeta()
	m.First, m.LockDelay, m.Late = max(cfg.FirstToken, 1), int64(cfg.Lease.LockDelay), 0
	m.RenewAfterLapse = p.RenewAfterLapse
	if p.Tokens == model.TokensRising {
		m.Tokens = linearizability.TokensRising
	}
	for i := range events {
		e := &events[i]
		if e.Node != sim.StoreNode {
			continue
		}
		switch e.Kind {
		case model.KindDrift:
			// Its readings are whole ns, so that a TTL may be one off.
			m.Drift = max(m.Drift, 1000*max(e.Value-1_000_000, 1_000_000-e.Value))
			m.Early, m.Late = max(m.Early, 1), max(m.Late, 1)
		case model.KindFreeze:
			m.Drift = maxDrift // its clock stands still
		}
	}
	m.Drift = min(m.Drift, maxDrift)
	// The slack is of the store's clock, Late of true time.
	if slack, ok := stretch(p.Slack(), m.Drift); ok {
		m.Late += slack
	} else {
		m.Late = linearizability.Unbounded
	}
	return m
}

// stretch is how long at most d takes on a clock that is slow by ppb parts per
// billion; false if that is more than can be told.
func stretch(d, ppb int64) (int64, bool) {
	rate := uint64(1e9 - ppb)
	hi, lo := bits.Mul64(uint64(d), 1e9)
	if hi >= rate {
		return 0, false
	}
	q, rest := bits.Div64(hi, lo, rate)
	return int64(q + min(rest, 1)), q < 1<<62
}

// witnessed settles the outcomes that clients do not know but the observer
// does, who sees what arrives at the store and what leaves it: a request that
// never arrived had no effect, and an answer that was lost is recorded where it
// left. Dozens of unknown outcomes would make each check take seconds. And a grant
// for less than was asked for counts as one of what it says.
func witnessed(events []model.Event) []model.Event {
	handled, returned := make(map[model.Msg]bool), make(map[model.Msg]bool)
	less := make(map[model.Msg]int64) // the TTLs of grants that were shorter
	alive := [model.MaxNodes]int{}    // position of the last crash
	invoked := make(map[model.Msg]int)
	for i := range events {
		switch e := &events[i]; e.Kind {
		case model.KindInvoke:
			invoked[e.Req] = i
		case model.KindCrash:
			alive[e.Node] = i
		case model.KindHandle:
			handled[e.Req] = true
			if e.Code == model.CodeGranted && 0 < e.Remaining && e.Remaining < e.TTL {
				less[e.Req] = e.Remaining
			}
		case model.KindReturn:
			if at, ok := invoked[e.Req]; ok && at >= alive[e.Node] {
				returned[e.Req] = true
			}
		}
	}
	out := make([]model.Event, 0, len(events)+16)
	for i := range events {
		e := events[i]
		if ttl, ok := less[e.Req]; ok && e.Kind == model.KindInvoke {
			e.TTL = ttl
		}
		switch {
		case e.Kind == model.KindInvoke && !handled[e.Req]:
			continue
		case e.Kind == model.KindDuplicate:
			if e.Req = e.Msg; !handled[e.Req] {
				continue
			}
			e.Kind, e.Node, e.Peer, e.Copy = model.KindInvoke, e.Peer, e.Node, false
			if ttl, ok := less[e.Req]; ok {
				e.TTL = ttl
			}
		case e.Kind == model.KindHandle && !returned[e.Req]:
			out = append(out, e)
			e.Kind, e.Node, e.Peer = model.KindReturn, e.Peer, e.Node
			returned[e.Req] = true // a second answer is nobody's
		}
		out = append(out, e)
	}
	return out
}
