package linearizability

import (
	"math/rand/v2"
	"slices"

	"fencepost/model"
)

// leaseRule runs the timed specification, which package model holds against
// brute force over instants. The flaws here are in what a recording promises;
// those of its own guards are tried there.
func leaseRule(h *History, flaw string) rule {
	meta := h.Meta
	p := leaseParams(h, flaw)
	// What an operation is, without what the whole history makes of it.
	c := leaseCompiler{meta: &meta, params: p}
	return func(state any, op *oracleOp) []any {
		o := operation{span: span{Op: Op{Type: Info}}, meta: &meta, invoked: op.call, ended: op.ret}
		if op.ret != nil {
			o.Type = op.ret.Type
		}
		c.ops = c.ops[:0]
		if err := c.add(&o); err != nil {
			panic(err)
		}
		if len(c.ops) == 0 {
			return []any{state}
		}
		timed := c.ops[0].op
		switch flaw {
		case "ttl more":
			timed.TTL += min(timed.TTL, 1)
		case "ttl less":
			timed.TTL -= min(timed.TTL-1, 1)
		}
		var next []any
		for _, s := range p.Step(*state.(*model.TimedState), timed) {
			next = append(next, &s)
		}
		return next
	}
}

func leaseParams(h *History, flaw string) model.TimedParams {
	p := h.Meta.timed()
	switch flaw {
	case "early more":
		p.Early++
	case "early less":
		p.Early = max(p.Early-1, 0)
	case "late more":
		p.Late = max(p.Late, p.Late+1)
	case "late less":
		p.Late = max(min(p.Late, p.Late-1), 0)
	case "drift more":
		p.DriftPPB++
	case "drift less":
		p.DriftPPB = max(p.DriftPPB-1, 0)
	case "lock delay more":
		p.LockDelay++
	case "lock delay less":
		p.LockDelay = max(p.LockDelay-1, 0)
	case "no lock delay":
		p.LockDelay = 0
	case "first more":
		p.First += min(p.First, 1)
	case "first any":
		p.First = 0
	case "tokens rise":
		p.Tokens = max(p.Tokens, model.TokensRising)
	case "tokens are next":
		p.Tokens = min(p.Tokens, model.TokensNext)
	case "anchor at the grant":
		p.Anchor = model.AnchorGrant
	case "anchor at the call":
		p.Anchor = model.AnchorCall
	case "renewed after a lapse":
		p.RenewAfterLapse = true
	case "not renewed after a lapse":
		p.RenewAfterLapse = false
	}
	if p.Tokens == model.TokensNone {
		p.First = 0
	}
	return p
}

var leaseFlaws = []string{
	"early more", "early less", "late more", "late less", "drift more", "drift less", "lock delay more", "lock delay less", "no lock delay",
	"first more", "first any", "tokens rise", "tokens are next", "anchor at the grant", "anchor at the call", "renewed after a lapse", "not renewed after a lapse",
	"ttl more", "ttl less",
}

func leaseStart(h *History, flaw string) []any {
	var states []any
	for _, s := range leaseParams(h, flaw).Init() {
		states = append(states, &s)
	}
	return states
}

func leaseMeta(rng *rand.Rand, m *Meta) {
	m.Late = pick[int64](rng, 0, 0, 2, Unbounded)
	m.Early = pick[int64](rng, 0, 0, 1)
	m.Drift = pick[int64](rng, 0, 0, 250_000_000) // of which bounds fall on whole numbers
	m.LockDelay = pick[int64](rng, 0, 0, 4)
	m.First = pick[uint64](rng, 0, 1)
	m.Tokens = pick(rng, TokensNext, TokensNext, TokensRising, TokensNone)
	m.RenewAfterLapse = rng.IntN(4) == 0
	m.Anchor = pick(rng, AnchorGrant, AnchorCall)
	if m.Tokens == TokensNone {
		m.First = 0
	}
}

func leaseCall(rng *rand.Rand, _ int, _ int64) (string, []Field) {
	owner := Field{"owner", String(pick(rng, "a", "b"))}
	token, ttl := Field{"token", Int(1 + rng.Int64N(3))}, Field{"ttl", Int(2 + rng.Int64N(6))}
	switch f := pick(rng, "acquire", "acquire", "acquire", "renew", "renew", "release", "get", pick(rng, "restart", "delete")); f {
	case "acquire":
		return f, []Field{owner, ttl}
	case "renew":
		return f, []Field{owner, token, ttl}
	case "release":
		return f, []Field{owner, token}
	default:
		return f, nil
	}
}

func leaseAnswer(rng *rand.Rand, _ int, _ int64, f string, _ []Field) (Type, []Field) {
	failed := func(words ...string) []Field { return []Field{{"error", Keyword(pick(rng, words...))}} }
	token := Field{"token", Int(1 + rng.Int64N(3))}
	no := rng.IntN(2) == 0
	switch {
	case f == "get" && no:
		return OK, []Field{{"owner", String("")}}
	case f == "get":
		return OK, []Field{{"owner", String(pick(rng, "a", "b"))}, token}
	case f == "restart", f == "delete":
		return OK, nil
	case f == "acquire" && no:
		ret := failed("held", "held", "delay")
		if rng.IntN(2) == 0 {
			ret = append(ret, Field{"holder", String(pick(rng, "a", "b"))})
		}
		return Fail, ret
	case f == "acquire":
		return OK, []Field{token}
	case no:
		return Fail, failed("lapsed", "lost")
	}
	return OK, nil
}

// evidentError reports whether a failure says why.
func evidentError(op *oracleOp) bool { return !op.told("error").IsNil() }

func leaseOracle() oracle {
	return oracle{
		model: "lease", meta: leaseMeta, start: leaseStart, rule: leaseRule, flaws: leaseFlaws,
		call: leaseCall, answer: leaseAnswer, evident: evidentError, brisk: true,
	}
}

type oracleBoth struct{ lease, storage any }

// fencepostOracle has a lease and a storage that share no state, so that each
// is linearizable if and only if both are.
func fencepostOracle() oracle {
	storage := storageOracle()
	ofStorage := func(f string) bool { return slices.Contains(storageOps, f) }
	return oracle{
		model: "fencepost", meta: leaseMeta, evident: evidentError, brisk: true,
		start: func(h *History, flaw string) []any {
			var states []any
			for _, s := range leaseStart(h, flaw) {
				states = append(states, oracleBoth{s, storage.start(h, flaw)[0]})
			}
			return states
		},
		flaws: []string{"takes a token one below", "takes only tokens above", "ttl more", "ttl less"},
		rule: func(h *History, flaw string) rule {
			l, s := leaseRule(h, flaw), storage.rule(h, flaw)
			return func(state any, op *oracleOp) []any {
				both := state.(oracleBoth)
				var next []any
				if ofStorage(op.f) {
					for _, n := range s(both.storage, op) {
						next = append(next, oracleBoth{both.lease, n})
					}
					return next
				}
				for _, n := range l(both.lease, op) {
					next = append(next, oracleBoth{n, both.storage})
				}
				return next
			}
		},
		call: func(rng *rand.Rand, style int, p int64) (string, []Field) {
			if rng.IntN(2) == 0 {
				return leaseCall(rng, style, p)
			}
			return storage.call(rng, style, p)
		},
		answer: func(rng *rand.Rand, style int, p int64, f string, call []Field) (Type, []Field) {
			if ofStorage(f) {
				return storage.answer(rng, style, p, f, call)
			}
			return leaseAnswer(rng, style, p, f, call)
		},
	}
}
