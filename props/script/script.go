package script

import (
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

// Kind is what a [Step] does.
type Kind uint8

// The kinds.
const (
	KindNone Kind = iota
	Acquire
	Renew
	Release
	Get
	Advance // time passes
	Restart // the store crashes and comes back from its durable state
	Delete  // an operator deletes the lease, where the store can (see kit.Deleter)
)

// Who is a candidate's incarnation: node a, b or c and which of its
// incarnations, 1 for the first. The zero Who is nobody.
type Who struct {
	Node uint8 // 0 nobody, 1 a, 2 b, 3 c
	Seq  uint8
}

// Ref is which token a renewal or release carries. Tokens are named by the
// grant that issued them, never by number: which numbers a store issues is its
// own affair, and what a step means does not change when another is deleted.
type Ref struct {
	// Of is whose latest granted token; the zero Who: the latest granted to
	// anybody.
	Of Who
	// Plus is added to it.
	Plus int8
}

// Step is one line of a script. Its text form ([ParseStep], [Step.String]):
//
//	acquire a 10s            a acquires the lease for 10s
//	acquire a.2 10s          a's second incarnation does
//	renew a 10s              a renews under the token of its latest grant
//	renew b of a 10s         b renews under the token of a's latest grant
//	renew a of last+1 10s    a renews under one more than the token granted last
//	release a                likewise: "of b", "of last", "of last-1"
//	get                      who holds it?
//	advance 9.999s           time passes
//	restart                  the store crashes and comes back
//	delete                   an operator deletes the lease
//
// A second lease is meant where a step ends in "on q". A step whose token was
// never granted to whom it names is a no-op.
type Step struct {
	Do    Kind
	Who   Who
	Token Ref
	TTL   time.Duration
	D     time.Duration
	On    uint8 // which lease: 0 or 1
}

// Line is a step as it went.
type Line struct {
	Step  Step
	At    time.Duration // since the beginning, of the store's time
	NoOp  bool
	Token uint64 // that the request carried
	// Answer is what the store said, as judged, and in a few words.
	Said   model.Said
	Answer string
}

// Result is what a run came to.
type Result struct {
	Lines []Line
	// Breach is what the last line breaks; nil if all answers were right.
	Breach *model.Breach
	Log    string
}

// Open makes the store of one process.
type Open = func(kit.Env) lease.Store

// Run plays steps against a fresh store, up to the first answer that breaks a
// rule.
func Run(open Open, o kit.Options, steps []Step) Result { panic("not yet") }

// Parse reads a step a line; empty lines and what follows a # are skipped. It
// panics on bad text, which is a bug of the caller.
func Parse(text string) []Step { panic("not yet") }
