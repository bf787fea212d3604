package model_test

import (
	"context"
	"encoding/binary"
	"os"
	"reflect"
	"slices"
	"testing"

	"fencepost/model"
)

// The reference model: an abstract lease protocol whose exact numbers of states
// three tools agree on, Spin, TLC and a Go program, each written from one
// description by itself. An explorer that prints other numbers is wrong.
// testdata/spin/lease.pml is the same model for Spin.

// reference is one configuration of it.
type reference struct {
	clients int  // up to 3
	now     int  // the largest instant; 0: time is relative and has no bound
	tokens  int  // the store hands out 1..tokens, up to 3
	lag     int  // how many ticks each client's clock may miss, up to 1
	pause   bool // clients may stand still
	sorted  bool // clients are interchangeable: sort them
	mutant  refMutant
}

type refMutant int

const (
	refCorrect    refMutant = iota
	refNoMargin             // the lease is no longer than a client's window
	refFromReply            // a client counts its lease from the reply, not the call
	refNoFencing            // storage accepts every write
	refTTL        = 4       // ticks
	refSafe       = 3       // ticks for which a client uses its lease
	refAllClients = 3
)

// What is under way between a client and the store.
const (
	rpcNone = iota
	rpcAcquire
	rpcRenew
	rpcRelease
	rpcOK
	rpcFail
)

// The kinds of steps.
const (
	refTick = iota
	refTickLag
	refPause
	refSendAcquire
	refSendRenew
	refSendRelease
	refRecvOK
	refRecvFail
	refStepDown
	refSendWrite
	refStoreAcquire
	refStoreRenew
	refStoreRelease
	refDropRPC
	refWriteArrive
	refWriteDrop
	refSteps
)

// refWord is a packed state, a client (the 16 low bits), or the store, the
// storage and the clock (the bits above 48). Go keeps a word in a register but
// not a structure of this many fields; here that is worth a factor of two.
type refWord uint64

// Fields of a client with what it has under way, and of the rest, as masks.
const (
	refPaused   refWord = 1 << 0
	refLag      refWord = 1 << 1 // ticks that its clock has missed
	refBelieves refWord = 1 << 2
	refAge      refWord = 3 << 3 // of the lease as the client counts it
	refToken    refWord = 3 << 5
	refRpc      refWord = 7 << 7
	refRpcAge   refWord = 3 << 10
	refRpcToken refWord = 3 << 12
	refWrite    refWord = 3 << 14 // token of the write under way; 0: none
	refLease            = refBelieves | refAge | refToken
	refCall             = refRpc | refRpcAge | refRpcToken

	refHolder  refWord = 3 << 48 // 1 + client; 0: nobody
	refLeft    refWord = 7 << 50 // of the lease in the store
	refLast    refWord = 3 << 53 // token that the store handed out
	refHighest refWord = 3 << 55 // token that storage has seen
	refNow     refWord = 31 << 57
)

// one is the lowest bit of a field: 1, in place.
func (w refWord) one() refWord { return w & -w }

func (w refWord) get(field refWord) refWord         { return w & field / field.one() }
func (w refWord) with(field, value refWord) refWord { return w&^field | value*(field&-field) }

func (w refWord) client(i int) refWord                { return w >> (16 * i) & 0xffff }
func (w refWord) withClient(i int, c refWord) refWord { return w&^(0xffff<<(16*i)) | c<<(16*i) }

// leads is 1 if the client uses its lease, else 0.
func (w refWord) leads() refWord {
	// age+1 has bit 2 set if the age is refSafe, 3.
	return w.get(refBelieves) &^ ((w.get(refAge) + 1) >> 2)
}

// tick is one tick of the client's own clock.
func (w refWord) tick() refWord {
	w += w.leads() * (refAge.one())
	if w&refRpc != 0 && w.get(refRpcAge) < refSafe {
		w += refRpcAge.one()
	}
	return w
}

// Walker makes reference a model.System.
func (r reference) Walker() model.Walker { return &refWalker{reference: r} }

