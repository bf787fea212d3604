package linearizability

import (
	"fmt"
	"strings"
)

// Model names the specification that a history is checked against.
type Model struct {
	Name string
	Init Value // what a register holds at first: nil or an integer
}

// The models.
const (
	ModelRegister    = "register"     // read, write
	ModelCASRegister = "cas-register" // read, write, cas
	ModelMutex       = "mutex"        // acquire, release: one holder, whoever releases
	ModelOwnerMutex  = "owner-mutex"  // acquire, release: only the holder releases
	ModelKV          = "kv"           // get, put, append, a string for each key
	ModelLease       = "lease"        // acquire, renew, release, get of a lease that lapses by itself
	ModelStorage     = "storage"      // write, read, fence under fencing tokens
	ModelFencepost   = "fencepost"    // lease and storage together
)

// ParseModel reads a model as users spell it: a name, for registers with the
// initial value in parentheses, as in cas-register(0) or cas-register(nil).
func ParseModel(s string) (Model, error) {
	name, arg, hasArg := strings.Cut(strings.TrimSpace(s), "(")
	m := Model{Name: name}
	switch name {
	case ModelRegister, ModelCASRegister:
		if !hasArg {
			return m, nil
		}
		text, ok := strings.CutSuffix(arg, ")")
		v, err := parseEDN(text, 1)
		if !ok || err != nil || v.kind != KindNil && v.kind != KindInt {
			return Model{}, fmt.Errorf("model %s: want %s(nil) or %s(N) for an integer N", quote(s), name, name)
		}
		m.Init = v
		return m, nil
	case ModelMutex, ModelOwnerMutex, ModelKV, ModelLease, ModelStorage, ModelFencepost:
		if hasArg {
			return Model{}, fmt.Errorf("model %s: %s takes no initial value", quote(s), name)
		}
		return m, nil
	}
	return Model{}, fmt.Errorf("no model %s: want register(INIT), cas-register(INIT), mutex, owner-mutex, kv, lease, storage or fencepost", quote(s))
}

// String spells m as ParseModel reads it.
func (m Model) String() string {
	if m.Name == ModelRegister || m.Name == ModelCASRegister {
		return fmt.Sprintf("%s(%s)", m.Name, m.Init)
	}
	return m.Name
}

// machine is the sequential specification of one partition: what each action
// does to a state, or that it cannot have happened there. States are immutable.
type machine struct {
	init any
	step func(state any, a *action) (any, bool)
	// maybe, if set, is step for an unknown action of which nobody knows whether
	// it happened.
	maybe func(state any, a *action) any
	// equal and hash are those of states; nil if states are compared by ==.
	equal func(a, b any) bool
	hash  func(state any) uint64
	show  func(state any) string
	bytes int // about how much a state takes in memory
	forward
}

// action is one operation as a machine sees it.
type action struct {
	span
	class
	// Between since and until it took effect: its instants where the machine
	// knows time, and else its places.
	since, until int64
	unknown      bool // may never have happened
	alone        bool // is like no other
	answer       bool // only says something of the state
	timed        int  // position among the partition's timed operations
}

// class is what the machine makes of an action: two of one class do the same to
// every state at every instant. Names and values are numbers of the
// partition's own.
type class struct {
	kind  uint8
	a, b  int32
	token uint64
	limit uint64
}

func newAction(s span, c class) action {
	return action{span: s, class: c, since: s.call, until: s.ret, unknown: s.Type == Info}
}

// partition is a part of a history that is linearizable by itself: the
// operations on one register, key, lease or storage.
type partition struct {
	actions []action
	machine machine
}

// names numbers the values and names of a partition, from 1.
type names struct {
	number map[string]int32
	text   []string
}

func (n *names) of(canonical string) int32 {
	if i, ok := n.number[canonical]; ok {
		return i
	}
	if n.number == nil {
		n.number = make(map[string]int32)
	}
	n.text = append(n.text, canonical)
	n.number[canonical] = int32(len(n.text))
	return int32(len(n.text))
}

// show is the text of number i; that of 0 is nil.
func (n *names) show(i int32) string {
	if i == 0 {
		return "nil"
	}
	return n.text[i-1]
}

// family is one specification: which operations it checks, how a history falls
// into partitions, and how a partition becomes executable.
type family struct {
	name string
	// ops are the operations that it knows: those it checks, and those (false)
	// that have no effect on what it specifies.
	ops        map[string]bool
	everywhere string                      // the operation that is one of every partition
	key        func(o *operation) string   // of the operation's partition
	compiler   func(*Meta, Model) compiler // of one partition
}

func noKey(*operation) string { return "" }

func byKey(o *operation) string { return o.name("key") }

func opSet(checked []string, others ...string) map[string]bool {
	set := make(map[string]bool)
	for _, name := range others {
		set[name] = false
	}
	for _, name := range checked {
		set[name] = true
	}
	return set
}

var (
	leaseOps   = []string{"acquire", "renew", "release", "get", "delete", "restart"}
	storageOps = []string{"write", "read", "fence"}
)

// families returns the specifications that m consists of; none if there is no
// such model.
func families(m Model) []family {
	lease := family{ModelLease, opSet(leaseOps, append(storageOps, "lead")...), "restart", byKey, newLease}
	storage := family{ModelStorage, opSet(storageOps, append(leaseOps, "lead")...), "", byKey, newStorage}
	switch m.Name {
	case ModelRegister:
		return []family{{m.String(), opSet([]string{"read", "write"}), "", noKey, newRegister}}
	case ModelCASRegister:
		return []family{{m.String(), opSet([]string{"read", "write", "cas"}), "", noKey, newRegister}}
	case ModelMutex, ModelOwnerMutex:
		return []family{{m.Name, opSet([]string{"acquire", "release"}), "", byKey, newMutex}}
	case ModelKV:
		return []family{{m.Name, opSet([]string{"get", "put", "append"}), "", byKey, newKV}}
	case ModelLease:
		return []family{lease}
	case ModelStorage:
		return []family{storage}
	case ModelFencepost:
		return []family{lease, storage}
	}
	return nil
}
