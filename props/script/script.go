package script

import (
	"fmt"
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
	kinds
)

var kindNames = [kinds]string{"none", "acquire", "renew", "release", "get", "advance", "restart", "delete"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

func (k Kind) hasWho() bool   { return k == Acquire || k == Renew || k == Release }
func (k Kind) hasTTL() bool   { return k == Acquire || k == Renew }
func (k Kind) hasToken() bool { return k == Renew || k == Release }

// asks reports whether it is a request, which the store answers.
func (k Kind) asks() bool { return k >= Acquire && k <= Get }

// Who is a candidate's incarnation: node a, b or c and which of its
// incarnations, 1 for the first. The zero Who is nobody.
type Who struct {
	Node uint8 // 0 nobody, 1 a, 2 b, 3 c
	Seq  uint8
}

// nobody is the zero Who in text: a request that names no holder.
const nobody = "nobody"

// String is a, b or c, a.2 for a's second incarnation, or nobody.
func (w Who) String() string {
	switch {
	case w.Node == 0:
		return nobody
	case w.Seq == 1:
		return string(rune('a' - 1 + w.Node))
	}
	return fmt.Sprintf("%c.%d", 'a'-1+w.Node, w.Seq)
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
// never granted to whom it names is a no-op, and so is one that the store has
// no way to be asked. Nodes are a, b and c; "nobody" is a request without a
// holder.
type Step struct {
	Do    Kind
	Who   Who
	Token Ref
	TTL   time.Duration
	D     time.Duration
	On    uint8 // which lease: 0 or 1
}

// String is the step as [ParseStep] reads it.
func (s Step) String() string {
	b := make([]byte, 0, 32)
	b = append(b, s.Do.String()...)
	if s.Do.hasWho() {
		b = append(append(b, ' '), s.Who.String()...)
	}
	if s.Do.hasToken() && s.Token != (Ref{Of: s.Who}) {
		b = append(append(b, " of "...), s.Token.String()...)
	}
	if s.Do.hasTTL() {
		b = append(append(b, ' '), s.TTL.String()...)
	}
	if s.Do == Advance {
		b = append(append(b, ' '), s.D.String()...)
	}
	if s.On != 0 {
		b = append(b, " on q"...)
	}
	return string(b)
}

// String is the reference as [ParseStep] reads it: a, b.2-1, last+1.
func (r Ref) String() string {
	of := "last"
	if r.Of != (Who{}) {
		of = r.Of.String()
	}
	if r.Plus == 0 {
		return of
	}
	return fmt.Sprintf("%s%+d", of, r.Plus)
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

	steady bool // of a restart: the store's clock went on
}

// Result is what a run came to.
type Result struct {
	Lines []Line
	// Breach is what the last line breaks; nil if all answers were right.
	Breach *model.Breach
	// Others is how many scripts were played on the same store, before or at
	// the same time, each on leases of its own.
	Others int
	Log    string
}

// Open makes the store of one process.
type Open = func(kit.Env) lease.Store
