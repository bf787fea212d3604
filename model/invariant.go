package model

import (
	"fmt"
	"iter"
	"strings"
	"time"
)

// Invariant is one of the things that must hold. Each is judged independently.
type Invariant uint8

// The invariants. The first three are those of the trade; a deployment that
// loses the third still has the second, which is what fencing is for.
const (
	// NoInvariant stands for "nothing was violated".
	NoInvariant Invariant = iota
	// TokenMonotonicity: each change of ownership gets exactly the next token.
	TokenMonotonicity
	// StorageSafety: once a storage has processed a token, no write with a
	// lower one lands there, whatever clocks, pauses, networks and restarts do.
	StorageSafety
	// BeliefSafety: at most one client acts as leader at any instant, while
	// drift stays within the bound.
	BeliefSafety
	// BeliefOwnership: whoever acts as leader holds the lease in the store
	// under that token, while drift stays within the bound.
	BeliefOwnership
	// Continuity: one belief interval has one token, and no token is led under
	// twice.
	Continuity
	// Linearizability of the store's and the storage's history, with time.
	Linearizability
	// Durability: a read gives the last landed write, restarts included.
	Durability
	// Availability: once faults stop some client leads within a bound.
	Availability
	// Barrier: after a client leads under a token no write below it lands.
	// Asserted only where the barrier is on.
	Barrier
	// Attribution: the token of a landed write was granted to its sender, the
	// very incarnation.
	Attribution
	// Lockstep: every answer equals that of the sequential specification.
	Lockstep

	invariants
)

var invariantNames = [...]string{"none", "token-monotonicity", "storage-safety", "belief-safety", "belief-implies-ownership", "continuity",
	"linearizability", "durability", "availability", "barrier", "attribution", "lockstep"}

func (v Invariant) String() string { return nameOf(invariantNames[:], "invariant", v) }

// MarshalText gives the name used in files and reports.
func (v Invariant) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a name back. The error lists the names there are.
func (v *Invariant) UnmarshalText(b []byte) error {
	for i, name := range invariantNames {
		if name == string(b) {
			*v = Invariant(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no invariant; the invariants are %s", b, strings.Join(invariantNames[:], ", "))
}

// Invariants are all there are, in order.
func Invariants() iter.Seq[Invariant] {
	return func(yield func(Invariant) bool) {
		for v := NoInvariant + 1; v < invariants && yield(v); v++ {
		}
	}
}

// Set is a set of invariants.
type Set uint16

// SetOf is the set of vs.
func SetOf(vs ...Invariant) Set {
	var s Set
	for _, v := range vs {
		s |= 1 << v
	}
	return s
}

// Has reports whether v is in s.
func (s Set) Has(v Invariant) bool { return s&(1<<v) != 0 }

// All are the members of s, in order.
func (s Set) All() iter.Seq[Invariant] {
	return func(yield func(Invariant) bool) {
		for v := range Invariants() {
			if s.Has(v) && !yield(v) {
				return
			}
		}
	}
}

func (s Set) String() string {
	var names []string
	for v := range s.All() {
		names = append(names, v.String())
	}
	return strings.Join(names, ", ")
}

// Violation is one broken invariant: what, when, through which action, and who
// was involved.
type Violation struct {
	Invariant Invariant
	At        int64 // ns of real time
	Action    int32 // the action whose event broke it
	Node      Node  // who did, or still believed, what must not be
	Other     Node  // whom it collided with, where there is one
	Token     uint64
	Limit     uint64 // the token it collided with, or that it should have been
	Value     int64  // durability: what was read
	Want      int64  // durability: what had landed; availability: the bound in ns
}

// Describe says in one sentence what went wrong.
func (v Violation) Describe(ns *Names) string {
	who, other := ns.Of(v.Node), ns.Of(v.Other)
	switch v.Invariant {
	case TokenMonotonicity:
		return fmt.Sprintf("%s was granted token %d where %d came next", who, v.Token, v.Limit)
	case StorageSafety:
		return fmt.Sprintf("a write of %s with token %d landed after the storage had processed %d", who, v.Token, v.Limit)
	case BeliefSafety:
		return fmt.Sprintf("%s leads under token %d while %s still leads under %d", who, v.Token, other, v.Limit)
	case BeliefOwnership:
		if v.Other == 0 {
			return fmt.Sprintf("%s acts as leader under token %d, but nobody holds the lease in the store; the last token is %d", who, v.Token, v.Limit)
		}
		return fmt.Sprintf("%s acts as leader under token %d, but the store's tenure is %s under %d", who, v.Token, other, v.Limit)
	case Continuity:
		return fmt.Sprintf("%s leads under token %d, which was led under before or follows %d without a break", who, v.Token, v.Limit)
	case Durability:
		return fmt.Sprintf("a read at %s gave %d, but the last landed write was %d", who, v.Value, v.Want)
	case Availability:
		return fmt.Sprintf("nobody led within %v of calm", time.Duration(v.Want))
	case Barrier:
		return fmt.Sprintf("a write of %s with token %d landed although %s already led under %d", who, v.Token, other, v.Limit)
	case Attribution:
		if v.Other != 0 && v.Other == v.Node {
			return fmt.Sprintf("a write of %s landed with token %d, which was granted to another incarnation of it", who, v.Token)
		}
		return fmt.Sprintf("a write of %s landed with token %d, which was granted to %s", who, v.Token, other)
	case Lockstep:
		return fmt.Sprintf("%s answered otherwise than its specification", who)
	case Linearizability:
		return "no order of the recorded operations explains the answers"
	}
	return v.Invariant.String()
}