type refWalker struct {
	reference
	out   *model.Steps
	state [8]byte
}

func (w *refWalker) Begin(out *model.Steps) { out.Add(0, make([]byte, 8)) }

func (w *refWalker) Expand(packed []byte, out *model.Steps) {
	state := refWord(binary.LittleEndian.Uint64(packed))
	w.out = out
	if w.now == 0 || state.get(refNow) < refWord(w.now) {
		w.ticks(state)
	}
	for i := range w.clients {
		c := state.client(i)
		if w.pause {
			w.step(refPause, state.withClient(i, c^refPaused))
		}
		if c&refPaused == 0 {
			w.acts(state, i, c)
		}
		if c&refRpc != 0 {
			w.storeActs(state, i, c)
			w.step(refDropRPC, state.withClient(i, c&^refCall))
		}
		if c&refWrite != 0 {
			w.writeLands(state, i, c)
			w.step(refWriteDrop, state.withClient(i, c&^refWrite))
		}
	}
}

// ticks is one tick of time: with every clock keeping up, or one that misses it.
func (w *refWalker) ticks(state refWord) {
	next := state
	if w.now > 0 {
		next += refNow.one()
	}
	if state&refLeft != 0 {
		if next -= refLeft.one(); next&refLeft == 0 {
			next &^= refHolder
		}
	}
	for i := range w.clients {
		next = next.withClient(i, state.client(i).tick())
	}
	w.step(refTick, next)
	for i := range w.clients {
		if c := state.client(i); c.get(refLag) < refWord(w.lag) {
			w.step(refTickLag, next.withClient(i, c+refLag.one()))
		}
	}
}

// acts is what client i does by itself.
func (w *refWalker) acts(state refWord, i int, c refWord) {
	switch c.get(refRpc) {
	case rpcNone:
		if c&refBelieves == 0 {
			w.step(refSendAcquire, state.withClient(i, c.with(refRpc, rpcAcquire)))
			break
		}
		c := c.with(refRpcToken, c.get(refToken))
		if c.get(refAge) < refSafe {
			w.step(refSendRenew, state.withClient(i, c.with(refRpc, rpcRenew)))
		}
		w.step(refSendRelease, state.withClient(i, c.with(refRpc, rpcRelease)&^refLease))
	case rpcOK:
		n := c &^ (refLease | refCall)
		if elapsed := c.get(refRpcAge); elapsed < refSafe {
			if w.mutant == refFromReply {
				elapsed = 0
			}
			n |= refBelieves
			n = n.with(refAge, elapsed).with(refToken, c.get(refRpcToken))
		}
		w.step(refRecvOK, state.withClient(i, n))
	case rpcFail:
		w.step(refRecvFail, state.withClient(i, c&^(refLease|refCall)))
	}
	switch {
	case c&refBelieves == 0:
	case c.get(refAge) == refSafe:
		w.step(refStepDown, state.withClient(i, c&^refLease))
	case c&refWrite == 0:
		w.step(refSendWrite, state.withClient(i, c.with(refWrite, c.get(refToken))))
	}
}

// storeActs is the store handling the request of client i.
func (w *refWalker) storeActs(state refWord, i int, c refWord) {
	me, ttl := refWord(i+1), refWord(refTTL)
	if w.mutant == refNoMargin {
		ttl = refSafe
	}
	owns := state.get(refHolder) == me && state.get(refLast) == c.get(refRpcToken)
	switch c.get(refRpc) {
	case rpcAcquire:
		if state&refHolder != 0 || state.get(refLast) >= refWord(w.tokens) {
			w.step(refStoreAcquire, state.withClient(i, c.with(refRpc, rpcFail)))
			break
		}
		granted := state.get(refLast) + 1
		next := state.with(refLast, granted).with(refHolder, me).with(refLeft, ttl)
		next = next.withClient(i, c.with(refRpc, rpcOK).with(refRpcToken, granted))
		w.check(refStoreAcquire, next, next.get(refLast) > state.get(refLast))
	case rpcRenew:
		if owns {
			w.step(refStoreRenew, state.with(refLeft, ttl).withClient(i, c.with(refRpc, rpcOK)))
		} else {
			w.step(refStoreRenew, state.withClient(i, c.with(refRpc, rpcFail)&^refRpcToken))
		}
	case rpcRelease:
		next := state.withClient(i, c&^refCall)
		if owns {
			next &^= refHolder | refLeft
		}
		w.step(refStoreRelease, next)
	}
}

