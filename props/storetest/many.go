package storetest

import (
	"context"
	"fmt"

	"fencepost/props/kit"
	"fencepost/props/script"
)

// manyPart of 100 calls are for Many: two of three are acquires, and in the
// quick mode more than the 1,024 entries that caches are fond of.
const manyPart = 10

var keptAmongMany = verdict{
	"leases-are-kept-among-many",
	"However many other leases there are, a lease is held until its TTL has run out, and its counter never forgotten: a store that keeps only the latest few in memory gives one lease to two leaders, and one token too.",
	"go doc fencepost/impl/lease Token",
}

// Many is the check that a lease that is held, one that was released and one
// that has lapsed are kept while very many others are acquired.
func Many(open script.Open, o kit.Options, e kit.Effort) kit.Check {
	n := max(o.Budget(e, manyPart)*2/3, 2)
	d := doubt{rule: keptAmongMany, probe: func(p *probe) { p.many(n) }, control: func(p *probe) { p.many(0) }}
	return kit.Check{Name: "rules/leases-are-kept-among-many", Run: func() kit.Outcome { return d.settle(open, o) }}
}

func (p *probe) many(n int) {
	const held, released, lapsed = "held", "released", "lapsed"
	a, b := node("a"), node("b")
	p.names = true
	l := p.mustAcquire(lapsed, a, "the lease is free")
	p.advance(p.t.free())
	r := p.mustAcquire(released, a, "the lease is free")
	p.mustRelease(released, a, r.Token)
	h := p.mustAcquire(held, a, "the lease is free")
	p.others(n)
	p.mustRefuse(held, b, "a holds it")
	p.mustRenew(held, a, h.Token, "a holds it")
	p.follows(r.Token, p.mustAcquire(released, b, "a gave it back").Token)
	p.follows(l.Token, p.mustAcquire(lapsed, b, "a's tenure has lapsed").Token)
}

// others acquires n other leases, and releases every second one. Of the story
// they are one line.
func (p *probe) others(n int) {
	before, c := len(p.lines), node("c")
	for i := range n {
		resource := fmt.Sprintf("other-%d", i)
		g, err := p.acquire(context.Background(), resource, c, p.t.ttl)
		if err != nil {
			p.want("granted: nobody ever held it")
		}
		if i%2 == 1 {
			if err := p.release(context.Background(), resource, c, g.Token); err != nil {
				p.want("released: c holds it")
			}
		}
		p.lines = p.lines[:before]
	}
	p.note(fmt.Sprintf("c acquires %d other leases, and releases half of them", n))
}
