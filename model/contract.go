package model

import "strings"

// Promise is what a lease store says of itself where correct stores differ. The
// zero Promise is the strictest. Durations are in ns of the store's clock.
type Promise struct {
	// Tokens is the rule for the token of a new ownership, TokensNext or
	// TokensRising.
	Tokens TokenRule
	// Granularity: TTLs are rounded up to a multiple of it, and what is said to
	// remain is rounded either way; 0: exact.
	Granularity int64
	// MinTTL: shorter TTLs are refused as invalid, or raised to it.
	MinTTL int64
	// LockDelay is how long after a lapse nobody is granted the lease.
	LockDelay int64
	// Late is how long after its TTL a tenure may still be held.
	Late int64
	// RenewAfterLapse lets the last owner renew what nobody else took.
	RenewAfterLapse bool
	// SteadyClock: the store's clock goes on over a restart.
	SteadyClock bool
	// Terse allows refusals without details.
	Terse bool
}

// Ask is a request to a lease store, at an instant of its own clock.
type Ask struct {
	Op    Op // acquire, renew, release or get
	Owner Owner
	Token uint64 // renew, release
	TTL   int64  // acquire, renew; ns
	At    int64  // ns, from 0
}

// Said is what the store answered.
type Said struct {
	Code   Code
	Token  uint64 // granted, or of whoever is said to hold it, or the last one issued; 0: not said
	Holder Owner  // for whom a grant is, or who is said to hold it; nobody: not said, or nobody does
	// TTL is how long a grant is said to last, in ns.
	TTL int64
	// Remaining is how long a refusal says that it will stand, in ns; 0: not said.
	Remaining int64
}

// Breach is an answer that no correct store gives.
type Breach struct {
	Rule Rule
	// Want is what a correct store would have answered, and why, in a few
	// words. It calls node 1 a, node 2 b, and so on, and their further
	// incarnations a.2; see Named for other names.
	Want string
	// SteadyClock is that of the Promise that was broken.
	SteadyClock bool

	pattern       string // Want, with marks for the two
	holder, asker Owner
}

// Named is b.Want with the names that name gives.
func (b Breach) Named(name func(Owner) string) string {
	return strings.NewReplacer(ownerMark, name(b.holder), askerMark, name(b.asker)).Replace(b.pattern)
}

// Says is what the rule says of a store with this promise: see [Rule.Says].
func (b Breach) Says() string {
	if s := steadySays(b.Rule); b.SteadyClock && s != "" {
		return s
	}
	return b.Rule.Says()
}

const (
	ownerMark = "\x00"
	askerMark = "\x01"
)

// Contract judges the answers of one lease of a store that is asked one thing
// at a time, by its Promise: which are allowed, and which rule the others
// break. It is a value.
//
// It knows what the answers so far have shown, and no more: where the promise
// leaves open when a tenure ends, any instant of an interval will do, until an
// answer narrows it; once told of, a lapse is final. Instants are whole
// nanoseconds, and between two requests at one of them no time passes.
type Contract struct {
	Promise Promise

	token uint64  // the last one issued
	phase tenancy // how the last tenure stands
	owner Owner   // of the last tenure

	// The tenure may still run; then it ends at an instant from sure to may.
	// Or its lapse is on record, and came at an instant in one of lapses. Only a
	// restart leaves both open: the store may have written a lapse down before it
	// and told nobody.
	runs      bool
	sure, may int64
	lapses    [2]instants
	nlapses   uint8

	// The largest TTL of the tenure, that was said and that may be kept: what
	// a restart lets run again.
	said, kept int64

	// All else only tells which rule an answer breaks.
	upheaval  upheaval // the last one since the last new ownership
	restarted bool     // since the tenure was extended or ended
	began     int64    // when the tenure was last extended
	promised  int64    // until when, if that extension were all
	before    int64    // until when it was sure to last before that
}

// tenancy is how the last tenure of a lease stands, as far as answers tell.
type tenancy uint8

const (
	neverHeld tenancy = iota
	tenured           // held, or lapsed
	released
	deleted
)

// upheaval is what a counter of tokens may not survive.
type upheaval uint8

const (
	noUpheaval upheaval = iota
	restart
	deletion
)

// instants are those from lo to hi, both included.
type instants struct{ lo, hi int64 }

// NewContract is the contract of a lease that nobody ever held.
func NewContract(p Promise) Contract { return Contract{Promise: p} }

// Judge takes the answer to q into account, and says which rule it breaks, if
// any does. An answer that breaks one changes nothing: what a store with a
// fault does next follows from no rule. The instants of requests never fall
// between one Restart and the next. It allocates nothing unless a rule is
// broken.
func (c *Contract) Judge(q Ask, a Said) (b Breach, broken bool) {
	before := *c
	rule := c.take(&q, &a)
	if rule == NoRule {
		return Breach{}, false
	}
	*c = before
	if rule == anyRule {
		rule = c.blame(&q, &a)
	}
	return c.breach(rule, q, a), true
}