// writeLands is the storage handling the write of client i.
func (w *refWalker) writeLands(state refWord, i int, c refWord) {
	next := state.withClient(i, c&^refWrite)
	fenced := c.get(refWrite) >= state.get(refHighest)
	if fenced || w.mutant == refNoFencing {
		w.check(refWriteArrive, next.with(refHighest, c.get(refWrite)), fenced)
	} else {
		w.step(refWriteArrive, next)
	}
}

func (w *refWalker) step(label uint8, next refWord) { w.check(label, next, true) }

// check gives a step to next, which fails if the step itself is not right, or
// if next is a state that must not be.
func (w *refWalker) check(label uint8, next refWord, right bool) {
	if !right || w.bad(next) {
		w.out.Fail(label, 0)
		return
	}
	if w.sorted {
		next = w.sort(next)
	}
	binary.LittleEndian.PutUint64(w.state[:], uint64(next))
	w.out.Add(label, w.state[:])
}

// bad says whether somebody leads who does not hold the lease in the store
// under that token (so at most one leads), or a token is from nowhere. Branches
// would be mispredicted, so it collects bits that are 0 if all is well.
func (w *refWalker) bad(state refWord) bool {
	// Tokens are below 4: bit 2 of a difference is set if it is negative.
	granted := state.get(refLast)
	wrong := (granted - state.get(refHighest)) & 4
	for i := range w.clients {
		c := state.client(i)
		wrong |= -c.leads() & (state.get(refHolder) ^ refWord(i+1) | granted ^ c.get(refToken))
		wrong |= (granted - c.get(refToken) | granted - c.get(refRpcToken) | granted - c.get(refWrite)) & 4
	}
	return wrong != 0
}

// sort gives the least state that differs from this one only in which client is
// which: the clients by size, and of several equal ones the first is the holder.
func (w *refWalker) sort(state refWord) refWord {
	var sorted [refAllClients]refWord
	all := sorted[:w.clients]
	for i := range all {
		all[i] = state.client(i)
	}
	slices.Sort(all)
	next := state
	for i, c := range all {
		next = next.withClient(i, c)
	}
	if h := state.get(refHolder); h > 0 {
		next = next.with(refHolder, refWord(slices.Index(all, state.client(int(h-1)))+1))
	}
	return next
}

var (
	refS = reference{clients: 2, tokens: 1, lag: 1, pause: true}
	refM = reference{clients: 2, tokens: 2, lag: 1, pause: true}
	refL = reference{clients: 2, now: 20, tokens: 2, lag: 1, pause: true}
	refA = reference{clients: 3, tokens: 2}
	refB = reference{clients: 3, now: 20, tokens: 1, pause: true}
	refC = reference{clients: 3, tokens: 1, lag: 1, pause: true}
)

func (r reference) symmetric() reference {
	r.sorted = true
	return r
}

func (r reference) with(m refMutant) reference {
	r.mutant = m
	return r
}

func (r reference) explore(ctx context.Context) model.Exploration {
	return model.Explore(ctx, r, model.ExploreOptions{Width: 8})
}

