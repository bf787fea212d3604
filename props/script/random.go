package script

import (
	"time"

	"fencepost/props/kit"
)

// Source is where choices come from, such as a *rand.PCG of math/rand/v2 with
// a fixed seed. One number is drawn for each step.
type Source interface {
	Uint64() uint64
}

// RunRandom plays n steps against a fresh store, or fewer up to the first
// answer that breaks a rule. Each step is chosen when the one before has been
// answered, so that most have an effect: time mostly passes up to the instant
// at which something ends, or to the nanosecond before or after. The same
// answers and the same numbers from src give the same steps. The lines have
// their answers in words only if a rule is broken.
//
// Like [Run] it panics with a *[kit.SetupError] where open gives up.
func RunRandom(open Open, o kit.Options, src Source, n int) Result {
	s := NewSeries(open, o)
	defer s.Close()
	return s.RunRandom(src, n)
}

// random plays steps that it chooses one by one.
func (p *player) random(src Source, n int) {
	p.lines = make([]Line, 0, n)
	g := newGenerator(p, src)
	for range n {
		ok := p.play(g.step())
		g.learn(&p.lines[len(p.lines)-1])
		if !ok {
			return
		}
	}
}

// weights say how often each kind of step is chosen, against the others.
var weights = [kinds]int{Acquire: 30, Renew: 22, Release: 7, Get: 8, Advance: 27, Restart: 5, Delete: 1}

// generator chooses the steps of one run.
type generator struct {
	p    *player
	src  Source
	r    rng // of the step being chosen
	ttls []time.Duration
	seqs [len(nodes)]uint8 // of each node's current incarnation
	aims aims
	last Kind
}

func newGenerator(p *player, src Source) *generator {
	return &generator{p: p, src: src, ttls: ttlsFor(p.opts), seqs: [len(nodes)]uint8{0, 1, 1, 1}}
}

// ttlsFor are TTLs that tell a store that measures well from one that rounds:
// whole seconds, parts of them, odd ones, and those at the bounds that o has.
func ttlsFor(o kit.Options) []time.Duration {
	ttls := []time.Duration{10 * time.Second, 10 * time.Second, 3 * time.Second, 1500 * time.Millisecond, 999 * time.Millisecond, 20*time.Second + 1}
	if g := o.Granularity; g > 0 {
		ttls = append(ttls, g, 3*g, g+1, 2*g-1, 5*g/2)
	}
	if m := o.MinTTL; m > 0 {
		ttls = append(ttls, m, m+1, m-1, m/2)
	}
	return ttls
}

func (g *generator) learn(l *Line) {
	g.aims.learn(l)
	g.last = l.Step.Do
}

func (g *generator) step() Step {
	g.r = rng(g.src.Uint64())
	var on uint8
	if g.r.n(8) == 0 {
		on = 1
	}
	s := Step{Do: g.kind(on), On: on}
	a := &g.aims[on]
	switch s.Do {
	case Acquire:
		s.Who, s.TTL = g.candidate(a), g.ttl()
	case Renew:
		s.Who, s.Token = g.claim(on)
		s.TTL = g.ttl()
	case Release:
		s.Who, s.Token = g.claim(on)
	case Advance:
		s.D, s.On = g.passage(a), 0
	case Restart:
		s.On = 0
	}
	return s
}

// kind is one that has an effect.
func (g *generator) kind(on uint8) Kind {
	w := weights
	if len(g.p.leases[on].grants) == 0 {
		w[Renew], w[Release] = 0, 0
	}
	if g.p.opts.NoGet || g.last == Get {
		w[Get] = 0
	}
	if g.p.opts.Volatile {
		w[Restart] = 0
	}
	if g.p.del == nil || g.aims[on].holder == (Who{}) {
		w[Delete] = 0
	}
	if g.last == Advance {
		w[Advance] /= 8
	}
	sum := 0
	for _, n := range w {
		sum += n
	}
	at := g.r.n(sum)
	for k, n := range w {
		if at -= n; at < 0 {
			return Kind(k)
		}
	}
	return Acquire
}

func (g *generator) ttl() time.Duration {
	if g.r.n(64) == 0 {
		return -time.Duration(g.r.n(2)) * time.Second // no TTL at all
	}
	return g.ttls[g.r.n(len(g.ttls))]
}

// candidate is who asks for a lease.
func (g *generator) candidate(a *aim) Who {
	choice := g.r.n(100)
	switch h := a.holder; {
	case h.Node != 0 && choice < 20:
		return h // once more, or after its lapse
	case h.Node != 0 && choice < 35:
		return g.next(h.Node)
	}
	node := uint8(1 + g.r.n(len(nodes)-1))
	if choice >= 90 {
		return g.next(node)
	}
	return Who{node, g.seqs[node]}
}

// next is a node's next incarnation.
func (g *generator) next(node uint8) Who {
	if g.seqs[node] < 255 {
		g.seqs[node]++
	}
	return Who{node, g.seqs[node]}
}

// claim is who says that it holds a lease, and under which token.
func (g *generator) claim(on uint8) (Who, Ref) {
	a, grants := &g.aims[on], g.p.leases[on].grants
	past := grants[g.r.n(len(grants))].who
	holder := a.holder
	if holder.Node == 0 {
		holder = past
	}
	switch choice := g.r.n(100); {
	case choice < 55:
		return holder, Ref{Of: holder}
	case choice < 70:
		return past, Ref{Of: past} // by now perhaps somebody else's
	case choice < 78:
		return past, Ref{}
	case choice < 84:
		return g.candidate(a), Ref{}
	case choice < 90:
		return g.next(holder.Node), Ref{Of: holder}
	case choice < 95:
		return holder, Ref{Plus: 1}
	}
	return holder, Ref{Plus: -1}
}

// passage is how much time passes.
func (g *generator) passage(a *aim) time.Duration {
	o, at := &g.p.opts, g.p.at
	ends := [...]time.Duration{a.until, a.until, later(a.until, o.Late), later(a.until, o.LockDelay), later(a.until, o.Late+o.LockDelay)}
	left := ends[g.r.n(len(ends))] - at
	if left <= 0 {
		left = later(a.until, o.Late+o.LockDelay) - at
	}
	if left <= 1 {
		return time.Duration(1+g.r.n(3_000)) * time.Millisecond
	}
	switch choice := g.r.n(100); {
	case choice < 40:
		return left
	case choice < 60:
		return left - 1
	case choice < 70:
		return left + 1
	case choice < 85:
		return left/2 + 1
	}
	return min(left, time.Duration(1+g.r.n(1_000))*time.Millisecond)
}

// rng is splitmix64: the choices inside one step, from the one number drawn
// for it.
type rng uint64

// n is below limit, which is small: the bias is nothing.
func (r *rng) n(limit int) int {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(limit))
}
