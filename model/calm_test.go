package model_test

import (
	"math"
	"testing"

	"fencepost/model"
)

// The set-up of the sequences below, in plain numbers: window 1000, retry 100,
// one-way delay 10, ticks 20 apart, a TTL of 500. Calm begins at 10_000, so that
// somebody must lead by
//
//	10_000 + 10 + 500 + 2*10 + 100 + 20 + 2*10 = 10_670
//
// and with the barrier 2*10 later.
var calmConfig = model.MonitorConfig{Window: 1000, Retry: 100}

func at(t int64, e model.Event) model.Event { e.At = t; return e }

func asks(n model.Node, seq uint32, ttl int64) model.Event {
	return model.Event{Kind: model.KindInvoke, Node: n, Peer: theStore, Op: model.OpAcquire, Owner: owner(n, seq), TTL: ttl}
}

// stingy is a grant for less than was asked for. The windows of calmConfig leave
// 940 to spare: 4*10 + 20 is what a renewal needs.
func stingy(asked, granted int64) model.Event {
	e := model.Event{Kind: model.KindHandle, Node: theStore, Peer: raw, Owner: owner(raw, 1), Op: model.OpAcquire, Code: model.CodeGranted, Token: 1}
	e.TTL, e.Remaining = asked, granted
	return e
}

var (
	calm    = at(10_000, model.Event{Kind: model.KindCalm, Remaining: 10, TTL: 20})
	calmEnd = model.Event{Kind: model.KindCalmEnd}
	lost    = model.Event{Kind: model.KindLose}
)

