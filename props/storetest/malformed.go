package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

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
	var all []doubt
	batch := once(func() []kit.Outcome { return settleAll(all, open, o) })
	add := func(name string, d doubt) {
		i := len(all)
		all = append(all, d)
		checks = append(checks, kit.Check{Name: "malformed/" + name, Run: func() kit.Outcome {
			if out := batch()[i]; out.Covered != "" {
				return out
			}
			return d.settle(open, o)
		}})
	}
	for _, s := range senseless {
		add(s.name, doubt{rule: s.rule(), see: s.see, shares: true,
			probe:   func(p *probe) { p.senseless(&s) },
			control: func(p *probe) { p.senseless(nil) }})
	}
	for _, pair := range resourcePairs {
		add("resource-"+pair.name, doubt{rule: apart,
			probe:   func(p *probe) { p.twoResources(pair.a, pair.b) },
			control: func(p *probe) { p.twoResources("shard-1", "shard-2") }})
	}
	for _, pair := range holderPairs {
		add("holder-"+pair.name, doubt{rule: apart, shares: true,
			see: []string{
				"rules/acquire-by-the-next-incarnation-of-the-node-is-refused",
				"rules/renew-by-the-next-incarnation-of-the-node-is-refused",
				"rules/release-by-the-next-incarnation-of-the-node-is-refused"},
			probe:   func(p *probe) { p.twoHolders(pair.a, pair.b) },
			control: func(p *probe) { p.twoHolders(node("a"), node("b")) }})
	}
	for _, renewal := range []bool{false, true} {
		name := "acquire-for-the-largest-ttl"
		if renewal {
			name = "renew-for-the-largest-ttl"
		}
		add(name, doubt{rule: forever,
			probe:   func(p *probe) { p.largestTTL(renewal, math.MaxInt64) },
			control: func(p *probe) { p.largestTTL(renewal, p.t.long) }})
	}
	for _, e := range []struct {
		name string
		f    func(*probe, context.Context)
	}{
		{"acquire", (*probe).endedAcquire},
		{"renew", (*probe).endedRenew},
		{"release", (*probe).endedRelease},
	} {
		add(e.name+"-under-an-ended-context", doubt{rule: ended, shares: true,
			probe:   func(p *probe) { e.f(p, cancelled()) },
			control: func(p *probe) { e.f(p, context.Background()) }})
	}
	return checks
}

// doubt is a probe that a store may fail for a reason that has nothing odd.
type doubt struct {
	rule verdict
	// control is the probe with nothing odd in it: a store that fails it too is
	// convicted by one of the rules.
	probe, control func(*probe)
	// see are checks that convict a store for what the probe would, and more.
	see []string
	// shares says that the probe is about the resource lock alone, and no
	// restart.
	shares bool
}

// settleAll asks those that share on one store, each about a resource of its
// own, as [court.batch] does. What is not covered so is to be settled alone.
func settleAll(all []doubt, open script.Open, o kit.Options) []kit.Outcome {
	outs := make([]kit.Outcome, len(all))
	kit.Attempt(func() {
		var lab *kit.Lab[lease.Store]
		end := func() {
			if lab != nil {
				lab.Close()
			}
			lab = nil
		}
		defer end()
		for i, d := range all {
			if !d.shares {
				continue
			}
			if lab == nil {
				lab = newLab(open, o)
			}
			if outs[i] = askOn(lab, fmt.Sprintf("shard-%d", i+1), o, d.rule, d.probe); outs[i].Covered == "" {
				end() // what it does after a fault says nothing
			}
		}
	})
	return outs
}

func (d doubt) settle(open script.Open, o kit.Options) kit.Outcome {
	out := ask(open, o, d.rule, d.probe)
	if out.Failure == nil {
		return out
	}
	c := court{open: open, o: o, rules: slices.Concat(requestRules, restartRules)}
	of := func(name string) bool { return slices.Contains(d.see, name) }
	if ask(open, o, d.rule, d.control).Failure != nil {
		of = func(string) bool { return true }
	}
	if broken, home, ok := c.first(of); ok {
		return kit.Outcome{Skipped: notReached(broken, home)}
	}
	return out
}

// request is one that no store may grant while a holds the lease.
type request struct {
	name   string
	op     lease.Op
	holder lease.Holder
	oddTTL bool
	ttl    time.Duration                      // if oddTTL; else the usual one
	token  func(held lease.Token) lease.Token // made of the one that a holds
	see    []string
}

// why is what is wrong with it.
func (s request) why() string {
	switch {
	case s.oddTTL:
		return "a TTL is above zero"
	case s.holder.IsZero():
		return "nobody is no holder"
	}
	return "that token was never granted"
}

