// Package lifelike makes the histories that a lease service would have left
// behind: a store with a drifting clock that restarts, clients that renew, stop,
// are cut off and come back, a storage under fencing tokens, and a network that
// loses, delays and copies. Every history is legal by construction, unless one of
// the named [Bugs] is planted in it.
//
// It must not know how histories are judged: it shares no code with a checker
// or with its models, and uses linearizability for the form of an event alone.
// The rules are those of Gray & Cheriton, "Leases" (1989), and Kleppmann, "How to
// do distributed locking" (2016).
//
// Start at [Config]; [Config.Events] runs it as a stream, [Config.History] at
// once, and [Proof] says by which two or three events a history is broken.
package lifelike

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"fencepost/linearizability"
)

// Config says what service to simulate, and under which faults. Equal Configs
// make equal histories. The zero value of a field is its simplest choice; those
// that must not be 0 have a default.
type Config struct {
	Seed uint64
	// Operations to call, by clients. Beliefs, faults, restarts, deletions, and
	// the copies a network makes come on top. Default 500.
	Operations int
	Leases     int // resources, each with its own clients and storage; default 1
	Clients    int // of each lease; default 5

	// TTLs, of which each acquire and renewal asks for one. Default one second.
	TTLs []time.Duration
	// Drift bounds the rate error of the store's clock, in parts per billion.
	// The rate wanders within the bound, and often stands at it.
	Drift int64
	// Early and Late bound how long before and after its time a lease lapses.
	// Late linearizability.Unbounded promises nothing: it comes up to four TTLs
	// late.
	Early, Late time.Duration
	LockDelay   time.Duration
	// Eps is the error of time stamps: above 0 the history is merged from
	// several recorders, whose clocks are that far off.
	Eps             time.Duration
	Tokens          linearizability.TokenRule // default TokensNext; TokensNone: no storage
	First           uint64                    // the first token, in Meta; 0: some other, which Meta does not tell
	Anchor          linearizability.Anchor    // default AnchorGrant; AnchorCall: acquires queue, and their TTL starts meanwhile
	RenewAfterLapse bool

	Storage bool // clients write to a storage under their token
	Leads   bool // beliefs are on record
	Barrier bool // clients fence the storage before they lead

	// The chances, from 0 to 1, that an operation meets a fault.
	Unknown    float64 // its outcome stays unknown: lost request, lost reply, or landed much later
	Duplicates float64 // the network copies it, and the copy lands as well
	Restarts   float64 // the store restarts, or the storage
	Deletes    float64 // an operator deletes the lease
	Crashes    float64 // of a belief: the leader is gone, and nobody records when it ended

	// Bug is the Name of the one of Bugs to plant; "" for none. Bug.In sets it
	// along with what it needs.
	Bug string
}

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.Operations, 500)
	def(&c.Leases, 1)
	def(&c.Clients, 5)
	if len(c.TTLs) == 0 {
		c.TTLs = []time.Duration{time.Second}
	}
	if c.Tokens == "" {
		c.Tokens = linearizability.TokensNext
	}
	if c.Anchor == "" {
		c.Anchor = linearizability.AnchorGrant
	}
	if c.Tokens == linearizability.TokensNone {
		c.Storage, c.Barrier, c.First = false, false, 0
	}
	c.Barrier = c.Barrier && c.Storage
	return c
}

// Validate says what cannot be simulated.
func (c Config) Validate() error {
	c = c.withDefaults()
	shortest := slices.Min(c.TTLs)
	switch {
	case shortest < time.Millisecond || slices.Max(c.TTLs) > time.Minute:
		return fmt.Errorf("lifelike: TTLs %v: want each from 1ms to 1m", c.TTLs)
	case c.Drift < 0 || c.Drift > 500_000_000:
		return fmt.Errorf("lifelike: Drift %d: want 0 to 500000000 parts per billion", c.Drift)
	case c.Drift > 0 && int64(shortest)/1e6*c.Drift < 1e3:
		// A bound below the nanosecond leaves no instant for a lapse to be at.
		return fmt.Errorf("lifelike: Drift %d: want 0, or enough to matter within a TTL of %v", c.Drift, shortest)
	case c.LockDelay > 0 && c.Drift > 0 && int64(c.LockDelay)/1e6*c.Drift < 1e3:
		return fmt.Errorf("lifelike: Drift %d: want 0, or enough to matter within a lock delay of %v", c.Drift, c.LockDelay)
	case c.Early < 0 || c.Late < 0 || c.LockDelay < 0 || c.Eps < 0:
		return fmt.Errorf("lifelike: Early %v, Late %v, LockDelay %v, Eps %v: want none below 0", c.Early, c.Late, c.LockDelay, c.Eps)
	case c.Early >= shortest/2:
		return fmt.Errorf("lifelike: Early %v: want less than half a TTL of %v, or nobody can lead", c.Early, shortest)
	}
	if c.Bug != "" && !slices.ContainsFunc(Bugs, func(b Bug) bool { return b.Name == c.Bug }) {
		return fmt.Errorf("lifelike: no bug %q: Bugs lists them", c.Bug)
	}
	return nil
}

// Meta is what the recording promises.
func (c Config) Meta() linearizability.Meta {
	c = c.withDefaults()
	m := linearizability.DefaultMeta()
	m.Drift, m.Early, m.Late, m.Eps = c.Drift, int64(c.Early), int64(c.Late), int64(c.Eps)
	m.Tokens, m.First, m.Anchor = c.Tokens, c.First, c.Anchor
	m.LockDelay, m.RenewAfterLapse, m.Barrier = int64(c.LockDelay), c.RenewAfterLapse, c.Barrier
	return m
}

// Events runs the simulation and yields what is recorded, in the order of the
// recording. Memory does not grow with the operations, but for a stamp of each
// process where time stamps have an error. It panics on a Config that Validate
// refuses.
func (c Config) Events() iter.Seq[linearizability.Event] {
	return func(yield func(linearizability.Event) bool) {
		if err := c.Validate(); err != nil {
			panic(err)
		}
		w := newWorld(c.withDefaults(), yield)
		w.run()
	}
}

// History runs the simulation to its end.
func (c Config) History() linearizability.History {
	name := fmt.Sprintf("lifelike-%d", c.Seed)
	if c.Bug != "" {
		name += "-" + c.Bug
	}
	return linearizability.History{Name: name, Meta: c.Meta(), Events: slices.Collect(c.Events())}
}

// source is the one source of chance.
func (c Config) source() *rand.Rand { return rand.New(rand.NewPCG(c.Seed, 0x6c656173652d6f6e)) }
