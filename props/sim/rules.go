package sim

import (
	"math"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/model"
)

// Subject is what a World runs: a store, a candidate and a storage, each
// behind one small interface. The rules themselves are stateless; the World
// holds their state as values, so that assigning a World is a snapshot.
type Subject struct {
	Name    string
	Store   StoreRules
	Client  ClientRules
	Storage StorageRules
	// Layout is for rules that keep more in memory than the built-in ones.
	Layout Layout
}

// Builtin is the implementation in impl.
func Builtin() Subject {
	return Subject{Name: "builtin", Store: Store{}, Client: Client{}, Storage: Storage{}}
}

// Promise is what the store says of itself, which of one that is not [Opaque] is
// all there is to promise.
func (s *Subject) Promise() model.Promise {
	if o, ok := s.Store.(Opaque); ok {
		return o.Promise()
	}
	return model.Promise{}
}

// Clocks are what the clocks of one node read. Correct rules read Boot alone.
type Clocks struct {
	Boot time.Duration // goes on while the node is suspended
	Mono time.Duration // stands still while the node is suspended
	Wall time.Duration // jumps
}

// Scratch is memory for rules that need more than impl has, such as a planted
// bug's. The built-in rules leave it zero.
type Scratch struct {
	N   [4]int64
	Who lease.Holder
}

// StoreState is the whole state of the store's node. A restart keeps Durable
// and loses the rest.
type StoreState struct {
	lease.Record
	Scratch Scratch
}

// StoreRules is a lease store as one node: handle a request at its own clock,
// answer, come back from durable state. It keeps nothing itself: all that it
// remembers is in s, and what the Record has no field for in s.Scratch, whose
// numbers [Subject].Layout gives a meaning; a store that cannot do so is
// [Opaque]. An answer begins with [lease.Request.To], which echoes what the
// client knows it by.
type StoreRules interface {
	Handle(s *StoreState, now Clocks, lockDelay time.Duration, req lease.Request) lease.Reply
	// Restart brings the store back with a clock that reads now.
	Restart(s *StoreState, now Clocks)
	// Delete is an operator deleting the lease object. It reports whether there
	// was one.
	Delete(s *StoreState) bool
	// Tenure is what the store would say if the observer could ask it: whether
	// a tenure runs at now, whose, and the instant on the boot clock at which
	// it ends. token is the latest issued, also where none runs.
	Tenure(s *StoreState, now Clocks) (holder lease.Holder, token lease.Token, ends time.Duration, running bool)
}

// Store runs [lease.Record].
type Store struct{}

// Handle answers req.
func (Store) Handle(s *StoreState, now Clocks, lockDelay time.Duration, req lease.Request) (rep lease.Reply) {
	s.Record, rep = s.Record.Handle(now.Boot, lockDelay, req)
	return rep
}

// Restart restores the record from its durable part.
func (Store) Restart(s *StoreState, now Clocks) { s.Record = lease.Restore(s.Durable, now.Boot) }

// Delete keeps the counter.
func (Store) Delete(s *StoreState) bool {
	if s.Status == lease.Free {
		return false
	}
	s.Record = s.Record.Delete()
	return true
}

// Tenure is what the record says.
func (Store) Tenure(s *StoreState, now Clocks) (lease.Holder, lease.Token, time.Duration, bool) {
	return s.Holder, s.Token, s.Expires, s.Held(now.Boot)
}

// ClientState is the whole state of a candidate's process.
type ClientState struct {
	lease.Client
	Scratch Scratch
}

// ClientRules is a candidate.
type ClientRules interface {
	// Start makes the candidate of a new process. holder differs from that of
	// every process before; old is the state that the crash left behind, which
	// a correct candidate has no use for.
	Start(cfg lease.Config, holder lease.Holder, now Clocks, old *ClientState) ClientState
	Tick(c *ClientState, now Clocks) lease.Requests
	Receive(c *ClientState, now Clocks, rep lease.Reply) lease.Requests
	Resign(c *ClientState, now Clocks) lease.Requests
	BeginWork(c *ClientState, now Clocks) bool
	EndWork(c *ClientState, now Clocks) lease.Requests
	// Acting reports whether the candidate or its work may act as leader.
	Acting(c *ClientState, now Clocks) bool
	// Ends is how long from now, on the candidate's clock, until Acting ends by
	// itself; suspended says that the monotonic clock stands still.
	Ends(c *ClientState, now Clocks, suspended bool) time.Duration
	// Write decides about a write: the token it carries, and whether it may be
	// sent at all. current is the store's record, which a correct client does
	// not look at.
	Write(c *ClientState, now Clocks, current *lease.Record) (lease.Token, bool)
}

