package explore

import (
	"errors"
	"fmt"
	"math"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/sim"
)

// Grain is the unit that every instant of an explored world is a multiple of.
// Its length means nothing: only ratios count. This one makes counterexamples
// that read like real life.
const Grain = 100 * time.Millisecond

// Faults are what may happen besides the passing of time, ticks and deliveries.
type Faults uint16

// The faults.
const (
	Loss         Faults = 1 << iota // any message is lost
	Duplication                     // any message is copied
	Drifting                        // each clock runs slow, true or fast, anew in every tick
	Writes                          // whoever leads writes, at any moment
	Resignation                     // whoever leads resigns, at any moment
	Work                            // leaders begin work that outlasts a resignation, and end it
	ClientCrash                     // clients crash and come back
	StoreCrash                      // the store does
	StorageCrash                    // the storage does
	Suspension                      // clients are suspended: their monotonic clocks stand still
	Deletion                        // an operator deletes the lease
	WallJumps                       // the wall clocks of clients jump
	faultsEnd
)

// DefaultFaults are those of the main job.
const DefaultFaults = Loss | Duplication | Drifting | Writes | Resignation

var faultNames = [...]string{"loss", "duplication", "drift", "writes", "resign", "work", "client-crash", "store-crash", "storage-crash", "suspend", "delete", "jump"}

