package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

const tokensNext = model.TokensNext

// The rules that the checks of odd requests look after. What a request without
// any sense is answered is the model's; the others are of names and numbers,
// which the model has none of.
var (
	refused = verdict{model.RuleMalformed.String(), model.RuleMalformed.Says(), "go doc fencepost/impl/lease InvalidError"}
	apart   = verdict{
		"names-are-exact",
		"Two resources whose names differ in anything are two leases, and two holders that differ in anything are two: a store that folds case, trims spaces, cuts long names or rounds numbers gives one lease to two leaders. Names that it cannot keep apart it refuses.",
		"go doc fencepost/impl/lease Holder",
	}
	forever = verdict{
		"the-largest-ttl-is-long",
		"A TTL near the largest duration means for ever: it is granted, capped or refused. Added to an instant without care it wraps around to the past, and the lease lapses at once, under its holder.",
		"go doc fencepost/impl/lease Restore",
	}
	ended = verdict{
		"an-ended-context-refuses-nothing",
		"When its context has ended, a request was carried out or not: the store says so with an error of its own, or with the answer, and never with a refusal, which would be a lie about the lease. Either way it serves the next request.",
		"go doc fencepost/impl/lease Store",
	}
)

// lock is the resource of most probes.
const lock = "shard-1"

// Malformed are the checks of requests that make no sense, of names and numbers
// that are hard to keep apart, and of contexts that have ended: the group
// "malformed". A correct store may refuse what is odd, with any error, or serve
// it as it serves everything; it may not grant what cannot be held, take two
// things for one, change anything by a refusal, or panic.
func Malformed(open script.Open, o kit.Options) []kit.Check {
	var checks []kit.Check
	add := func(name string, rule verdict, f func(*probe)) {
		checks = append(checks, kit.Check{Name: "malformed/" + name, Run: func() kit.Outcome { return ask(open, o, rule, f) }})
	}
	for _, s := range senseless {
		add(s.name, refused, func(p *probe) { p.senseless(s) })
	}
	for _, pair := range resourcePairs {
		add("resource-"+pair.name, apart, func(p *probe) { p.twoResources(pair.a, pair.b) })
	}
	for _, pair := range holderPairs {
		add("holder-"+pair.name, apart, func(p *probe) { p.twoHolders(pair.a, pair.b) })
	}
	add("acquire-for-the-largest-ttl", forever, func(p *probe) { p.largestTTL(false) })
	add("renew-for-the-largest-ttl", forever, func(p *probe) { p.largestTTL(true) })
	add("acquire-under-an-ended-context", ended, (*probe).endedAcquire)
	add("renew-under-an-ended-context", ended, (*probe).endedRenew)
	add("release-under-an-ended-context", ended, (*probe).endedRelease)
	return checks
}

// request is one that no store may grant while a holds the lease.
type request struct {
	name   string
	op     lease.Op
	holder lease.Holder
	oddTTL bool
	ttl    time.Duration                      // if oddTTL; else the usual one
	token  func(held lease.Token) lease.Token // made of the one that a holds
}

func itself(t lease.Token) lease.Token { return t }

var senseless = []request{
	{name: "acquire-with-ttl-zero", op: lease.OpAcquire, holder: node("b"), oddTTL: true},
	{name: "acquire-with-a-negative-ttl", op: lease.OpAcquire, holder: node("b"), oddTTL: true, ttl: -time.Second},
	{name: "acquire-with-the-most-negative-ttl", op: lease.OpAcquire, holder: node("b"), oddTTL: true, ttl: math.MinInt64},
	{name: "retry-with-ttl-zero", op: lease.OpAcquire, holder: node("a"), oddTTL: true},
	{name: "retry-with-a-negative-ttl", op: lease.OpAcquire, holder: node("a"), oddTTL: true, ttl: -time.Second},
	{name: "acquire-as-nobody", op: lease.OpAcquire},
	{name: "renew-with-ttl-zero", op: lease.OpRenew, holder: node("a"), token: itself, oddTTL: true},
	{name: "renew-with-a-negative-ttl", op: lease.OpRenew, holder: node("a"), token: itself, oddTTL: true, ttl: -time.Second},
	{name: "renew-with-the-most-negative-ttl", op: lease.OpRenew, holder: node("a"), token: itself, oddTTL: true, ttl: math.MinInt64},
	{name: "renew-as-nobody", op: lease.OpRenew, token: itself},
	{name: "renew-under-token-zero", op: lease.OpRenew, holder: node("a"), token: func(lease.Token) lease.Token { return 0 }},
	{name: "renew-under-the-largest-token", op: lease.OpRenew, holder: node("a"), token: func(lease.Token) lease.Token { return math.MaxUint64 }},
	{name: "renew-under-a-token-with-another-upper-half", op: lease.OpRenew, holder: node("a"), token: func(t lease.Token) lease.Token { return t + 1<<32 }},
	{name: "renew-under-a-token-with-another-first-bit", op: lease.OpRenew, holder: node("a"), token: func(t lease.Token) lease.Token { return t ^ 1<<63 }},
	{name: "release-as-nobody", op: lease.OpRelease, token: itself},
	{name: "release-under-token-zero", op: lease.OpRelease, holder: node("a"), token: func(lease.Token) lease.Token { return 0 }},
	{name: "release-under-the-largest-token", op: lease.OpRelease, holder: node("a"), token: func(lease.Token) lease.Token { return math.MaxUint64 }},
	{name: "release-under-a-token-with-another-upper-half", op: lease.OpRelease, holder: node("a"), token: func(t lease.Token) lease.Token { return t + 1<<32 }},
}