func TestSomebodyLeadsWithinTheBoundOfCalm(t *testing.T) {
	broken := set(model.Availability)
	late := func(bound int64) model.Violation {
		return model.Violation{Invariant: model.Availability, At: 10_001 + bound, Want: bound}
	}
	with := func(edit func(*model.MonitorConfig)) model.MonitorConfig {
		c := calmConfig
		edit(&c)
		return c
	}
	only := with(func(c *model.MonitorConfig) { c.Only = broken })
	short := with(func(c *model.MonitorConfig) { c.Window = 4*10 + 20 })
	start := []model.Event{asks(a, 1, 500), calm}
	then := func(es ...model.Event) []model.Event { return append(start[:2:2], es...) }
	check(t, []sequence{
		{name: "nobody by the bound", cfg: calmConfig, events: then(at(10_670, calmEnd))},
		{name: "nobody after the bound", cfg: calmConfig, events: then(at(10_671, calmEnd)), want: broken, first: late(670)},
		{name: "any event shows it", cfg: calmConfig, events: then(at(10_671, model.Event{Kind: model.KindJump, Node: a})), want: broken, first: late(670)},
		{name: "with the barrier 2 delays more", cfg: with(func(c *model.MonitorConfig) { c.Barrier = true }), events: then(at(10_690, calmEnd))},
		{name: "with the barrier no more than 2", cfg: with(func(c *model.MonitorConfig) { c.Barrier = true }), events: then(at(10_691, calmEnd)), want: broken, first: late(690)},
		{name: "with the lock delay", cfg: with(func(c *model.MonitorConfig) { c.LockDelay = 300 }), events: then(at(10_970, calmEnd))},
		{name: "no more than the lock delay", cfg: with(func(c *model.MonitorConfig) { c.LockDelay = 300 }), events: then(at(10_971, calmEnd)), want: broken, first: late(970)},
		{name: "the longest TTL asked for counts", cfg: calmConfig, events: []model.Event{asks(raw, 1, 900), asks(a, 1, 500), calm, at(11_071, calmEnd)}, want: broken, first: late(1070)},

		{name: "one leads", cfg: calmConfig, events: then(at(10_300, granted(a, 1, 1)), at(10_310, leads(a, 1, 1)), at(20_000, calmEnd))},
		{name: "one leads too late", cfg: only, events: then(at(10_671, leads(a, 1, 1))), want: broken, first: late(670)},
		{name: "one leads just in time", cfg: only, events: then(at(10_670, leads(a, 1, 1)), at(20_000, calmEnd))},
		{name: "one led before, not after the last message of before", cfg: calmConfig,
			events: []model.Event{asks(a, 1, 500), granted(a, 1, 1), leads(a, 1, 1), calm, at(10_010, stepsDown(a, 1, 1)), at(10_671, calmEnd)}, want: broken, first: late(670)},
		{name: "one led an instant longer", cfg: calmConfig,
			events: []model.Event{asks(a, 1, 500), granted(a, 1, 1), leads(a, 1, 1), calm, at(10_011, stepsDown(a, 1, 1)), at(20_000, calmEnd)}},
		{name: "one leads through", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), granted(a, 1, 1), leads(a, 1, 1), calm, at(20_000, calmEnd)}},

		{name: "a window too short for a renewal promises nothing", cfg: short, events: then(at(20_000, calmEnd))},
		{name: "nor after a grant", cfg: short, events: then(at(10_100, granted(raw, 1, 1)), at(20_000, calmEnd))},
		{name: "nor after a release", cfg: short, events: then(at(10_100, granted(raw, 1, 1)), at(10_200, released(raw, 1, 1)), at(20_000, calmEnd))},
		{name: "a window that is just long enough", cfg: with(func(c *model.MonitorConfig) { c.Window = 4*10 + 20 + 1 }), events: then(at(10_671, calmEnd)), want: broken},
		{name: "a grant much shorter than asked promises nothing", cfg: calmConfig, events: []model.Event{asks(a, 1, 1500), stingy(1500, 560), calm, at(20_000, calmEnd)}},
		{name: "nor does one in the calm", cfg: calmConfig, events: []model.Event{asks(a, 1, 1500), calm, at(10_100, stingy(1500, 560)), at(20_000, calmEnd)}},
		{name: "a grant not that much shorter", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), stingy(1500, 561), calm, at(10_732, calmEnd)}, want: broken},
		{name: "the longest TTL granted counts", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), stingy(500, 900), calm, at(11_070, calmEnd)}},
		{name: "and no more than that", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), stingy(500, 900), calm, at(11_071, calmEnd)}, want: broken, first: late(1070)},
		{name: "a grant that does not say how long it is", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), stingy(1500, 0), calm, at(10_671, calmEnd)}, want: broken},
		{name: "a forged token at the storage bars everybody", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), landed(raw, 1), calm, at(20_000, calmEnd)}},
		{name: "a forged token that lands late", cfg: calmConfig, events: then(at(10_005, fenced(raw, 1)), at(20_000, calmEnd))},
		{name: "a forged token that was refused", cfg: calmConfig, events: then(at(10_005, stale(raw, 1)), at(10_671, calmEnd)), want: broken},

		{name: "a message lost while answers of before take room: it was not calm yet", cfg: calmConfig, events: then(at(10_020, lost), at(10_690, calmEnd))},
		{name: "a message lost so, and the bound after it", cfg: calmConfig, events: then(at(10_020, lost), at(10_691, calmEnd)), want: broken},
		{name: "a message lost later is no excuse", cfg: calmConfig, events: then(at(10_021, lost), at(10_670, calmEnd))},
		{name: "a message lost later, and the bound of before", cfg: calmConfig, events: then(at(10_021, lost), at(10_671, calmEnd)), want: broken, first: late(670)},
		{name: "a flood of losses is no excuse", cfg: calmConfig, events: then(at(10_010, lost), at(10_020, lost), at(10_030, lost), at(10_040, lost), at(10_691, calmEnd)), want: broken},
		{name: "nothing is promised outside calm", cfg: calmConfig, events: then(at(10_600, calmEnd), at(20_000, calmEnd))},
		{name: "a TTL of for ever", cfg: calmConfig, events: []model.Event{asks(raw, 1, math.MaxInt64), calm, at(math.MaxInt64, calmEnd)}},
		{name: "a TTL of nearly for ever", cfg: calmConfig, events: []model.Event{asks(raw, 1, math.MaxInt64-10_600), calm, at(20_000, calmEnd)}},
	})
}

