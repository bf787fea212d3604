package script

import (
	"slices"
	"time"

	"fencepost/props/kit"
)

// alphabet gives the steps worth taking from a state: everybody's requests,
// right and wrong, and time up to each instant at which something ends, and
// one nanosecond before. It is small enough that all sequences can be played.
//
// It leaves out what cannot show anything new: a holder who comes in before
// one with an earlier name (holders are alike to a store), a second get at
// once, and time that passes in two parts with nothing between them.
type alphabet struct {
	ttl, short time.Duration
	buf        []Step
}

func newAlphabet(o kit.Options) alphabet {
	// Not a whole number of seconds, for stores that round.
	return alphabet{ttl: max(1500*time.Millisecond, o.MinTTL), short: max(time.Second, o.MinTTL)}
}

// steps are those out of p's state. They are valid until the next call.
func (x *alphabet) steps(p *player, as *aims, last Kind) []Step {
	l, a := &p.leases[0], &as[0]
	x.buf = x.buf[:0]
	add := func(s Step) { x.buf = append(x.buf, s) }

	who := []Who{{1, 1}}
	if len(l.grants) > 0 {
		who = append(who, Who{2, 1}, Who{1, 2})
	}
	for _, w := range who {
		add(Step{Do: Acquire, Who: w, TTL: x.ttl})
	}
	if a.holder != (Who{}) && x.short != x.ttl {
		add(Step{Do: Acquire, Who: a.holder, TTL: x.short})
	}
	if last != Advance {
		ends := []time.Duration{a.until, later(a.until, p.opts.Late), later(a.until, p.opts.LockDelay), later(a.until, p.opts.Late+p.opts.LockDelay)}
		slices.Sort(ends)
		for _, end := range slices.Compact(ends) {
			if a.holder == (Who{}) {
				break
			}
			if left := end - p.at; left > 1 {
				add(Step{Do: Advance, D: left - 1})
			}
			if left := end - p.at; left > 0 {
				add(Step{Do: Advance, D: left})
			}
		}
	}
	for _, do := range [...]Kind{Renew, Release} {
		ask := func(who Who, token Ref, ttl time.Duration) {
			s := Step{Do: do, Who: who, Token: token}
			if do == Renew {
				s.TTL = ttl
			}
			add(s)
		}
		for _, g := range l.grants {
			ask(g.who, Ref{Of: g.who}, x.ttl)
			if do == Renew && g.who == a.holder && x.short != x.ttl {
				ask(g.who, Ref{Of: g.who}, x.short)
			}
		}
		if len(l.grants) == 0 {
			continue
		}
		for _, w := range who {
			if w != a.holder && l.of(w) != l.last {
				ask(w, Ref{}, x.ttl)
			}
		}
		if a.holder != (Who{}) {
			wrong := Ref{Of: a.holder, Plus: -1}
			if l.last == 1 {
				wrong.Plus = 1 // 0 is no token at all
			}
			ask(a.holder, wrong, x.ttl)
		}
	}
	if !p.opts.NoGet && last != Get {
		add(Step{Do: Get})
	}
	if !p.opts.Volatile {
		add(Step{Do: Restart})
	}
	if p.del != nil && l.last > 0 {
		add(Step{Do: Delete})
	}
	return x.buf
}

// of is the token that who was granted last, 0 for none.
func (l *leaseState) of(who Who) uint64 {
	n, _ := l.token(Ref{Of: who})
	return n
}