func (s request) rule() verdict {
	if s.oddTTL || s.holder.IsZero() {
		return refused
	}
	if s.op == lease.OpRelease {
		return verdict{model.RuleReleaseToken.String(), model.RuleReleaseToken.Says(), "go doc fencepost/impl/lease Record.Release"}
	}
	return verdict{model.RuleRenewToken.String(), model.RuleRenewToken.Says(), "go doc fencepost/impl/lease Record.Renew"}
}

func itself(t lease.Token) lease.Token { return t }

// What is as wrong with a request that does make sense.
var (
	anyRenews     = []string{"rules/renew-by-another-is-refused"}
	anyReleases   = []string{"rules/release-by-another-is-refused"}
	tokenRenews   = []string{"rules/renew-under-a-token-never-granted-is-refused", "rules/renew-under-an-old-token-is-refused", "rules/a-refused-renewal-changes-nothing"}
	tokenReleases = []string{"rules/release-under-a-token-never-granted-is-refused", "rules/release-under-an-old-token-is-refused"}
)

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
	{name: "renew-as-nobody", op: lease.OpRenew, token: itself, see: anyRenews},
	{name: "renew-under-token-zero", op: lease.OpRenew, holder: node("a"), token: func(lease.Token) lease.Token { return 0 }, see: tokenRenews},
	{name: "renew-under-the-largest-token", op: lease.OpRenew, holder: node("a"), token: func(lease.Token) lease.Token { return math.MaxUint64 }, see: tokenRenews},
	{name: "renew-under-a-token-with-another-upper-half", op: lease.OpRenew, holder: node("a"), token: func(t lease.Token) lease.Token { return t + 1<<32 }, see: tokenRenews},
	{name: "renew-under-a-token-with-another-first-bit", op: lease.OpRenew, holder: node("a"), token: func(t lease.Token) lease.Token { return t ^ 1<<63 }, see: tokenRenews},
	{name: "release-as-nobody", op: lease.OpRelease, token: itself, see: anyReleases},
	{name: "release-under-token-zero", op: lease.OpRelease, holder: node("a"), token: func(lease.Token) lease.Token { return 0 }, see: tokenReleases},
	{name: "release-under-the-largest-token", op: lease.OpRelease, holder: node("a"), token: func(lease.Token) lease.Token { return math.MaxUint64 }, see: tokenReleases},
	{name: "release-under-a-token-with-another-upper-half", op: lease.OpRelease, holder: node("a"), token: func(t lease.Token) lease.Token { return t + 1<<32 }, see: tokenReleases},
}

// senseless sends s, if there is one, while a holds the lease, and an acquire
// also before anybody does and after b gave it back: it must be refused, and all
// goes on as if it had never come.
func (p *probe) senseless(s *request) {
	a, b := node("a"), node("b")
	if s != nil && s.op == lease.OpAcquire {
		p.send(*s, 0)
	}
	held := p.mustAcquire(lock, a, "the lease is free")
	if s != nil {
		p.send(*s, held.Token)
	}
	sure := min(p.t.ttl, held.TTL) // less where the store caps TTLs
	p.advance(sure - 1)
	p.mustRefuse(lock, b, "a holds it for another 1ns, whatever was refused meanwhile")
	p.advance(p.t.free() - sure + 1)
	next := p.mustAcquire(lock, b, "a's tenure is over, and a request that was refused prolongs none")
	p.follows(held.Token, next.Token)
	p.mustRelease(lock, b, next.Token)
	if s != nil && s.op == lease.OpAcquire {
		p.send(*s, next.Token)
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
		p.want("refused: %s", s.why())
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
		{"that-another-begins-with", "shard-1", "shard-10"},
		{"with-a-percent-sign", "a%2Fb", "a/b"},
		{"that-is-a-pattern", "%", "x"},
		{"that-is-a-format", "%s", "%d"},
		{"with-a-colon", "a:b", "a"},
		{"with-a-nul", "a\x00b", "a\x00c"},
		{"that-a-nul-ends", "a\x00b", "a"},
		{"of-ten-kilobytes", tenKB + "1", tenKB + "2"},
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
		{"with-a-nonce-of-other-upper-32-bits", lease.Holder{Node: "a", Seq: 1, Nonce: 1<<40 | 7}, lease.Holder{Node: "a", Seq: 1, Nonce: 7}},
		{"with-a-sequence-number-above-8-bits", lease.Holder{Node: "a", Seq: 1<<8 + 1, Nonce: 1}, lease.Holder{Node: "a", Seq: 1, Nonce: 1}},
		{"with-a-sequence-number-above-16-bits", lease.Holder{Node: "a", Seq: 1<<16 + 1, Nonce: 1}, lease.Holder{Node: "a", Seq: 1, Nonce: 1}},
		{"with-a-sequence-number-above-32-bits", lease.Holder{Node: "a", Seq: 1<<32 + 1, Nonce: 1}, lease.Holder{Node: "a", Seq: 1, Nonce: 1}},
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
		{"of-ten-kilobytes", lease.Holder{Node: tenKB + "1", Seq: 1, Nonce: 1}, lease.Holder{Node: tenKB + "2", Seq: 1, Nonce: 1}},
	}
)