// senseless sends s while a holds the lease, and after a gave it back: it must
// be refused, and all goes on as if it had never come.
func (p *probe) senseless(s request) {
	a, b := node("a"), node("b")
	held := p.mustAcquire(lock, a, "the lease is free")
	p.send(s, held.Token)
	p.advance(p.t.ttl - 1)
	p.mustRefuse(lock, b, "a holds it for another 1ns, whatever was refused meanwhile")
	p.advance(1 + p.t.late + p.t.delay)
	next := p.mustAcquire(lock, b, "a's tenure is over, and a request that was refused prolongs none")
	p.follows(held.Token, next.Token)
	if err := p.release(context.Background(), lock, b, next.Token); err != nil {
		p.fail("a correct store releases it: b holds it")
	}
	if s.op == lease.OpAcquire {
		p.send(s, next.Token)
	}
	p.follows(next.Token, p.mustAcquire(lock, a, "the lease is free, whatever was refused meanwhile").Token)
}

func (p *probe) send(s request, held lease.Token) {
	ctx := context.Background()
	ttl := p.t.ttl
	if s.oddTTL {
		ttl = s.ttl
	}
	var err error
	switch s.op {
	case lease.OpAcquire:
		_, err = p.acquireOdd(ctx, lock, s.holder, ttl)
	case lease.OpRenew:
		_, err = p.renewOdd(ctx, lock, s.holder, s.token(held), ttl)
	case lease.OpRelease:
		err = p.release(ctx, lock, s.holder, s.token(held))
	}
	if err == nil {
		p.fail("a correct store refuses it: the request makes no sense")
	}
}

type pair[T any] struct {
	name string
	a, b T
}

