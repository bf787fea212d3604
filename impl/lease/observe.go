package lease

import (
	"fmt"
	"time"
)

// EventKind is what an [Event] tells of.
type EventKind uint8

// The kinds of events, in the order in which a term meets them.
const (
	EventCall        EventKind = iota + 1 // a call was answered, refused, or came to nothing: Op, Latency, Err
	EventGranted                          // a new tenure was granted; the barrier, if any, begins
	EventTermBegan                        // the work may start
	EventRenewed                          // a renewal was confirmed: Margin is what was left until the deadline, had it not been
	EventTermEnded                        // belief has ended, at At: Err says why
	EventWorkStopped                      // what was done under the term has come to an end: Err is what it returned
)

var eventNames = [...]string{"none", "call", "granted", "term began", "renewed", "term ended", "work stopped"}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event(%d)", uint8(k))
}

// Event is something that happened to a candidate. What its kind does not
// mention is zero, but for the first four fields.
type Event struct {
	Kind     EventKind
	Resource string
	Holder   Holder
	Token    Token         // 0 while campaigning
	At       time.Duration // on the candidate's clock

	Op      Op
	Latency time.Duration // from the sending of the request
	Margin  time.Duration // above zero, or the renewal would have come too late
	Err     error
}

// Observer is told what happens to candidates, for metrics: by each of them one
// event after the other, and by several at the same time. It must return at once.
// It may call back whoever it is told by, but for a second Run.
//
// An [Elector] calls it on the goroutine that keeps the lease, when what follows
// from the event is done. While Observe does not return the lease is not renewed,
// and [Elector.Health] says so; belief ends on time all the same. A [Group] calls
// it on the goroutine of Run, which keeps no lease, and drops events where Observe
// is too slow.
type Observer interface {
	Observe(Event)
}
