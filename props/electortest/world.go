package electortest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// setup is what a world is made of.
type setup struct {
	start    func(Env) Candidate
	o        Options
	clients  int
	sameName bool          // all clients have one node name
	store    storeRate     // of the store's clock, against the bubble's
	linger   time.Duration // how long work takes to stop
	delay    time.Duration // the store's lock delay
	first    lease.Token   // the first token; 0: 1
	fate     func(*call) fate
	judges   kinds // what is judged; what else is wrong is for other checks to say
}

// storeRate is how the store's clock runs against that of the clients.
type storeRate string

const (
	rateTrue storeRate = "true"
	rateFast storeRate = "fast" // as fast as MaxDriftRate allows
	rateSlow storeRate = "slow" // as slow, the other way about
)

// world is one bubble's store, clients and onlooker. One goroutine, which
// calls run, does all that happens in it: requests wait until it lets them
// land, and it does so only when every goroutine of the clients has come to
// rest. So what happens depends neither on the scheduler nor on the machine.
type world struct {
	setup
	origin   time.Time
	wake     chan struct{} // something is in the inbox, or has changed in a process
	over     chan struct{} // closed at the end, for work whose context never ends
	beats    *atomic.Uint64
	tale     *tale
	num, den uint64        // the rate of the store's clock
	skipped  time.Duration // by which the store's clock has jumped

	queue   []event
	rec     lease.Record
	tenures map[lease.Token]*tenure
	owners  map[lease.Holder]*process // who used a holder first
	slots   []slot
	procs   []*process // also those that have ended
	terms   []*term
	open    []*call // not answered yet
	calls   int
	calm    bool        // nothing goes wrong any more
	breach  *breach     // the first
	unknown string      // why nothing can be said
	ending  bool        // nothing is judged any more
	enough  func() bool // ends run early; nil: never

	asking atomic.Bool // an IsLeader is running
	called atomic.Bool // the store was called meanwhile

	mu       sync.Mutex // guards what the clients' goroutines share with the onlooker's:
	inbox    []*call
	stopping []*work // whose context has ended, and which linger from now on
	closed   bool
	guard    fence.Guard
	data     map[string]string
	// and, of each process, works, returned.
}

type event struct {
	at time.Duration
	do func()
}

// call is one request of a process.
type call struct {
	proc     *process
	n        int    // among those of its slot
	claim    int    // how many acquires and renewals of its slot came before it
	led      bool   // its slot has led before
	serial   int    // among all, from 1
	resource string // empty: of the storage
	op       lease.Op
	holder   lease.Holder
	token    lease.Token
	ttl      time.Duration
	sent     time.Duration
	ctx      context.Context

	taken   chan struct{} // closed once fate is known
	reply   chan answer
	left    atomic.Bool // the caller waits no more
	fate    fate
	answer  answer
	failure error       // instead of the answer, if it is lost
	told    lease.Token // the tenure that the answer tells the end of
	owner   *process    // whose holder it asks as, if not its own
	working bool        // work under the token went on when it was made
}

type answer struct {
	grant lease.Grant
	seen  lease.Observation
	err   error
	words string
}

func newWorld(s setup, t *tale, beats *atomic.Uint64) *world {
	w := &world{
		setup: s, origin: time.Now(), beats: beats, tale: t,
		wake: make(chan struct{}, 1), over: make(chan struct{}),
		tenures: map[lease.Token]*tenure{}, owners: map[lease.Holder]*process{}, data: map[string]string{},
		num: 1, den: 1,
	}
	// Rounded so that the store is never faster than the bound.
	slow := 1e9 - uint64(s.o.Config.MaxDriftRate*1e9)
	switch s.store {
	case rateFast:
		w.num, w.den = 1e9, slow
	case rateSlow:
		w.num, w.den = slow, 1e9
	}
	w.rec.Token = max(s.first, 1) - 1
	for i := range s.clients {
		name := "client"
		if s.clients > 1 {
			name += " " + string(rune('a'+i))
		}
		w.slots = append(w.slots, slot{name: name})
	}
	return w
}

func (w *world) now() time.Duration { return time.Since(w.origin) }

// storeNow is what the store's clock reads.
func (w *world) storeNow() time.Duration {
	hi, lo := bits.Mul64(uint64(w.now()), w.num)
	q, _ := bits.Div64(hi, lo, w.den)
	return time.Duration(q) + w.skipped
}

// when is the first instant at which the store's clock reads at.
func (w *world) when(at time.Duration) time.Duration {
	if at <= w.skipped {
		return 0
	}
	hi, lo := bits.Mul64(uint64(at-w.skipped), w.den)
	q, rest := bits.Div64(hi, lo, w.num)
	if rest > 0 {
		q++
	}
	return time.Duration(q)
}

// long is how long d of the store's clock takes.
func (w *world) long(d time.Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(d), w.den)
	q, _ := bits.Div64(hi, lo, w.num)
	return time.Duration(q)
}

// after lets do happen in d. What is due at one instant happens in the order
// of these calls.
func (w *world) after(d time.Duration, do func()) {
	at := w.now() + d
	i := len(w.queue)
	for i > 0 && w.queue[i-1].at > at {
		i--
	}
	w.queue = slices.Insert(w.queue, i, event{at, do})
}

// look has the onlooker look at the instant at.
func (w *world) look(at time.Duration) {
	if d := at - w.now(); d > 0 {
		w.after(d, func() {})
	}
}