// Restart is the store coming back from durable state with a clock that reads
// now, after a crash at which the clock before read crashed. A tenure that may
// still be held is held for its largest TTL from now; a lapse that somebody was
// told of stays, and its lock delay starts anew. Where the tenure may have lapsed
// by the crash and nobody was told, it is either: a store may have put the lapse
// on record by itself, by a timer or while it answered somebody else. Where the
// Promise is that the clock goes on, all ends when it would have.
func (c *Contract) Restart(crashed, now int64) {
	c.upheaval, c.restarted = restart, true
	if c.Promise.SteadyClock {
		return
	}
	onRecord := c.canLapse(crashed)
	if c.runs {
		c.sure, c.may = saturate(now, c.said), saturate(saturate(now, c.kept), c.Promise.Late)
	}
	c.began, c.promised, c.before = now, now, now
	if onRecord {
		c.lapses[0], c.nlapses = instants{now, now}, 1
	}
}

// Delete is an operator deleting the lease.
func (c *Contract) Delete() {
	c.upheaval = deletion
	c.free(deleted)
}

// MayBeFree reports whether the answers so far allow that nobody holds the lease
// at an instant.
func (c *Contract) MayBeFree(at int64) bool { return !c.mustHold(at) }

// free ends the tenure without a lapse.
func (c *Contract) free(how tenancy) {
	c.phase, c.runs, c.nlapses, c.restarted = how, false, 0, false
}

// canHold reports whether the lease may be held at t.
func (c *Contract) canHold(t int64) bool { return c.phase == tenured && c.runs && t < c.may }

// mustHold reports whether it certainly is.
func (c *Contract) mustHold(t int64) bool { return c.canHold(t) && t < c.sure && c.nlapses == 0 }

// canLapse reports whether the tenure may have lapsed by t.
func (c *Contract) canLapse(t int64) bool {
	return c.phase == tenured && (c.nlapses > 0 || c.runs && t >= c.sure)
}

// holds makes it known that the lease is held at t.
func (c *Contract) holds(t int64) {
	c.nlapses = 0
	if c.Promise.LockDelay > 0 {
		// Without a lock delay nothing depends on the instant of the lapse but
		// the answers themselves, which are only told to follow each other.
		c.sure = max(c.sure, saturate(t, 1))
	}
}

// record adds the lapse that may have come by t, sure <= t, to those on record.
func (c *Contract) record(t int64) {
	s := instants{c.sure, min(c.may, t)}
	for i := range c.nlapses {
		if have := &c.lapses[i]; s.lo <= saturate(have.hi, 1) && have.lo <= saturate(s.hi, 1) {
			have.lo, have.hi = min(have.lo, s.lo), max(have.hi, s.hi)
			return
		}
	}
	if int(c.nlapses) < len(c.lapses) {
		c.lapses[c.nlapses] = s
		c.nlapses++
	}
}

// lapsed makes it known that the tenure had lapsed by t, which canLapse.
func (c *Contract) lapsed(t int64) {
	if c.runs {
		c.restarted = false
		if t >= c.sure {
			c.record(t)
		}
	}
	c.runs = false
}

// delays keeps of the lapses on record those whose lock delay runs at t, and
// reports whether any is left.
func (c *Contract) delays(t int64) bool {
	n := uint8(0)
	for _, s := range c.lapses[:c.nlapses] {
		if t < saturate(s.hi, c.Promise.LockDelay) {
			c.lapses[n] = instants{max(s.lo, t-c.Promise.LockDelay+1), s.hi}
			n++
		}
	}
	c.nlapses = n
	return n > 0
}

// delayOver reports whether the lock delay of any lapse on record may be over
// at t.
func (c *Contract) delayOver(t int64) bool {
	for _, s := range c.lapses[:c.nlapses] {
		if t >= saturate(s.lo, c.Promise.LockDelay) {
			return true
		}
	}
	return false
}

// delayLeft is the bounds of what is left of the lock delay at t, if it runs.
func (c *Contract) delayLeft(t int64) (lo, hi int64) {
	lo = Unbounded
	for _, s := range c.lapses[:c.nlapses] {
		lo = min(lo, saturate(s.lo, c.Promise.LockDelay)-t)
		hi = max(hi, saturate(s.hi, c.Promise.LockDelay)-t)
	}
	return max(lo, 1), hi
}

// keeps is how long a store may keep a lease that was asked for ttl.
func (p *Promise) keeps(ttl int64) int64 {
	ttl = max(ttl, p.MinTTL)
	if g := p.Granularity; g > 1 && ttl%g != 0 {
		ttl = saturate(ttl-ttl%g, g)
	}
	return ttl
}
