package storetest

import (
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// Rate is in how many of so many rounds a game convicts a store, with the clock
// yielding or not.
func Rate(open func(kit.Env) lease.Store, name string, yield bool, rounds int) (convicted int) {
	h := newHammer(open, kit.Options{}, 1)
	defer h.close()
	for _, g := range games {
		if g.name != name {
			continue
		}
		for range rounds {
			h.next()
			h.gate.off.Store(!yield)
			if g.play(h) != nil {
				convicted++
			}
		}
	}
	return convicted
}
