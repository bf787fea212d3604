package lease

import (
	"context"
	"sync/atomic"
	"time"
)

// member is one resource of a group. But for the parts marked so, it belongs to
// the goroutine of the group.
type member struct {
	resource string // never changes
	number   uint64 // never changes
	place    uint64 // never changes; see spread
	term     atomic.Pointer[Term]

	// Guarded by the mutex of the group.
	wanted bool          // added, and not removed since
	asked  bool          // removed, and still here
	left   chan struct{} // closed when it has left
	err    error         // why it is barred
	used   uint64        // the last incarnation of the Run before

	client   Client        // read in place: to copy its state took a third of the time of a renewal
	index    int           // its place in the schedule, -1 for none
	notYet   time.Duration // before this, it does not campaign
	work     *stint        // what goes on under a term
	queued   Request       // waits to be sent; acquire or renew
	unsent   int           // releases that wait to be sent
	calls    int           // store calls unanswered
	in       *batch        // the last that it was put into
	storages []storage
	leaving  bool // campaigns no more, and is forgotten once nothing is left of it
	barred   bool // campaigns no more
	slot     bool // counts towards MaxHeld
	parked   bool // waits for a slot
}

// storage is one of those that must acknowledge the token of a member.
type storage struct {
	fencer Fencer
	acked  Token // the highest acknowledged
	asked  bool  // a call waits or is under way
}

// stint is the work of one term. It may outlast the term.
type stint struct {
	Term
	ctx    context.Context
	cancel context.CancelCauseFunc
	over   bool          // the term has ended
	kept   time.Duration // once over: the lease is renewed for the work until then
}

// busy reports whether the store may hold anything for m, or come to.
func (m *member) busy() bool {
	return m.calls > 0 || m.unsent > 0 || m.queued.Op != OpNone || m.work != nil || m.client.state.Phase != Campaigning
}

// acknowledged reports whether every storage has seen token.
func (m *member) acknowledged(token Token) bool {
	for i := range m.storages {
		if m.storages[i].acked != token {
			return false
		}
	}
	return true
}
