package lifelike

import "time"

// Bug is a fault of a lease service, its clients or its storage that can be
// planted in a history.
type Bug struct {
	Name string
	Doc  string // what is done wrong; once, where it does not say otherwise
	// Names are the verdicts of which at least one is to name it: the model
	// ("lease", "storage") whose answers have no order, or an invariant.
	Names []string
	needs func(*Config) // what must be simulated for it to have an opportunity
}

// In returns c with the bug planted in it, and with what the bug needs.
func (b Bug) In(c Config) Config {
	c = c.withDefaults()
	c.Bug = b.Name
	if b.needs != nil {
		b.needs(&c)
	}
	return c
}

// Bugs are those that can be planted. It is a table: it does not change.
var Bugs = []Bug{
	{"grants-early", "the store grants a lease to another within the last third of its TTL", []string{"lease", "belief-safety"}, nil},
	{"delay-ignored", "the store grants a lapsed lease within the lock delay", []string{"lease"}, lockDelay},
	{"lapses-late", "the store says that a lease is held which must have lapsed", []string{"lease"}, nil},
	{"lapse-forgotten", "the store gives a lease back after a restart whose lapse it had told", []string{"lease"}, restarts},
	{"token-reused", "the store grants a released lease under the same token", []string{"lease", "token-monotonicity"}, nil},
	{"token-skips", "the store leaves out a token", []string{"lease", "token-monotonicity"}, nil},
	{"token-falls", "the store grants a token that it had granted before", []string{"lease", "token-monotonicity"}, nil},
	{"renew-unchecked", "the store accepts a renewal by somebody who does not hold the lease", []string{"lease"}, nil},
	{"renew-not-applied", "the store accepts all renewals of one tenure and forgets them", []string{"lease", "belief-safety"}, nil},
	{"renew-shortens", "the store lets a renewal with a shorter TTL shorten the lease", []string{"lease", "belief-safety"}, twoTTLs},
	{"refused-while-held", "the store tells the holder that its lease has lapsed", []string{"lease"}, nil},
	{"release-unchecked", "the store lets somebody release a lease who does not hold it", []string{"lease", "belief-safety"}, nil},
	{"get-stale", "the store names the holder before", []string{"lease"}, nil},
	{"stale-lands", "the storage lets a write land under a token below the highest it has seen", []string{"storage", "storage-safety"}, storages},
	{"highest-forgotten", "the storage restarts without the highest token it has seen", []string{"storage", "storage-safety"}, storages},
	{"write-lost", "the storage accepts a write and forgets it", []string{"storage"}, storages},
	{"overstays", "a leader believes in its lease beyond its window", []string{"belief-safety"}, leads},
	{"leads-unheld", "a client reads who holds the lease, and leads under that token", []string{"belief-safety", "belief-implies-ownership", "continuity"}, leads},
	{"borrows-token", "a client reads who holds the lease, and writes under that token", []string{"attribution"}, storages},
	{"no-barrier", "clients lead before they have fenced their storage, from some time on", []string{"barrier"}, barrier},
}

func storages(c *Config)  { c.Storage, c.Restarts = true, max(c.Restarts, 0.01) }
func leads(c *Config)     { c.Leads = true }
func barrier(c *Config)   { c.Storage, c.Leads, c.Barrier = true, true, true }
func restarts(c *Config)  { c.Restarts = max(c.Restarts, 0.03); lockDelay(c) }
func lockDelay(c *Config) { c.LockDelay = max(c.LockDelay, c.TTLs[0]/2) }

func twoTTLs(c *Config) {
	if len(c.TTLs) == 1 {
		c.TTLs = []time.Duration{c.TTLs[0], c.TTLs[0] / 4}
	}
}