// ParseFaults reads names as [Faults.Names] gives them. The error lists the
// names there are.
func ParseFaults(names []string) (f Faults, err error) {
next:
	for _, name := range names {
		for i, n := range faultNames {
			if n == name {
				f |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("there is no fault %q; there are %v", name, faultNames)
	}
	return f, nil
}

// Names are the names of the faults in f.
func (f Faults) Names() (names []string) {
	for i, n := range faultNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// Options are the worlds to explore, and how far.
type Options struct {
	// Subject is what runs: [sim.Builtin], a planted bug, or rules of one's own.
	Subject sim.Subject
	// Clients are 1 to [sim.MaxClients].
	Clients int
	// TTL and LockDelay are in ticks. A tick is the time that passes at once:
	// Drift grains of the store's clock.
	TTL, LockDelay int
	// Drift is n where clocks keep the bound of 1/n: in each tick the clock of
	// each client counts n-1, n or n+1 grains. It divides a million; 1 and 0
	// stand for true clocks, for which a tick has four grains.
	Drift int
	// Messages is how many may be in flight; a send beyond it is a loss.
	Messages int
	// Keys is how many keys of the storage leaders write to, 1 at the least.
	Keys int
	// Barrier lets leaders fence before they lead.
	Barrier bool
	Faults  Faults
	// Judged are the invariants to judge; the empty set stands for all that can
	// be judged here, lockstep excepted, see [Judgeable].
	Judged model.Set
	// Reductions default to all of them.
	Reductions sim.Reductions
	// Presume applies [sim.Irrelevance] to the subject as if its rules were the
	// built-in ones, and so shows what a fault in those would come to.
	Presume bool

	// MaxStates, MaxMemory (bytes) and MaxDepth bound the search; 0: no bound.
	MaxStates, MaxMemory uint64
	MaxDepth             int
	// Workers is how many goroutines search; 0: as many as there are cores.
	Workers  int
	Progress *model.ExploreProgress
}

// Default is the main job: two clients and two messages in flight.
func Default() Options {
	return Options{Subject: sim.Builtin(), Clients: 2, TTL: 4, Drift: 4, Messages: 2, Keys: 1, Faults: DefaultFaults}
}

// Judgeable are the invariants that exploration can judge: all but
// linearizability, which looks at whole histories. Lockstep implies it for the
// store and the storage here, since both are single nodes.
var Judgeable = func() (s model.Set) {
	for v := range model.Invariants() {
		if v != model.Linearizability {
			s |= model.SetOf(v)
		}
	}
	return s
}()

// grains is how many grains a tick has.
func (o *Options) grains() int {
	if o.Drift < 2 {
		return 4
	}
	return o.Drift
}

// Tick is how much time passes at once.
func (o *Options) Tick() time.Duration { return time.Duration(o.grains()) * Grain }

// Config is the set-up of the explored worlds.
func (o *Options) Config() sim.Config {
	ttl := time.Duration(o.TTL) * o.Tick()
	l := lease.Config{TTL: ttl, RetryInterval: Grain, LockDelay: time.Duration(o.LockDelay) * o.Tick(), Barrier: o.Barrier}
	if o.Drift >= 2 {
		l.MaxDriftRate = 1 / float64(o.Drift)
	}
	// A whole number of grains, near a third of the window.
	window := l.SafeWindow()
	if after := (window / 3).Round(Grain); window > 0 && after > 0 && after < window {
		l.RenewFraction = float64(after) / float64(window)
	}
	return sim.Config{Clients: o.Clients, Lease: l, Messages: o.Messages}
}

// ErrOptions marks options that make no sense.
var ErrOptions = errors.New("cannot be explored")

// Validate returns an error that matches [ErrOptions] and says what to change,
// or nil.
func (o *Options) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...)
	}
	switch {
	case o.Clients < 1 || o.Clients > sim.MaxClients:
		return bad("%d clients are not between 1 and %d", o.Clients, sim.MaxClients)
	case o.Messages < 1 || o.Messages > sim.MaxMessages:
		return bad("%d messages are not between 1 and %d", o.Messages, sim.MaxMessages)
	case o.TTL < 1 || o.TTL > 64:
		return bad("a TTL of %d ticks is not between 1 and 64", o.TTL)
	case o.LockDelay < 0 || o.LockDelay > 64:
		return bad("a lock delay of %d ticks is not between 0 and 64", o.LockDelay)
	case o.Keys < 1 || o.Keys > model.Keys:
		return bad("%d keys are not between 1 and %d", o.Keys, model.Keys)
	case o.Drift < 0 || o.Drift > 20 || o.Drift > 1 && 1_000_000%o.Drift != 0:
		return bad("a drift bound of 1/%d: the %d must be 1 (true clocks) or one of 2, 4, 5, 8, 10, 16 and 20, so that slow, true and fast clocks count whole units", o.Drift, o.Drift)
	case o.Faults&Drifting != 0 && o.Drift < 2:
		return bad("clocks that drift need a bound of 1/2 or less: set Drift to 2 or more")
	case o.MaxDepth < 0:
		return bad("a depth of %d", o.MaxDepth)
	case o.Subject.Store == nil || o.Subject.Client == nil || o.Subject.Storage == nil:
		return bad("the subject lacks a store, a client or a storage")
	}
	if _, ok := o.Subject.Store.(sim.Opaque); ok {
		return bad("the store of subject %q keeps its state to itself, where no search can go back to it: run schedules against it, or offer rules that keep all they know in a StoreState", o.Subject.Name)
	}
	cfg := o.Config()
	if err := cfg.Validate(); err != nil {
		return bad("%v", err)
	}
	return nil
}

// calm is the fair time that every state is given to find a leader: messages
// take a grain, clients run every tick, unless the window is too short for
// that.
func (o *Options) calm() (a sim.Action, promised bool) {
	cfg := o.Config()
	window := cfg.Lease.SafeWindow()
	a = sim.Action{ID: math.MaxInt32, Kind: sim.Calm, Delay: Grain, Every: o.Tick()}
	for 4*a.Delay+a.Every >= window {
		switch {
		case a.Every > Grain:
			a.Every = Grain
		case a.Delay > 0:
			a.Delay = 0
		default:
			return a, false
		}
	}
	a.D = 3*(cfg.Lease.TTL+cfg.Lease.LockDelay) + 8*o.Tick() + 16*a.Delay
	return a, true
}