// Forever is longer than any run.
const Forever = time.Duration(math.MaxInt64)

// Client runs [lease.Client] on the boot clock.
type Client struct{}

// Start makes a new candidate.
func (Client) Start(cfg lease.Config, holder lease.Holder, now Clocks, _ *ClientState) ClientState {
	c, err := lease.NewClient(cfg, holder, now.Boot)
	if err != nil {
		panic(err) // a World is made with a validated configuration
	}
	return ClientState{Client: c}
}

// Tick does what is due.
func (Client) Tick(c *ClientState, now Clocks) lease.Requests { return c.Client.Tick(now.Boot) }

// Receive takes a reply.
func (Client) Receive(c *ClientState, now Clocks, rep lease.Reply) lease.Requests {
	return c.Client.Receive(now.Boot, rep)
}

// Resign gives the term up.
func (Client) Resign(c *ClientState, now Clocks) lease.Requests { return c.Client.Resign(now.Boot) }

// BeginWork starts work if the candidate leads.
func (Client) BeginWork(c *ClientState, now Clocks) bool { return c.Client.BeginWork(now.Boot) }

// EndWork ends it.
func (Client) EndWork(c *ClientState, now Clocks) lease.Requests { return c.Client.EndWork(now.Boot) }

// Acting is whether it leads, or its work goes on after a resignation.
func (Client) Acting(c *ClientState, now Clocks) bool { return c.Client.Acting(now.Boot) }

// Ends is the time left until the deadline.
func (Client) Ends(c *ClientState, now Clocks, _ bool) time.Duration {
	return c.State().Deadline - now.Boot
}

// Write carries the token of the term, if the candidate leads.
func (Client) Write(c *ClientState, now Clocks, _ *lease.Record) (lease.Token, bool) {
	return c.State().Token, c.IsLeader(now.Boot)
}

// StorageState is the whole state of the storage's node. All of it is durable.
type StorageState struct {
	fence.Guard
	Values  [model.Keys]int64
	Scratch Scratch
}

// StorageRequest is what reaches a storage.
type StorageRequest struct {
	Op    model.Op // fence, write, read
	Token lease.Token
	Key   uint8
	Value int64
}

// StorageRules is the protected storage.
type StorageRules interface {
	// Handle answers req. current is the store's record, for a storage that
	// shares a transaction with the lease.
	Handle(s *StorageState, current *lease.Record, req StorageRequest) (model.Code, int64)
	// Restart brings the storage back from durable state.
	Restart(s *StorageState)
}

// Storage is guarded by the highest token seen.
type Storage struct{}

// Handle admits by [fence.Guard].
func (Storage) Handle(s *StorageState, _ *lease.Record, req StorageRequest) (model.Code, int64) {
	var ok bool
	if req.Op != model.OpRead {
		s.Guard, ok = s.Admit(req.Token)
	}
	return s.Apply(req, ok)
}

// Restart keeps everything: all of it is durable.
func (Storage) Restart(*StorageState) {}

// CompareAndSwap is a storage that shares a transaction with the lease: a
// write applies only if the lease still carries its token. It remembers none.
type CompareAndSwap struct{ Storage }

// Handle admits by the lease itself.
func (CompareAndSwap) Handle(s *StorageState, current *lease.Record, req StorageRequest) (model.Code, int64) {
	ok := fence.Carries(current.Durable, req.Token)
	s.Highest = current.Token // what a refusal names
	return s.Apply(req, ok)
}

// Apply does what req asks, given that its token was admitted or not.
func (s *StorageState) Apply(req StorageRequest, admitted bool) (model.Code, int64) {
	switch {
	case req.Op == model.OpRead:
		return model.CodeValue, s.Values[req.Key]
	case !admitted:
		return model.CodeStale, 0
	case req.Op == model.OpFence:
		return model.CodeFenced, 0
	}
	s.Values[req.Key] = req.Value
	return model.CodeLanded, 0
}
