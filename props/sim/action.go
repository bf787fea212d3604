package sim

import (
	"fmt"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// Kind is what an Action does.
type Kind uint8

// The kinds of actions. Each is effective or a counted no-op in every state,
// so that deleting one never changes the meaning of the next.
const (
	KindNone Kind = iota

	Advance // D of real time passes; Rates override clock rates for its length
	Tick    // client Who runs its state machine once

	Deliver   // the message Msg arrives
	Drop      // the message Msg is lost
	Duplicate // the network copies the message Msg

	// Raw requests of any party, also ill-behaved ones. As is the holder they
	// name; nobody stands for the party itself.
	Acquire // Who, As, TTL
	Renew   // Who, As, Token, TTL
	Release // Who, As, Token
	Get     // Who
	Write   // Who, Token, Key, Value
	Read    // Who, Key
	Fence   // Who, Token

	Put       // client Who checks that it leads, then sends a write of Value to Key with its token
	WorkBegin // client Who begins work, if it leads
	WorkEnd   // its work has stopped
	Resign    // client Who gives up its term

	Pause   // Who stands still, its clocks go on
	Suspend // Who stands still, and its monotonic clock; the boot clock goes on
	Freeze  // Who stands still, and both clocks
	Resume  // ends all three
	Crash   // Who loses its memory
	Restart // Who comes back from durable state, a client as a new process

	Drift  // the clock of Who runs at Rate from now on
	Jump   // the wall clock of Who jumps by D
	Delete // an operator deletes the lease object
	Cut    // the link between Who and Peer
	Heal   // all links

	// Calm: all faults end; D passes, or less once a client leads, with messages
	// that take Delay and ticks that are Every apart. Nothing is lost in it, not
	// even beyond the messages that the configuration allows, and MaxMessages
	// must have room for what correct candidates send.
	Calm

	kinds
)

var kindNames = [kinds]string{"none", "advance", "tick", "deliver", "drop", "duplicate", "acquire", "renew", "release", "get", "write", "read", "fence",
	"put", "work-begin", "work-end", "resign", "pause", "suspend", "freeze", "resume", "crash", "restart", "drift", "jump", "delete", "cut", "heal", "calm"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// field is one field of an action, as a bit.
type field uint16

const (
	fieldWho field = 1 << iota
	fieldPeer
	fieldAs
	fieldMsg
	fieldToken
	fieldKey
	fieldValue
	fieldD
	fieldTTL
	fieldRate
	fieldRates
	fieldDelay
	fieldEvery
)

// fields says which fields each kind has; required are those that must be set.
var fields = [kinds]struct{ required, optional field }{
	Advance: {fieldD, fieldRates}, Tick: {fieldWho, 0},
	Deliver: {fieldMsg, 0}, Drop: {fieldMsg, 0}, Duplicate: {fieldMsg, 0},
	Acquire: {fieldWho | fieldTTL, fieldAs}, Renew: {fieldWho | fieldTTL | fieldToken, fieldAs}, Release: {fieldWho | fieldToken, fieldAs},
	Get: {fieldWho, 0}, Write: {fieldWho | fieldToken, fieldKey | fieldValue}, Read: {fieldWho, fieldKey}, Fence: {fieldWho | fieldToken, 0},
	Put: {fieldWho, fieldKey | fieldValue}, WorkBegin: {fieldWho, 0}, WorkEnd: {fieldWho, 0}, Resign: {fieldWho, 0},
	Pause: {fieldWho, 0}, Suspend: {fieldWho, 0}, Freeze: {fieldWho, 0}, Resume: {fieldWho, 0}, Crash: {fieldWho, 0}, Restart: {fieldWho, 0},
	Drift: {fieldWho | fieldRate, 0}, Jump: {fieldWho | fieldD, 0}, Delete: {}, Cut: {fieldWho | fieldPeer, 0}, Heal: {},
	Calm: {fieldD, fieldDelay | fieldEvery},
}

// Action is one step of a schedule. Fields that its kind does not have are
// zero. It is a value of fixed size.
type Action struct {
	ID    int32 // names the messages it creates; survives minimisation
	Kind  Kind
	Who   model.Node
	Peer  model.Node
	Key   uint8
	As    model.Owner
	Msg   model.Msg
	Token uint64
	Value int64
	D     time.Duration
	TTL   time.Duration
	Delay time.Duration
	Every time.Duration
	Rate  int64 // parts per million of true time
	// Rates are parts per million by node, for this advance alone; zero
	// leaves the node's own.
	Rates [model.MaxNodes]int32
	Note  string // for the reader of the file
}

// The layout of nodes in every World.
const (
	StoreNode   model.Node = 1
	StorageNode model.Node = 2
	firstClient model.Node = 3
	firstRaw    model.Node = firstClient + MaxClients

	// MaxClients and MaxRaw bound the parties of one run.
	MaxClients = 4
	MaxRaw     = 2
)

// ClientNode is the i-th client, from 0.
func ClientNode(i int) model.Node { return firstClient + model.Node(i) }

// RawNode is the i-th raw party, from 0.
func RawNode(i int) model.Node { return firstRaw + model.Node(i) }

// Names are the names of all nodes: store, storage, C1 to C4, R1 and R2. They
// are the caller's own copy.
func Names() *model.Names {
	ns := names
	return &ns
}

var names = func() (ns model.Names) {
	ns[StoreNode].Name, ns[StoreNode].Role = "store", model.RoleStore
	ns[StorageNode].Name, ns[StorageNode].Role = "storage", model.RoleStorage
	for i := range MaxClients {
		ns[ClientNode(i)].Name, ns[ClientNode(i)].Role = fmt.Sprintf("C%d", i+1), model.RoleClient
	}
	for i := range MaxRaw {
		ns[RawNode(i)].Name, ns[RawNode(i)].Role = fmt.Sprintf("R%d", i+1), model.RoleRaw
	}
	return ns
}()

// NodeNamed finds a node by its name; zero if there is none.
func NodeNamed(name string) model.Node {
	for n := range names {
		if n > 0 && names[n].Name == name && name != "" {
			return model.Node(n)
		}
	}
	return 0
}

// ownerOf is the small identity of a holder.
func ownerOf(h lease.Holder) model.Owner {
	if h.Node == "" {
		return model.Owner{}
	}
	return model.Owner{Node: nodeOf(h.Node), Boot: uint16(h.Nonce), Seq: uint32(h.Seq)}
}

func nodeOf(name string) model.Node {
	switch {
	case len(name) == 2 && name[0] == 'C':
		return firstClient + model.Node(name[1]-'1')
	case len(name) == 2 && name[0] == 'R':
		return firstRaw + model.Node(name[1]-'1')
	}
	panic(fmt.Sprintf("sim: no node is called %q", name))
}

// holderOf is the holder with a small identity.
func holderOf(o model.Owner) lease.Holder {
	return lease.Holder{Node: names[o.Node].Name, Seq: uint64(o.Seq), Nonce: uint64(o.Boot)}
}

// String is the action in one line, as timelines and error messages show it.
func (a Action) String() string {
	var b strings.Builder
	b.WriteString(a.Kind.String())
	if a.Kind >= kinds {
		return b.String()
	}
	f := fields[a.Kind].required | fields[a.Kind].optional
	add := func(bit field, set bool, format string, args ...any) {
		if f&bit != 0 && set {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	add(fieldWho, true, "%s", names.Of(a.Who))
	add(fieldPeer, true, "%s", names.Of(a.Peer))
	add(fieldAs, a.As != model.Owner{}, "as %s", names.Owner(a.As))
	add(fieldMsg, true, "%s", a.Msg)
	add(fieldToken, true, "token %d", a.Token)
	add(fieldKey, true, "%s", keyName(a.Key))
	add(fieldValue, true, "= %d", a.Value)
	add(fieldD, true, "%v", a.D)
	add(fieldTTL, true, "ttl %v", a.TTL)
	add(fieldRate, true, "%d ppm", a.Rate)
	for n, r := range a.Rates {
		add(fieldRates, r != 0, "%s at %d ppm", names.Of(model.Node(n)), r)
	}
	add(fieldDelay, true, "delay %v", a.Delay)
	add(fieldEvery, true, "every %v", a.Every)
	return b.String()
}

// keyName names the keys of a storage x, y, z, w.
func keyName(k uint8) string { return string("xyzw"[k%model.Keys]) }