// run lets everything happen that does until the instant until, or until a
// rule is broken.
func (w *world) run(until time.Duration) {
	for {
		w.settle()
		if w.breach != nil && !w.ending || w.enough != nil && w.enough() {
			return
		}
		now := w.now()
		if len(w.queue) > 0 && w.queue[0].at <= now {
			do := w.queue[0].do
			w.queue = w.queue[1:]
			do()
			continue
		}
		if now >= until {
			return
		}
		next := until
		if len(w.queue) > 0 {
			next = min(next, w.queue[0].at)
		}
		timer := time.NewTimer(next - now)
		select {
		case <-timer.C:
		case <-w.wake:
			timer.Stop()
		}
	}
}

// settle waits until all clients have come to rest at this instant. Each time
// they do, the onlooker looks at them, and then their requests are taken.
func (w *world) settle() {
	for {
		w.beats.Add(1)
		synctest.Wait()
		w.observe()
		w.mu.Lock()
		calls, works := w.inbox, w.stopping
		w.inbox, w.stopping = nil, nil
		w.mu.Unlock()
		// Not by a timer of its own: it could go off at the same instant as one
		// of the client's, in either order.
		slices.SortStableFunc(works, func(a, b *work) int {
			return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.token, b.token))
		})
		for _, k := range works {
			w.after(w.linger, func() { close(k.stopped) })
		}
		if len(calls) == 0 {
			return
		}
		// The order in which goroutines got here means nothing.
		slices.SortStableFunc(calls, func(a, b *call) int {
			return cmp.Or(cmp.Compare(a.proc.slot, b.proc.slot), cmp.Compare(a.op, b.op), cmp.Compare(a.token, b.token),
				cmp.Compare(a.holder.String(), b.holder.String()), cmp.Compare(a.ttl, b.ttl))
		})
		w.tale.taken()
		for _, c := range calls {
			w.take(c)
		}
	}
}

// flood is how many calls of one client at one instant are too many.
const flood = 100

// take lets a request that was made go its way.
func (w *world) take(c *call) {
	s := &w.slots[c.proc.slot]
	c.n, c.claim, c.led = s.calls, s.claims, s.led
	s.calls++
	if c.claims() {
		s.claims++
	}
	w.calls++
	c.serial = w.calls
	if s.pulse != w.now() || s.pulses == 0 {
		s.pulse, s.pulses = w.now(), 0
	}
	s.pulses++
	if !w.calm && w.fate != nil {
		c.fate = w.fate(c)
	}
	if c.resource != "" && c.resource != resource && w.unknown == "" {
		w.unknown = fmt.Sprintf("%s asks for the lease %q, and there is only Env.Resource, %q", w.subject(c.proc), c.resource, resource)
	}
	w.judgeCall(c)
	if s.pulses > flood {
		// Time would never go on.
		c.fate = fate{Lost: lostRequest, Hang: true, Deaf: true}
		w.fail(kindFlood, c.proc, fmt.Sprintf("%s calls the store more than %d times at one instant: it tries again at once, without end", w.subject(c.proc), flood))
	}
	if words := c.fate.words(); words != "" {
		text, key := c.asks()+" ("+words+")", ""
		if c.fate.Lost == lostRequest {
			key = text // there is no more to tell of it
		}
		w.tell(s.name, text, key)
	}
	close(c.taken)
	f := c.fate
	w.open = append(w.open, c)
	if f.Lost == lostRequest {
		if !f.Hang {
			w.after(f.Request+f.Answer, func() { w.deliver(c) })
		}
		return
	}
	w.after(f.Request, func() { w.land(c) })
	if f.Copy > 0 {
		w.after(f.Request+f.Copy, func() { w.landCopy(c) })
	}
}

func (w *world) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// heal ends all that goes wrong. What hangs fails.
func (w *world) heal() {
	w.calm = true
	for _, c := range slices.Clone(w.open) {
		if c.fate.Hang {
			w.drop(c, errLost)
		}
	}
}

// drop fails a call whose answer is not waited for.
func (w *world) drop(c *call, err error) {
	c.fate.Lost, c.failure = lostAnswer, err
	w.deliver(c)
}

// errClosed answers what is asked after the end.
var errClosed = errors.New("the store is gone")

// finish stops every process, and reports whether all of them did stop.
func (w *world) finish() bool {
	w.ending = true
	w.heal()
	for _, p := range w.procs {
		w.stop(p)
	}
	w.enough = func() bool {
		return !slices.ContainsFunc(w.procs, func(p *process) bool { return !p.gone })
	}
	w.run(w.now() + 10*w.o.Config.TTL + w.linger)
	stopped := w.enough()
	w.enough = nil
	w.mu.Lock()
	w.closed = true
	for _, c := range w.inbox {
		close(c.taken)
		c.reply <- answer{err: errClosed}
	}
	w.inbox = nil
	w.mu.Unlock()
	for _, c := range slices.Clone(w.open) {
		w.drop(c, errClosed)
	}
	close(w.over)
	w.settle()
	return stopped
}

// stamp puts the instant into the log instead of the time of day.
func (w *world) stamp(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.String(slog.TimeKey, w.now().String())
	}
	return a
}

func (w *world) tell(who, what, key string) { w.tale.add(w.now(), who, what, key) }

func (c *call) asks() string {
	switch c.op {
	case lease.OpAcquire:
		return "asks to acquire for " + c.ttl.String()
	case lease.OpRenew:
		return "asks to renew token " + strconv.FormatUint(uint64(c.token), 10)
	case lease.OpRelease:
		return "asks to release token " + strconv.FormatUint(uint64(c.token), 10)
	case lease.OpFence:
		return "fences token " + strconv.FormatUint(uint64(c.token), 10) + " at the storage"
	}
	return "asks who holds the lease"
}