var (
	tenKB = strings.Repeat("x", 10_000)

	// Names that something on the way to the data might take for one another.
	resourcePairs = []pair[string]{
		{"without-a-name", "", lock},
		{"in-another-case", "Shard", "shard"},
		{"with-a-space-at-the-end", "x ", "x"},
		{"with-a-space-at-the-beginning", " x", "x"},
		{"with-a-newline-at-the-end", "x\n", "x"},
		{"with-quotes", "a'b", "a''b"},
		{"with-double-quotes", `a"b`, `a\"b`},
		{"with-a-slash", "a/b", "a"},
		{"with-a-slash-at-the-end", "a/", "a"},
		{"that-is-a-path", "../x", "x"},
		{"that-is-a-longer-one's-beginning", "shard-1", "shard-10"},
		{"with-a-percent-sign", "a%2Fb", "a/b"},
		{"that-is-a-pattern", "%", "x"},
		{"that-is-a-format", "%s", "%d"},
		{"with-a-colon", "a:b", "a"},
		{"with-a-nul", "a\x00b", "a\x00c"},
		{"that-a-nul-ends", "a\x00b", "a"},
		{"of-10-kB", tenKB + "1", tenKB + "2"},
		{"of-300-bytes", tenKB[:299] + "1", tenKB[:299] + "2"},
		{"in-another-unicode-form", "caf\u00e9", "cafe\u0301"},
		{"that-is-not-utf-8", "a\xff", "a\xfe"},
	}

	// Likewise of holders, where the first three are as good as any: a nonce is
	// 64 random bits.
	holderPairs = []pair[lease.Holder]{
		{"with-another-nonce", lease.Holder{Node: "a", Seq: 1, Nonce: 1}, lease.Holder{Node: "a", Seq: 1, Nonce: 2}},
		{"with-a-nonce-of-64-bits", lease.Holder{Node: "a", Seq: 1, Nonce: math.MaxUint64}, lease.Holder{Node: "a", Seq: 1, Nonce: math.MaxUint64 - 1}},
		{"with-a-large-sequence-number", lease.Holder{Node: "a", Seq: 1<<53 + 1, Nonce: 1}, lease.Holder{Node: "a", Seq: 1 << 53, Nonce: 1}},
		{"with-digits-that-move", lease.Holder{Node: "a1", Seq: 1, Nonce: 1}, lease.Holder{Node: "a", Seq: 11, Nonce: 1}},
		{"in-another-case", lease.Holder{Node: "Node", Seq: 1, Nonce: 1}, lease.Holder{Node: "node", Seq: 1, Nonce: 1}},
		{"without-a-node", lease.Holder{Seq: 1, Nonce: 1}, lease.Holder{Seq: 2, Nonce: 1}},
		{"with-a-hash-sign", lease.Holder{Node: "a#b", Seq: 1, Nonce: 1}, lease.Holder{Node: "a#c", Seq: 1, Nonce: 1}},
		{"with-a-space-at-the-end", lease.Holder{Node: "a ", Seq: 1, Nonce: 1}, lease.Holder{Node: "a", Seq: 1, Nonce: 1}},
		{"with-spaces", lease.Holder{Node: "a b", Seq: 1, Nonce: 1}, lease.Holder{Node: "a c", Seq: 1, Nonce: 1}},
		{"with-quotes", lease.Holder{Node: `a'"b`, Seq: 1, Nonce: 1}, lease.Holder{Node: `a'"c`, Seq: 1, Nonce: 1}},
		{"with-a-slash", lease.Holder{Node: "a/b", Seq: 1, Nonce: 1}, lease.Holder{Node: "a/c", Seq: 1, Nonce: 1}},
		{"in-another-unicode-form", lease.Holder{Node: "caf\u00e9", Seq: 1, Nonce: 1}, lease.Holder{Node: "cafe\u0301", Seq: 1, Nonce: 1}},
		{"with-a-nul", lease.Holder{Node: "a\x00b", Seq: 1, Nonce: 1}, lease.Holder{Node: "a\x00c", Seq: 1, Nonce: 1}},
		{"of-10-kB", lease.Holder{Node: tenKB + "1", Seq: 1, Nonce: 1}, lease.Holder{Node: tenKB + "2", Seq: 1, Nonce: 1}},
	}
)

// twoResources: first each alone, then b's while a has the other. Only a store
// that takes both names is asked whether they are two.
func (p *probe) twoResources(r1, r2 string) {
	ctx := context.Background()
	a, b := node("a"), node("b")
	first, err := p.acquire(ctx, r2, b, p.t.ttl)
	if err != nil {
		return
	}
	if err := p.release(ctx, r2, b, first.Token); err != nil {
		p.fail("a correct store releases it: b holds it")
	}
	ga, err := p.acquire(ctx, r1, a, p.t.ttl)
	if err != nil {
		return
	}
	gb := p.mustAcquire(r2, b, fmt.Sprintf("a holds %s, which is another lease", name(r1)))
	p.follows(first.Token, gb.Token)
	p.holds(r1, a, ga.Token)
	p.holds(r2, b, gb.Token)
	if err := p.release(ctx, r2, b, gb.Token); err != nil {
		p.fail("a correct store releases it: b holds it")
	}
	p.mustRenew(r1, a, ga.Token, fmt.Sprintf("what was released is %s", name(r2)))
}

// twoHolders: what h has, its near namesake does not.
func (p *probe) twoHolders(h, near lease.Holder) {
	ctx := context.Background()
	g, err := p.acquire(ctx, lock, h, p.t.ttl)
	if err != nil {
		p.mustAcquire(lock, node("a"), "the lease is free, whatever was refused before")
		return
	}
	p.mustRefuse(lock, near, "another holds it")
	if _, err := p.renewOdd(ctx, lock, near, g.Token, p.t.ttl); err == nil {
		p.fail("a correct store refuses it: another holds it")
	}
	if err := p.release(ctx, lock, near, g.Token); err == nil {
		p.fail("a correct store refuses it: another holds it")
	}
	again := p.mustAcquire(lock, h, "this holder has it already, and asks once more")
	if again.Token != g.Token {
		p.fail("a correct store keeps token %d: this holder has it already, and asks once more", g.Token)
	}
	p.mustRenew(lock, h, g.Token, "this holder has it")
	p.holds(lock, h, g.Token)
	if err := p.release(ctx, lock, h, g.Token); err != nil {
		p.fail("a correct store releases it: this holder has it")
	}
	if gn, err := p.acquire(ctx, lock, near, p.t.ttl); err == nil {
		p.follows(g.Token, gn.Token)
		p.holds(lock, near, gn.Token)
	}
}

