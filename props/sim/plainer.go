package sim

import (
	"slices"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// This file is what [Minimize] does to a schedule that is short: it makes what is
// left plainer.

// plainer keeps the number of actions and removes what a reader need not
// wonder about. It reports whether it changed anything, since a plainer
// set-up may allow another deletion.
func (m *minimizer) plainer() (changed bool) {
	for _, edit := range []func(*Config){
		func(c *Config) { c.Offsets = [model.MaxNodes]time.Duration{} },
		func(c *Config) { c.Lease.LockDelay = 0 },
		func(c *Config) { c.Lease.Barrier = false },
		func(c *Config) { c.Lease.RetryInterval = 0 },
		func(c *Config) { c.FirstToken = 0 },
		func(c *Config) { c.Messages = 0 },
		func(c *Config) { c.Clients = 2 },
		func(c *Config) { c.Clients = 1 },
		func(c *Config) { c.Lease.SafetyMargin = 0 },
		func(c *Config) { c.Lease.MaxDriftRate = 0 },
	} {
		cand := m.best
		edit(&cand.Config)
		if cand.Config == m.best.Config || cand.Config.Clients > m.best.Config.Clients || cand.Validate() != nil {
			continue
		}
		if _, ok := m.fails(&cand); ok {
			m.best.Config, changed = cand.Config, true
		}
	}
	if m.renameParties() {
		changed = true
	}
	if m.trueClocks() {
		changed = true
	}
	for i := range m.best.Actions {
		for _, d := range rounder(&m.best.Actions[i], m.best.Config.Lease) {
			next := slices.Clone(m.best.Actions)
			if next[i].D = d; m.best.Actions[i].D != d && m.try(next) {
				changed = true
				break
			}
		}
		if i+1 >= len(m.best.Actions) {
			break
		}
	}
	return changed
}

// trueClocks clears the rates that play no part.
func (m *minimizer) trueClocks() (changed bool) {
	for i := 0; i < len(m.best.Actions); i++ {
		for n, r := range m.best.Actions[i].Rates {
			if r == 0 || i >= len(m.best.Actions) {
				continue
			}
			next := slices.Clone(m.best.Actions)
			next[i].Rates[n] = 0
			changed = m.try(next) || changed
		}
	}
	return changed
}

// renameParties lets the first clients and raw parties play the parts, so that the
// others can go.
func (m *minimizer) renameParties() (changed bool) {
	for _, group := range [][2]model.Node{{firstClient, firstClient + MaxClients}, {firstRaw, firstRaw + MaxRaw}} {
		for to := group[0]; to < group[1]; to++ {
			for from := to + 1; from < group[1] && !m.mentions(to); from++ {
				if !m.mentions(from) {
					continue
				}
				cand := m.best
				cand.Actions = slices.Clone(m.best.Actions)
				cand.Config.Offsets[to], cand.Config.Offsets[from] = cand.Config.Offsets[from], cand.Config.Offsets[to]
				for i := range cand.Actions {
					a := &cand.Actions[i]
					for _, n := range []*model.Node{&a.Who, &a.Peer, &a.As.Node} {
						if *n == from {
							*n = to
						}
					}
					a.Rates[to], a.Rates[from] = a.Rates[from], a.Rates[to]
				}
				if _, ok := m.fails(&cand); ok {
					m.best, changed = cand, true
				}
			}
		}
	}
	return changed
}

func (m *minimizer) mentions(n model.Node) bool {
	return slices.ContainsFunc(m.best.Actions, func(a Action) bool {
		return a.Who == n || a.Peer == n || a.As.Node == n || a.Rates[n] != 0
	})
}

// rounder are durations that a reader takes in more easily than a's, the
// easiest first.
func rounder(a *Action, cfg lease.Config) []time.Duration {
	if a.Kind != Advance && a.Kind != Calm {
		return nil
	}
	var out []time.Duration
	for _, d := range []time.Duration{cfg.TTL, cfg.SafeWindow(), cfg.RenewAfter(), cfg.Retry(), a.D.Round(time.Second), a.D.Round(100 * time.Millisecond)} {
		if d == a.D {
			return out
		}
		if d > 0 && d <= maxAdvance {
			out = append(out, d)
		}
	}
	return out
}
