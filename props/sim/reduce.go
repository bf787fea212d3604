package sim

import (
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Reductions are the ways in which worlds that differ are taken for one. Each
// must be sound: worlds with one key go on alike, whatever happens to them.
type Reductions uint8

const (
	// TimeShift counts instants from now. Without it no state comes back.
	TimeShift Reductions = 1 << iota
	// Saturation takes instants so long past that nobody can tell them apart
	// for one.
	Saturation
	// TokenRanks keeps the order of the tokens that something still refers to,
	// and not their distance. It is unsound, and not applied, where the store's
	// counter is not the highest of them.
	TokenRanks
	// IncarnationRanks does so for the incarnations of each client.
	IncarnationRanks
	// Symmetry forgets which of the clients is which. It needs IncarnationRanks
	// and MessageOrder.
	Symmetry
	// MessageOrder forgets in which order messages were sent.
	MessageOrder
	// Irrelevance leaves out what no built-in rule looks at again: replies that
	// the client will ignore, the rest of a lease that cannot come back, how far
	// below every token in use the highest seen is. It applies to the built-in
	// rules alone, and needs IncarnationRanks and Saturation.
	Irrelevance

	AllReductions = TimeShift | Saturation | TokenRanks | IncarnationRanks | Symmetry | MessageOrder | Irrelevance
)

var reductionNames = [...]string{"time-shift", "saturation", "token-ranks", "incarnation-ranks", "symmetry", "message-order", "irrelevance"}

// String is the names, apart by commas.
func (r Reductions) String() string {
	var names []string
	for i, name := range reductionNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// All are the reductions of the set, each by itself.
func (r Reductions) All() (each []Reductions) {
	for i := range reductionNames {
		if r&(1<<i) != 0 {
			each = append(each, 1<<i)
		}
	}
	return each
}

// Meaning says what a number in a [Scratch] is, so that a key can leave out of
// it what does not matter.
type Meaning uint8

// The meanings. A number is kept as it is.
const (
	MeansNumber  Meaning = iota
	MeansInstant         // on the clock of the node itself; zero is none
	MeansSending         // in a store, an instant on the clock of the client Who; without Saturation
	MeansToken
	MeansGrant // a token that was granted to the Who of the Scratch
	MeansValue // of the key with the number's index
)

// ClockName says which of a node's clocks its rules read.
type ClockName uint8

// The clocks.
const (
	BootClock ClockName = iota
	MonotonicClock
	WallClock
)

// Layout is what the key of a World must know of rules that keep more than the
// built-in ones. The zero Layout is theirs.
type Layout struct {
	ClientClock              ClockName
	Client, StoreN, StorageN [4]Meaning // of Scratch.N
	// Unsound are the reductions that do not hold for these rules.
	Unsound Reductions
}

// Flaw makes a key wrong on purpose, to show that a test of keys would notice.
type Flaw uint8

// The flaws.
const (
	NoFlaw        Flaw = iota
	ForgetsAges        // when the requests in flight were sent
	ForgetsSeen        // what the storage has seen
	RanksAnything      // ranks tokens where that is unsound
	ForgetsFenced      // under what the monitor saw somebody lead behind the barrier
	ForgetsLed         // under which tokens it saw anybody lead
)

// Space is the worlds of one set-up, up to what no rule and no judgement can
// tell apart. It is for one goroutine.
//
// Keys are for worlds as exploration meets them: no raw request in flight, the
// values written are 0 and 1, and each clock kept the bound of the
// configuration against the store's since each request was sent.
type Space struct {
	setup *setup
	red   Reductions
	flaw  Flaw
	grain grain
	keys  int
	// What of the subject is built in, so that Irrelevance applies to it.
	tightStore, tightClient, tightStorage bool
	readsSent                             bool // a store that reads when requests were sent, which it should not
	storeCrashes                          bool
	lockstep                              bool
	clients                               int
	clientClock                           ClockName
	window, full, delay                   int64 // of the client, TTL and lock delay, in ns
	loose                                 int64 // after which instants saturate for rules that are not built in

	template World
	c        codec
}

// SpaceOptions say what worlds there are.
type SpaceOptions struct {
	Reductions Reductions
	// Grain divides every instant that occurs; others cost room in the key.
	Grain time.Duration
	// Keys is how many keys of the storage are written to.
	Keys int
	// StoreCrashes says that the store may crash and come back.
	StoreCrashes bool
	// Presume takes whatever runs for the built-in rules, where Irrelevance asks.
	Presume bool
	Flaw    Flaw
}

// NewSpace is the space of the worlds that w is the beginning of.
func NewSpace(w *World, o SpaceOptions) *Space {
	sp := &Space{setup: w.setup, red: o.Reductions &^ w.setup.subject.Layout.Unsound, grain: newGrain(o.Grain), keys: o.Keys, storeCrashes: o.StoreCrashes}
	l := &w.setup.cfg.Lease
	sp.clients, sp.clientClock, sp.lockstep = w.setup.cfg.Clients, w.setup.subject.Layout.ClientClock, w.setup.opts.Lockstep
	sp.window, sp.full, sp.delay = int64(l.SafeWindow()), int64(l.TTL), int64(l.LockDelay)
	sp.loose = 2*sp.full + sp.delay
	if sp.flaw = o.Flaw; sp.flaw == RanksAnything {
		sp.red |= TokenRanks
	}
	sp.readsSent = slices.Contains(w.setup.subject.Layout.StoreN[:], MeansSending)
	if sp.readsSent {
		sp.red &^= Saturation // it compares instants of two clocks, which drift apart without end
	}
	if need := IncarnationRanks | MessageOrder; sp.red&need != need {
		sp.red &^= Symmetry
	}
	if need := IncarnationRanks | Saturation; sp.red&need != need {
		sp.red &^= Irrelevance
	}
	if sp.red&Irrelevance != 0 {
		_, sp.tightStore = w.setup.subject.Store.(Store)
		_, sp.tightClient = w.setup.subject.Client.(Client)
		_, sp.tightStorage = w.setup.subject.Storage.(Storage)
		if o.Presume {
			sp.tightStore, sp.tightClient, sp.tightStorage = true, true, true
		}
		if w.setup.opts.Lockstep {
			sp.tightStore, sp.tightStorage = false, false // the specification looks closer
		}
	}
	sp.template.begin(w.setup)
	sp.c.sp = sp
	return sp
}

// Reductions are those that are applied.
func (sp *Space) Reductions() Reductions { return sp.red }

// grain makes small numbers of durations.
type grain struct {
	unit    int64
	shift   int
	inverse uint64 // of the odd part of unit, modulo 2^64
	most    uint64
}

func newGrain(d time.Duration) grain {
	g := grain{unit: max(int64(d), 1)}
	g.shift = bits.TrailingZeros64(uint64(g.unit))
	odd := uint64(g.unit) >> g.shift
	g.inverse = odd // correct to 3 bits; each step doubles them (Newton)
	for range 5 {
		g.inverse *= 2 - odd*g.inverse
	}
	g.most = (1 << 62) / uint64(g.unit)
	return g
}

// divide gives x in units, and whether it is a whole number of them. An exact
// division is a multiplication by the inverse: what is not a multiple comes
// out too large.
func (g *grain) divide(x uint64) (uint64, bool) {
	q := bits.RotateLeft64(x*g.inverse, -g.shift)
	return q, q <= g.most
}

// CopyFrom makes w equal to o, as an assignment does, but leaves out what the
// run counted, what lockstep found, and whatever o has no use for.
func (w *World) CopyFrom(o *World) {
	w.frame = o.frame
	n := o.setup.cfg.Clients
	copy(w.nodes[:firstClient], o.nodes[:firstClient])
	copy(w.nodes[firstClient:], o.nodes[firstClient:int(firstClient)+n])
	copy(w.clients[:n], o.clients[:n])
	copy(w.msgs[:o.nmsgs], o.msgs[:o.nmsgs])
	w.monitor.CopyFrom(&o.monitor)
}

// used is how many nodes, nobody included, exploration has.
func (sp *Space) used() int { return int(firstClient) + sp.setup.cfg.Clients }