// twoResources: first each alone, then b's while a has the other. Only a store
// that takes both names is asked whether they are two.
func (p *probe) twoResources(r1, r2 string) {
	p.names = true
	ctx := context.Background()
	a, b := node("a"), node("b")
	first, err := p.acquire(ctx, r2, b, p.t.ttl)
	if err != nil {
		return
	}
	p.mustRelease(r2, b, first.Token)
	ga, err := p.acquire(ctx, r1, a, p.t.ttl)
	if err != nil {
		return
	}
	gb := p.mustAcquire(r2, b, fmt.Sprintf("a holds %s, which is another lease", name(r1)))
	p.follows(first.Token, gb.Token)
	p.holds(r1, a, ga.Token)
	p.holds(r2, b, gb.Token)
	p.mustRelease(r2, b, gb.Token)
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
		p.want("refused: another holds it")
	}
	if err := p.release(ctx, lock, near, g.Token); err == nil {
		p.want("refused: another holds it")
	}
	again := p.mustAcquire(lock, h, "this holder has it already")
	if again.Token != g.Token {
		p.want("granted, still under token %d: this holder has it already", g.Token)
	}
	p.mustRenew(lock, h, g.Token, "this holder has it")
	p.holds(lock, h, g.Token)
	p.mustRelease(lock, h, g.Token)
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
		p.want("%s holds it under token %d", who(h), token)
	}
}

// largestTTL: what was granted for ever is held for a while, at least.
func (p *probe) largestTTL(renewal bool, ttl time.Duration) {
	ctx := context.Background()
	a, b := node("a"), node("b")
	var g lease.Grant
	var err error
	if renewal {
		g = p.mustAcquire(lock, a, "the lease is free")
		p.advance(1) // so that now + TTL does not fit
		var held lease.Grant
		if held, err = p.renew(ctx, lock, a, g.Token, ttl); err == nil {
			g = held
		}
	} else {
		p.advance(1)
		g, err = p.acquire(ctx, lock, a, ttl)
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
	switch {
	case p.o.Volatile:
	case !p.o.SteadyClock:
		p.restart()
		p.advance(p.t.short)
		p.mustRefuse(lock, b, "a holds it, and after a restart for its whole TTL again")
	case g.TTL > 2*p.t.short:
		p.restart()
		p.advance(p.t.short)
		p.mustRefuse(lock, b, "a holds it, for longer than that, and the store's clock goes on over a restart")
	}
	p.mustRelease(lock, a, g.Token)
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
		p.want("no refusal: nothing stands in the way but the end of the context")
	}
}

func (p *probe) endedAcquire(ctx context.Context) {
	a, b := node("a"), node("b")
	g, err := p.acquire(ctx, lock, a, p.t.ttl)
	p.unrefused(err)
	again := p.mustAcquire(lock, a, "the lease is free, or a's already")
	if err == nil && again.Token != g.Token {
		p.want("granted, still under token %d: a has it already", g.Token)
	}
	p.mustRefuse(lock, b, "a holds it")
	p.mustRenew(lock, a, again.Token, "a holds it")
}

func (p *probe) endedRenew(ctx context.Context) {
	a, b := node("a"), node("b")
	g := p.mustAcquire(lock, a, "the lease is free")
	_, err := p.renew(ctx, lock, a, g.Token, p.t.ttl)
	p.unrefused(err)
	p.mustRefuse(lock, b, "a holds it")
	p.mustRenew(lock, a, g.Token, "a holds it")
}

func (p *probe) endedRelease(ctx context.Context) {
	a, b := node("a"), node("b")
	g := p.mustAcquire(lock, a, "the lease is free")
	err := p.release(ctx, lock, a, g.Token)
	p.unrefused(err)
	_, held := p.renew(context.Background(), lock, a, g.Token, p.t.ttl)
	switch {
	case held == nil && err == nil:
		p.want("refused: a gave the lease back")
	case held == nil:
		p.mustRefuse(lock, b, "a holds it")
	case !errors.Is(held, lease.ErrNotHeld):
		p.want("granted, or refused since a gave it back")
	default:
		p.follows(g.Token, p.mustAcquire(lock, b, "a gave it back").Token)
	}
}
