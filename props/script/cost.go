package script

import (
	"slices"
	"time"
)

// cost is what to lower: steps first, then how odd they look.
type cost struct{ steps, odd int }

func (c cost) below(d cost) bool { return c.steps < d.steps || c.steps == d.steps && c.odd < d.odd }

func costOf(steps []Step) cost {
	c := cost{steps: len(steps)}
	var ttl time.Duration
	var seen []Who
	var high uint8 // of the nodes so far
	for i, s := range steps {
		if s.Do == Acquire {
			// Two who get the lease say more than one who gets it twice.
			if i == len(steps)-1 && slices.Contains(seen, s.Who) {
				c.odd += 2
			}
			seen = append(seen, s.Who)
		}
		c.odd += 8 * int(s.On)
		if s.Do.hasWho() {
			c.odd += whoCost(s.Who)
			if s.Who.Node > high+1 { // b comes in before a
				c.odd++
			}
			high = max(high, s.Who.Node)
		}
		if s.Do.hasToken() && s.Token != (Ref{Of: s.Who}) {
			c.odd += 3
			if s.Token.Of != (Who{}) {
				c.odd += whoCost(s.Token.Of) - 1
			}
			if s.Token.Plus != 0 {
				c.odd += 3
			}
		}
		if s.Do.hasTTL() {
			c.odd += durationCost(s.TTL)
			if ttl != 0 && ttl != s.TTL {
				c.odd += 8
			}
			ttl = s.TTL
		}
		if s.Do == Advance {
			c.odd += durationCost(s.D)
		}
	}
	return c
}

func whoCost(w Who) int { return int(w.Node) + 4*int(w.Seq) }

// round durations, the plainest first.
var round = [...]time.Duration{10 * time.Second, time.Second, 5 * time.Second, 9 * time.Second, 20 * time.Second, 1500 * time.Millisecond, time.Millisecond, 1}

func durationCost(d time.Duration) int {
	if i := slices.Index(round[:], d); i >= 0 {
		return i
	}
	return len(round) + len(d.String())
}
