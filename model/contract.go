package model

import "strings"

// Promise is what a lease store says of itself where correct stores differ. The
// zero Promise is the strictest. Durations are in ns of the store's clock.
type Promise struct {
	// Tokens is the rule for the token of a new ownership, TokensNext or
	// TokensRising.
	Tokens TokenRule
	// Granularity: TTLs are rounded up to a multiple of it; 0: exact.
	Granularity int64
	// MinTTL: shorter TTLs are refused as invalid, or raised to it.
	MinTTL int64
	// LockDelay is how long after a lapse nobody is granted the lease.
	LockDelay int64
	// Late is how long after its TTL a tenure may still be held.
	Late int64
	// RenewAfterLapse lets the last owner renew what nobody else took.
	RenewAfterLapse bool
	// Terse allows refusals without details.
	Terse bool
}

// Ask is a request to a lease store, at an instant of its own clock.
type Ask struct {
	Op    Op // acquire, renew, release or get
	Owner Owner
	Token uint64 // renew, release
	TTL   int64  // acquire, renew; ns
	At    int64  // ns
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

	pattern string // Want, with ownerMark for the holder
	holder  Owner
}

// Named is b.Want with the names that name gives.
func (b Breach) Named(name func(Owner) string) string {
	return strings.ReplaceAll(b.pattern, ownerMark, name(b.holder))
}

const ownerMark = "\x00"

// Contract judges the answers of one lease of a store that is asked one thing
// at a time, by its Promise: which are allowed, and which rule the others
// break. It is a value.
type Contract struct {
	Promise Promise
}

// NewContract is the contract of a lease that nobody ever held.
func NewContract(p Promise) Contract { return Contract{Promise: p} }

// Judge takes the answer to q into account, and says which rule it breaks, if
// any does.
func (c *Contract) Judge(q Ask, a Said) (b Breach, broken bool) { panic("not yet") }

// Restart is the store coming back from durable state with a clock that reads
// now.
func (c *Contract) Restart(now int64) { panic("not yet") }

// Delete is an operator deleting the lease.
func (c *Contract) Delete() { panic("not yet") }
