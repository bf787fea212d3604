package sim

import (
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// The kinds of storage a World can have.
const (
	StorageGuard          = "guard"            // remembers the highest token seen
	StorageCompareAndSwap = "compare-and-swap" // asks the lease itself
)

// Config is the set-up of a run.
type Config struct {
	Clients    int // 1 to MaxClients
	Lease      lease.Config
	Storage    string // StorageGuard where empty
	FirstToken uint64 // of the first grant; 1 where zero
	// Offsets are by how much each node's clocks are ahead at the beginning.
	// They must change nothing.
	Offsets [model.MaxNodes]time.Duration
	// Messages bounds those in flight, at most MaxMessages, which zero stands
	// for; a send beyond it is a loss.
	Messages int
}

func (c *Config) messages() int {
	if c.Messages == 0 {
		return MaxMessages
	}
	return c.Messages
}

// maxOffset and maxToken keep every reading and counter far from overflow.
const (
	maxOffset = 24 * time.Hour
	maxToken  = 1 << 62
)

// FieldError says which field of a schedule is wrong. Line is 0 where the
// schedule did not come from a file.
type FieldError struct {
	File   string
	Line   int
	Field  string
	Reason string
}

func (e *FieldError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if where != "" {
		where += ": "
	}
	return where + e.Field + ": " + e.Reason
}

func badField(name, format string, args ...any) error {
	return &FieldError{Field: name, Reason: fmt.Sprintf(format, args...)}
}

// Validate returns a *[FieldError] for the first field that makes no sense, or
// nil.
func (c *Config) Validate() error {
	if c.Clients < 1 || c.Clients > MaxClients {
		return badField("config.clients", "%d is not between 1 and %d", c.Clients, MaxClients)
	}
	if c.Storage != "" && c.Storage != StorageGuard && c.Storage != StorageCompareAndSwap {
		return badField("config.storage", "%q is neither %q nor %q", c.Storage, StorageGuard, StorageCompareAndSwap)
	}
	if c.Messages < 0 || c.Messages > MaxMessages {
		return badField("config.messages", "%d is not between 0 and %d", c.Messages, MaxMessages)
	}
	if c.FirstToken > maxToken {
		return badField("config.firstToken", "%d is above %d", c.FirstToken, uint64(maxToken))
	}
	for n, d := range c.Offsets {
		if d != 0 && names[n].Name == "" || d < -maxOffset || d > maxOffset {
			return badField("config.offsets."+names.Of(model.Node(n)), "%v is not within %v, or of no node", d, maxOffset)
		}
	}
	if err := c.Lease.Validate(); err != nil {
		field, reason := explain(err)
		return &FieldError{Field: join("config.lease", field), Reason: reason}
	}
	return nil
}

// check says what is wrong with an action under this configuration, if
// anything is.
func (c *Config) check(a *Action) error {
	if a.Kind == KindNone || a.Kind >= kinds {
		return badField("do", "there is no action %d", a.Kind)
	}
	f := fields[a.Kind].required | fields[a.Kind].optional
	exists := func(n model.Node) bool {
		return n > 0 && int(n) < len(names) && names[n].Name != "" && (names[n].Role != model.RoleClient || int(n-firstClient) < c.Clients)
	}
	if f&fieldWho != 0 && !exists(a.Who) {
		return badField("who", "%s is no node of this run: there are store, storage, C1 to C%d, R1 and R%d", names.Of(a.Who), c.Clients, MaxRaw)
	}
	if f&fieldPeer != 0 && (!exists(a.Peer) || a.Peer == a.Who) {
		return badField("peer", "%s is no other node of this run", names.Of(a.Peer))
	}
	holder := func(n model.Node) bool {
		return int(n) < len(names) && (names[n].Role == model.RoleClient || names[n].Role == model.RoleRaw)
	}
	switch a.Kind {
	case Tick, Put, WorkBegin, WorkEnd, Resign:
		if names[a.Who].Role != model.RoleClient {
			return badField("who", "only a client can %v, not %s", a.Kind, names.Of(a.Who))
		}
	case Acquire, Renew, Release, Get, Write, Read, Fence:
		if !holder(a.Who) {
			return badField("who", "only a client or a raw party can %v, not %s", a.Kind, names.Of(a.Who))
		}
	case Deliver, Drop, Duplicate:
		if a.Msg.Action <= 0 || a.Msg.N < 0 {
			return badField("msg", "%v is no message such as 12.0", a.Msg)
		}
	case Drift:
		if a.Rate < 1 || a.Rate > 2*million {
			return badField("ppm", "%d is not between 1 and %d; 1000000 is true time, and freeze stops a clock", a.Rate, 2*million)
		}
	}
	if f&fieldAs != 0 && a.As != (model.Owner{}) && (!holder(a.As.Node) || a.As.Seq == 0) {
		return badField("as", "%s is no holder such as C1#2", names.Owner(a.As))
	}
	if f&fieldKey != 0 && a.Key >= model.Keys {
		return badField("key", "there are only the keys x, y, z and w")
	}
	if a.Token > maxToken {
		return badField("token", "%d is above %d", a.Token, uint64(maxToken))
	}
	lowest := time.Duration(0)
	if a.Kind == Jump {
		lowest = -maxAdvance
	}
	for _, d := range []struct {
		name string
		d    time.Duration
		low  time.Duration
	}{{"d", a.D, lowest}, {"delay", a.Delay, 0}, {"every", a.Every, 0}, {"ttl", a.TTL, -maxAdvance}} {
		if d.d < d.low || d.d > maxAdvance {
			return badField(d.name, "%v is not between %v and %v", d.d, d.low, maxAdvance)
		}
	}
	if a.Kind == Calm && !c.roomy(a.Delay, a.every()) {
		return badField("delay", "%v leaves no room among %d messages for what %d clients send: lower it, or raise every", a.Delay, MaxMessages, c.Clients)
	}
	for n, r := range a.Rates {
		if r < 0 || r > 2*million || r != 0 && !exists(model.Node(n)) {
			return badField("rates."+names.Of(model.Node(n)), "%d is not between 1 and %d", r, 2*million)
		}
	}
	return nil
}