// holds convicts a store that says somebody else does. One that cannot say it,
// since it keeps holders as text that does not read back, may fail instead.
func (p *probe) holds(resource string, h lease.Holder, token lease.Token) {
	seen, ok := p.get(resource)
	if ok && (seen.Holder != h || seen.Token != token) {
		p.fail("a correct store says that %s holds it under token %d", who(h), token)
	}
}

// largestTTL: what was granted for ever is held for a while, at least.
func (p *probe) largestTTL(renewal bool) {
	ctx := context.Background()
	a, b := node("a"), node("b")
	var g lease.Grant
	var err error
	if renewal {
		g = p.mustAcquire(lock, a, "the lease is free")
		p.advance(1) // so that now + TTL does not fit
		var held lease.Grant
		if held, err = p.renew(ctx, lock, a, g.Token, math.MaxInt64); err == nil {
			g = held
		}
	} else {
		p.advance(1)
		g, err = p.acquire(ctx, lock, a, math.MaxInt64)
	}
	if err != nil && !renewal {
		p.mustAcquire(lock, b, "the lease is free, whatever was refused before")
		return
	}
	p.mustRefuse(lock, b, "a holds it")
	p.advance(p.t.short)
	if g.TTL <= p.t.short {
		return // capped at less
	}
	p.mustRefuse(lock, b, "a holds it, for longer than that")
	if !p.o.Volatile {
		p.restart()
		p.advance(p.t.short)
		p.mustRefuse(lock, b, "a holds it, and after a restart for its whole TTL again")
	}
	if err := p.release(ctx, lock, a, g.Token); err != nil {
		p.fail("a correct store releases it: a holds it")
	}
	p.follows(g.Token, p.mustAcquire(lock, b, "a gave it back").Token)
	p.advance(p.t.free())
	p.mustAcquire(lock, node("c"), "b's tenure is over; the largest TTL was that of an earlier one")
}

// cancelled is a context that has ended.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (p *probe) unrefused(err error) {
	if isRefusal(err) {
		p.fail("that is a refusal, and nothing stands in the way but the context, which has ended")
	}
}

func (p *probe) endedAcquire() {
	a, b := node("a"), node("b")
	p.note("with a context that has ended:")
	g, err := p.acquire(cancelled(), lock, a, p.t.ttl)
	p.unrefused(err)
	again := p.mustAcquire(lock, a, "the lease is free, or a's already")
	if err == nil && again.Token != g.Token {
		p.fail("a correct store keeps token %d: a was granted it", g.Token)
	}
	p.mustRefuse(lock, b, "a holds it")
	p.mustRenew(lock, a, again.Token, "a holds it")
}

func (p *probe) endedRenew() {
	a, b := node("a"), node("b")
	g := p.mustAcquire(lock, a, "the lease is free")
	p.note("with a context that has ended:")
	_, err := p.renew(cancelled(), lock, a, g.Token, p.t.ttl)
	p.unrefused(err)
	p.mustRefuse(lock, b, "a holds it")
	p.mustRenew(lock, a, g.Token, "a holds it")
}

func (p *probe) endedRelease() {
	ctx := context.Background()
	a, b := node("a"), node("b")
	g := p.mustAcquire(lock, a, "the lease is free")
	p.note("with a context that has ended:")
	err := p.release(cancelled(), lock, a, g.Token)
	p.unrefused(err)
	_, held := p.renew(ctx, lock, a, g.Token, p.t.ttl)
	switch {
	case held == nil && err == nil:
		p.fail("a correct store refuses it: a gave the lease back")
	case held == nil:
		p.mustRefuse(lock, b, "a holds it")
	case !errors.Is(held, lease.ErrNotHeld):
		p.fail("a correct store renews it, or says that a does not hold it any more")
	default:
		p.follows(g.Token, p.mustAcquire(lock, b, "a gave it back").Token)
	}
}
