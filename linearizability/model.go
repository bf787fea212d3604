package linearizability

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Model names the specification that a history is checked against.
type Model struct {
	Name string
	Init Value // what a register holds at first: nil or an integer
	// N bounds a lock: how many permits a semaphore has, 1 at least, or how often
	// the owner of a reentrant mutex may hold it at once; 0: as often as he likes.
	N int
}

// The models. The package's documentation says which operations and fields each
// has.
const (
	ModelAuto                 = "auto" // whichever Choose finds
	ModelRegister             = "register"
	ModelCASRegister          = "cas-register"
	ModelMultiRegister        = "multi-register"
	ModelMutex                = "mutex"
	ModelOwnerMutex           = "owner-mutex"
	ModelReentrantMutex       = "reentrant-mutex"
	ModelFencedMutex          = "fenced-mutex"
	ModelReentrantFencedMutex = "reentrant-fenced-mutex"
	ModelPermits              = "permits"
	ModelKV                   = "kv"
	ModelStorage              = "storage"
	ModelCASStorage           = "cas-storage"
	ModelLease                = "lease"
	ModelFencepost            = "fencepost" // lease and storage together
)

// argument is what the name of a model takes in parentheses.
type argument uint8

const (
	noArgument argument = iota
	initial             // INIT: the value at first
	atMost              // N: a bound, or none
	exactly             // N: a bound
)

type modelName struct {
	name  string
	takes argument
}

var models = [...]modelName{
	{ModelAuto, noArgument},
	{ModelRegister, initial}, {ModelCASRegister, initial}, {ModelMultiRegister, initial},
	{ModelMutex, noArgument}, {ModelOwnerMutex, noArgument}, {ModelReentrantMutex, atMost},
	{ModelFencedMutex, noArgument}, {ModelReentrantFencedMutex, atMost}, {ModelPermits, exactly},
	{ModelKV, noArgument}, {ModelStorage, noArgument}, {ModelCASStorage, noArgument},
	{ModelLease, noArgument}, {ModelFencepost, noArgument},
}

// Models returns how every model is spelled, for help texts: register(INIT),
// permits(N), mutex.
func Models() []string {
	spelled := make([]string, len(models))
	for i, m := range models {
		spelled[i] = m.name + [...]string{noArgument: "", initial: "(INIT)", atMost: "(N)", exactly: "(N)"}[m.takes]
	}
	return spelled
}

// ParseModel reads a model as users spell it: a name, where it takes one with
// an argument in parentheses, as in cas-register(0), multi-register(nil),
// reentrant-mutex(2) or permits(3). Only permits needs its argument: a register
// starts from nil without one, and nesting has no bound.
func ParseModel(s string) (Model, error) {
	name, arg, hasArg := strings.Cut(strings.TrimSpace(s), "(")
	i := slices.IndexFunc(models[:], func(m modelName) bool { return m.name == name })
	if i < 0 {
		return Model{}, fmt.Errorf("no model %s: want one of %s", quote(s), strings.Join(Models(), ", "))
	}
	m := Model{Name: name}
	takes := models[i].takes
	if !hasArg {
		if takes == exactly {
			return Model{}, fmt.Errorf("model %s: want %s(N) for an integer N from 1 to %d", quote(s), name, maxN)
		}
		return m, nil
	}
	text, closed := strings.CutSuffix(arg, ")")
	switch takes {
	case noArgument:
		return Model{}, fmt.Errorf("model %s: %s takes no argument", quote(s), name)
	case initial:
		v, err := parseEDN(text, 1)
		if !closed || err != nil || v.kind != KindNil && v.kind != KindInt {
			return Model{}, fmt.Errorf("model %s: want %s(nil) or %s(N) for an integer N", quote(s), name, name)
		}
		m.Init = v
	default:
		n, err := strconv.Atoi(text)
		if !closed || err != nil || n < 1 || n > maxN {
			return Model{}, fmt.Errorf("model %s: want %s(N) for an integer N from 1 to %d", quote(s), name, maxN)
		}
		m.N = n
	}
	return m, nil
}

// maxN is more than any lock in use has, and bounds what a state can take.
const maxN = 1_000_000

// String spells m as ParseModel reads it.
func (m Model) String() string {
	switch {
	case m.Name == ModelRegister || m.Name == ModelCASRegister || m.Name == ModelMultiRegister:
		return fmt.Sprintf("%s(%s)", m.Name, m.Init)
	case m.Name == ModelPermits, m.N != 0:
		return fmt.Sprintf("%s(%d)", m.Name, m.N)
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
	if m.N < 0 || m.N > maxN || m.N == 0 && m.Name == ModelPermits {
		return nil
	}
	switch m.Name {
	case ModelRegister:
		return []family{{m.String(), opSet([]string{"read", "write"}), "", byKey, newRegister}}
	case ModelCASRegister:
		return []family{{m.String(), opSet([]string{"read", "write", "cas"}), "", byKey, newRegister}}
	case ModelMultiRegister:
		return []family{{m.String(), opSet([]string{"txn", "read", "write"}), "", byKey, newMultiRegister}}
	case ModelMutex, ModelOwnerMutex, ModelReentrantMutex, ModelFencedMutex, ModelReentrantFencedMutex:
		return []family{{m.String(), opSet([]string{"acquire", "release"}), "", byKey, newLock}}
	case ModelPermits:
		return []family{{m.String(), opSet([]string{"acquire", "release"}), "", byKey, newPermits}}
	case ModelCASStorage:
		return []family{{m.Name, opSet([]string{"read", "write"}), "", byStorageKey, newCASStorage}}
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