// A term from before the calm may renew and be over before it hears of that:
// the lease runs out a TTL after the renewal, and 2*10+100+20+2*10 later
// somebody leads.
func TestARenewalMayOutliveItsTerm(t *testing.T) {
	broken := set(model.Availability)
	held := []model.Event{asks(a, 1, 500), granted(a, 1, 1), calm}
	then := func(es ...model.Event) []model.Event { return append(held[:3:3], es...) }
	renewed := func(t int64) model.Event { return at(t, renewed(a, 1, 1)) }
	asked := granted(a, 1, 1)
	asked.Req.Action = 2 // in the calm, the second event of its sequence
	check(t, []sequence{
		{name: "renewed, then over", cfg: calmConfig, events: then(renewed(10_120), at(10_130, stepsDown(a, 1, 1)), at(10_780, calmEnd))},
		{name: "and the bound after it", cfg: calmConfig, events: then(renewed(10_120), at(10_130, stepsDown(a, 1, 1)), at(10_781, calmEnd)), want: broken,
			first: model.Violation{Invariant: model.Availability, At: 10_781, Want: 780}},
		{name: "over, then renewed", cfg: calmConfig, events: then(at(10_120, stepsDown(a, 1, 1)), renewed(10_130), at(10_790, calmEnd))},
		{name: "and the bound after that", cfg: calmConfig, events: then(at(10_120, stepsDown(a, 1, 1)), renewed(10_130), at(10_791, calmEnd)), want: broken},
		{name: "the last renewal counts", cfg: calmConfig, events: then(renewed(10_050), renewed(10_120), at(10_130, stepsDown(a, 1, 1)), at(10_781, calmEnd)), want: broken},
		{name: "renewed for ever and never over is no excuse", cfg: calmConfig, events: then(renewed(10_120), renewed(10_320), renewed(10_520), at(10_671, calmEnd)), want: broken},
		{name: "over and not renewed", cfg: calmConfig, events: then(at(10_130, stepsDown(a, 1, 1)), at(10_671, calmEnd)), want: broken},
		{name: "a tenure that the calm began", cfg: calmConfig,
			events: []model.Event{asks(a, 1, 500), calm, at(10_100, asked), renewed(10_200), at(10_210, stepsDown(a, 1, 1)), at(10_671, calmEnd)}, want: broken},
	})
}

func TestAfterAReleaseNobodyWaitsForTheTTL(t *testing.T) {
	broken := set(model.Availability)
	// a holds; its release lands at 10_050, in calm. Then 2*10+100+20+2*10.
	start := []model.Event{asks(a, 1, 500), granted(a, 1, 1), calm, at(10_050, released(a, 1, 1))}
	then := func(es ...model.Event) []model.Event { return append(start[:4:4], es...) }
	barrier := calmConfig
	barrier.Barrier = true
	check(t, []sequence{
		{name: "nobody by the bound", cfg: calmConfig, events: then(at(10_210, calmEnd))},
		{name: "nobody after the bound", cfg: calmConfig, events: then(at(10_211, calmEnd)), want: broken,
			first: model.Violation{Invariant: model.Availability, At: 10_211, Want: 210}},
		{name: "with the barrier", cfg: barrier, events: then(at(10_230, calmEnd))},
		{name: "with the barrier, late", cfg: barrier, events: then(at(10_231, calmEnd)), want: broken},
		{name: "whoever led before it does not count", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), granted(a, 1, 1), leads(a, 1, 1), calm,
			at(10_040, stepsDown(a, 1, 1)), at(10_050, released(a, 1, 1)), at(10_211, calmEnd)}, want: broken},
		{name: "the next leads", cfg: calmConfig, events: then(at(10_100, granted(b, 1, 2)), at(10_110, leads(b, 1, 2)), at(20_000, calmEnd))},
		{name: "a release before the last message of before keeps the TTL", cfg: calmConfig,
			events: []model.Event{asks(a, 1, 500), granted(a, 1, 1), calm, at(10_009, released(a, 1, 1)), at(10_670, calmEnd)}},
	})
}

func TestAGrantAskedForBeforeTheCalmMustRunOut(t *testing.T) {
	// Granted at 10_100 in calm: by 10_100 + 500 + 160 somebody leads.
	request := func(e model.Event, action int32) model.Event { e.Req.Action = action; return e }
	const calmAction = 2 // the second event of each sequence
	check(t, []sequence{
		{name: "to a raw party", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), calm, at(10_100, granted(raw, 1, 1)), at(10_760, calmEnd)}},
		{name: "to a raw party, late", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), calm, at(10_100, granted(raw, 1, 1)), at(10_761, calmEnd)},
			want: set(model.Availability)},
		{name: "asked for before the calm", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), calm, at(10_100, request(granted(a, 1, 1), 1)), at(10_760, calmEnd)}},
		{name: "asked for in the calm changes nothing", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), calm,
			at(10_100, request(granted(a, 1, 1), calmAction)), at(10_671, calmEnd)}, want: set(model.Availability)},
		// Else a candidate that is another incarnation at each attempt, and so
		// never knows its own grants, would be excused for ever.
		{name: "asked for in the calm by an incarnation that has ended", cfg: calmConfig, events: []model.Event{asks(a, 1, 500), calm, asks(a, 2, 500),
			at(10_100, request(granted(a, 1, 1), calmAction)), at(10_671, calmEnd)}, want: set(model.Availability)},
	})
}