// The counts that Spin 6.5.2, TLC and a Go program agreed on. The number of
// transitions with symmetry depends on how steps are told apart, so it is not
// among them.
func TestReferenceCounts(t *testing.T) {
	const (
		always = iota
		full   // takes a second or more
		long   // takes ten
	)
	for _, c := range []struct {
		name                string
		config              reference
		cost                int
		states, transitions uint64
		depth               int
	}{
		{"S", refS, always, 144_544, 1_210_360, 18},
		{"M", refM, always, 1_185_296, 11_097_328, 26},
		{"M symmetric", refM.symmetric(), always, 592_744, 0, 26},
		{"A", refA, full, 1_429_065, 13_302_213, 26},
		{"A symmetric", refA.symmetric(), full, 244_776, 0, 26},
		{"C", refC, full, 7_745_120, 89_018_480, 21},
		{"C symmetric", refC.symmetric(), full, 1_327_768, 0, 21},
		{"L", refL, long, 19_796_524, 182_614_704, 39},
		{"L symmetric", refL.symmetric(), long, 9_900_065, 0, 39},
		{"B", refB, long, 16_089_768, 160_479_980, 37},
		{"B symmetric", refB.symmetric(), long, 2_837_076, 0, 37},
	} {
		t.Run(c.name, func(t *testing.T) {
			switch {
			case raceEnabled && c.config != refS:
				t.Skip("under the race detector only S")
			case testing.Short() && c.cost > always:
				t.Skip("not with -short")
			case c.cost == long && os.Getenv("FENCEPOST_LONG") != "1":
				t.Skip("takes some ten seconds; set FENCEPOST_LONG=1 to run it")
			}
			x := c.config.explore(t.Context())
			if !x.Complete || !x.Exact || x.States != c.states || x.Depth != c.depth || c.transitions > 0 && x.Transitions != c.transitions {
				t.Errorf("complete %v, exact %v, %d states, %d transitions, depth %d; want true, true, %d, %d, %d",
					x.Complete, x.Exact, x.States, x.Transitions, x.Depth, c.states, c.transitions, c.depth)
			}
			if perState := float64(x.Memory) / float64(x.States); perState > 32 {
				t.Errorf("%.1f bytes a state at the peak, more than 32", perState)
			}
			if total := x.Total(); len(total) != refSteps && c.config != refA && c.config != refA.symmetric() {
				t.Errorf("steps by label: %d; some kind of step is never taken", total)
			}
		})
	}
}

// The lengths that the same three tools agreed on.
func TestReferenceMutantsFallAtTheKnownDepth(t *testing.T) {
	if raceEnabled {
		t.Skip("slow under the race detector")
	}
	for _, c := range []struct {
		name   string
		mutant refMutant
		length int
	}{
		{"no margin for drift", refNoMargin, 6},
		{"lease dated from the reply", refFromReply, 7},
		{"storage without its check", refNoFencing, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := refM.with(c.mutant)
			if x := config.explore(t.Context()); !x.Failed || x.FailDepth != c.length || x.Complete {
				t.Errorf("Explore: failed %v at depth %d, complete %v; want true, %d, false", x.Failed, x.FailDepth, x.Complete, c.length)
			}
			p, ok := model.Shortest(t.Context(), config, model.ExploreOptions{Width: 8})
			if !ok || len(p.Steps) != c.length {
				t.Fatalf("Shortest: found %v, %d steps; want %d", ok, len(p.Steps), c.length)
			}
		})
	}
}

func TestReferenceCountsDoNotDependOnWorkers(t *testing.T) {
	var first model.Exploration
	for i, workers := range []int{1, 2, 5} {
		x := model.Explore(t.Context(), refS, model.ExploreOptions{Width: 8, Workers: workers})
		x.Memory = 0 // the peak depends on who fills which chunk
		if i == 0 {
			first = x
		} else if !reflect.DeepEqual(x, first) {
			t.Errorf("%d workers:\n got %+v\nwant %+v", workers, x, first)
		}
	}
	// Under hashes, of any length, the counts are those of exact fingerprints.
	x := model.Explore(t.Context(), refS, model.ExploreOptions{})
	if x.Exact || x.Collision == 0 || x.States != first.States || x.Transitions != first.Transitions {
		t.Errorf("hashed: exact %v, collision %g, %d states, %d transitions", x.Exact, x.Collision, x.States, x.Transitions)
	}
}
