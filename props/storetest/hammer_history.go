package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// linearizabilityPart of 100 calls are for Linearizability.
const linearizabilityPart = 10

// historyCalls is about how long a history is. One ends soon after a violation,
// so that the next need not be made, and little is left to reduce.
const historyCalls = 200

// searchMemory bounds the search for an order of one history, in bytes. A
// correct store's needs a few hundred kilobytes.
const searchMemory = 64 << 20

// Linearizability is a check of histories: several goroutines do random calls on
// two leases, all the while that the clock of Concurrency yields, and what they
// called and were answered is recorded. There must be one order of the calls,
// each at an instant between its call and its answer, in which every answer is
// that of a lease that is asked one thing at a time (Herlihy and Wing 1990; the
// search is that of Wing and Gong 1993 and Lowe 2017, with time). What else must
// hold of tokens and tenures is looked at too.
func Linearizability(open script.Open, o kit.Options, e kit.Effort) kit.Check {
	budget := o.Budget(e, linearizabilityPart)
	return kit.Check{Name: "linearizability", Run: func() (out kit.Outcome) {
		err := kit.Attempt(func() {
			var h hammer
			h.open(open, o)
			defer h.lab.Close()
			out = h.histories(budget, e.Seed)
		})
		if err != nil {
			return kit.Outcome{Unknown: err.Error()}
		}
		return out
	}}
}

// histories records and checks histories until a number of calls was made.
func (h *hammer) histories(budget int, seed uint64) kit.Outcome {
	var did activity
	for did.calls < budget || did.histories == 0 {
		h.next()
		r := newRecording(h, seed+uint64(h.round))
		r.record(min(budget-did.calls, historyCalls))
		hist, err := r.history()
		if err != nil {
			return kit.Outcome{Unknown: fmt.Sprintf("the history cannot be read: %v", err)}
		}
		o := linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}, Memory: searchMemory}
		v, err := linearizability.Check(context.Background(), hist, o)
		switch {
		case err != nil:
			return kit.Outcome{Unknown: fmt.Sprintf("the history makes no sense: %v", err)}
		case v.Result == linearizability.Violated:
			return kit.Outcome{Failure: h.convict(hist, o)}
		case v.Result == linearizability.Unknown:
			return kit.Outcome{Unknown: v.Reason}
		}
		did.add(&hist, v.Activity)
	}
	return did.outcome()
}

// activity is what happened in the histories.
type activity struct {
	histories, calls, overlapping, takeovers, refusals, unknown int
	unsure                                                      string // one of unknown outcome
}

func (a *activity) add(h *linearizability.History, did linearizability.Activity) {
	a.histories++
	a.takeovers += did.Takeovers
	open := 0
	for i := range h.Events {
		switch e := &h.Events[i]; e.Type {
		case linearizability.Invoke:
			a.calls++
			if open > 0 {
				a.overlapping++
			}
			open++
		case linearizability.Fail:
			a.refusals++
			open--
		case linearizability.Info:
			a.unknown++
			a.unsure = e.F + " → " + word(e, "error")
			open--
		default:
			open--
		}
	}
}

// outcome is that of histories that hold: no pass if nothing happened in them.
// The first calls of a history are such that a correct store, whose outcomes are
// known, has refused and has changed hands.
func (a *activity) outcome() kit.Outcome {
	var lacks string
	switch {
	case a.takeovers == 0:
		lacks = "no lease changed hands"
	case a.refusals == 0:
		lacks = "nothing was refused"
	case a.overlapping == 0:
		lacks = "no two calls were under way at once"
	default:
		return kit.Outcome{Covered: fmt.Sprintf("%d calls, %d while others were under way; %d takeovers, %d refusals",
			a.calls, a.overlapping, a.takeovers, a.refusals)}
	}
	if a.unknown > 0 {
		lacks += fmt.Sprintf("; %d of %d outcomes were unknown, such as %s", a.unknown, a.calls, oneLine(a.unsure))
	}
	return kit.Outcome{Unknown: fmt.Sprintf("too little happened in %d calls: %s", a.calls, lacks)}
}

// recording is one history in the making.
type recording struct {
	h       *hammer
	buf     bytes.Buffer
	r       *linearizability.Recorder
	rng     *rand.Rand
	clients [3]client
	keys    [2]string
	ttls    []time.Duration
	err     error
}

// client is one that calls.
type client struct {
	store  lease.Store // recorded
	get    bool
	keys   [2]string
	ttls   []time.Duration
	rng    *rand.Rand
	holder lease.Holder
	token  [2]lease.Token // of its latest grant of each lease
	has    [2]bool        // and so far nothing says that it lost it
	until  [2]time.Duration
	now    time.Duration // which stands while it calls
}

func newRecording(h *hammer, seed uint64) *recording {
	r := &recording{h: h, rng: rand.New(rand.NewPCG(seed, 0)), keys: [2]string{h.resource("p"), h.resource("q")}}
	r.ttls = []time.Duration{h.ttl, wholeTTL(h.o, h.ttl+h.ttl/2), 2 * h.ttl}
	meta := linearizability.DefaultMeta()
	meta.Late, meta.LockDelay, meta.RenewAfterLapse = int64(h.o.Late), int64(h.o.LockDelay), h.o.RenewAfterLapse
	if h.o.Tokens == model.TokensRising {
		meta.Tokens = linearizability.TokensRising
	}
	clk, began := h.lab.Clock(), h.began
	r.r, r.err = linearizability.NewRecorder(&r.buf, meta, func() time.Duration { return clk.Now() - began })
	for i := range r.clients {
		r.clients[i] = client{
			store: record.Store(plainStore{h.store}, r.r), get: !h.o.NoGet,
			keys: r.keys, ttls: r.ttls, rng: rand.New(rand.NewPCG(seed, uint64(i)+1)),
			holder: h.candidate(nodes[i]),
		}
	}
	return r
}

// leastBursts is how many bursts of calls a history has at least: enough that
// some calls overlap however the scheduler treats them.
const leastBursts = 16

// record makes about n calls: in bursts, between which time passes.
func (r *recording) record(n int) {
	if r.err != nil {
		return
	}
	h := r.h
	whole := 2*h.ttl + h.o.Late + h.o.LockDelay
	r.burst(func(c *client) { c.acquire(h.ctx, 0, c.ttls[0]) })
	h.lab.Advance(whole)
	r.burst(func(c *client) { // a takeover
		if !c.has[0] {
			c.acquire(h.ctx, 0, c.ttls[0])
		}
	})
	const calls = 2 // of each client in a burst
	for range max(n/(calls*len(r.clients)), leastBursts) {
		r.burst(func(c *client) {
			for range calls {
				c.call(h.ctx)
			}
		})
		r.pass(whole)
	}
}

func (r *recording) burst(f func(*client)) {
	fs := make([]func(), len(r.clients))
	for i := range fs {
		c := &r.clients[i]
		c.now = r.h.lab.Clock().Now()
		fs[i] = func() { f(c) }
	}
	r.h.together(fs...)
}

// pass lets time pass, or none: often exactly to where a tenure should lapse, or
// to just before that.
func (r *recording) pass(whole time.Duration) {
	now := r.h.lab.Clock().Now()
	c := &r.clients[r.rng.IntN(len(r.clients))]
	lapse := c.until[r.rng.IntN(len(c.until))] - now
	var d time.Duration
	switch k := r.rng.IntN(8); {
	case k < 2 && lapse > 0:
		d = lapse - time.Duration(k) // at it, or 1ns before
	case k < 3 && lapse > 0:
		d = lapse + r.h.o.Late + r.h.o.LockDelay
	case k < 4:
		d = r.h.ttl / 4
	case k < 5:
		d = whole
	}
	if d > 0 {
		r.h.lab.Advance(d)
	}
}

// call makes one random call.
func (c *client) call(ctx context.Context) {
	i := c.rng.IntN(len(c.keys))
	ttl := c.ttls[c.rng.IntN(len(c.ttls))]
	switch k := c.rng.IntN(10); {
	case k < 2 && c.get:
		c.store.Get(ctx, c.keys[i])
	case c.has[i] && k < 6 || !c.has[i] && c.token[i] > 0 && k == 2:
		_, err := c.store.Renew(ctx, c.keys[i], c.holder, c.token[i], ttl)
		c.told(i, ttl, err)
	case c.has[i] && k < 9 || !c.has[i] && c.token[i] > 0 && k == 3:
		if err := c.store.Release(ctx, c.keys[i], c.holder, c.token[i]); err != nil {
			c.told(i, 0, err)
		} else {
			c.has[i] = false
		}
	default:
		c.acquire(ctx, i, ttl)
	}
}

func (c *client) acquire(ctx context.Context, i int, ttl time.Duration) {
	g, err := c.store.Acquire(ctx, c.keys[i], c.holder, ttl)
	if err == nil {
		c.token[i] = g.Token
	}
	c.told(i, ttl, err)
}

// told takes an answer to heart.
func (c *client) told(i int, ttl time.Duration, err error) {
	if err == nil {
		c.has[i], c.until[i] = true, c.now+ttl
		return
	}
	c.has[i] = false
	// Some come back as another incarnation, some as the same one.
	if c.rng.IntN(2) == 0 && c.has == [2]bool{} {
		c.holder = c.holder.Next()
		c.token = [2]lease.Token{}
	}
}

// history is what was recorded.
func (r *recording) history() (linearizability.History, error) {
	if r.err == nil {
		r.err = r.r.Flush()
	}
	if r.err != nil {
		return linearizability.History{}, r.err
	}
	return linearizability.Read(&r.buf, "history")
}

// plainStore is a store whose answers can be written down: what is odd about an
// answer by itself is for the checks of the rules to tell.
type plainStore struct{ lease.Store }

func (s plainStore) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, holder, ttl)
	var held *lease.HeldError
	var delay *lease.DelayError
	var invalid *lease.InvalidError
	return plainGrant(g, ttl), plainRefusal(err, &held, &delay, &invalid)
}

func (s plainStore) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Renew(ctx, resource, holder, token, ttl)
	var lapsed *lease.LapsedError
	var lost *lease.LostError
	var invalid *lease.InvalidError
	return plainGrant(g, ttl), plainRefusal(err, &lapsed, &lost, &invalid)
}

func (s plainStore) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	var lapsed *lease.LapsedError
	var lost *lease.LostError
	var invalid *lease.InvalidError
	return plainRefusal(s.Store.Release(ctx, resource, holder, token), &lapsed, &lost, &invalid)
}

// plainGrant is g for what its holder may count on: no longer than it asked for.
func plainGrant(g lease.Grant, ttl time.Duration) lease.Grant {
	if g.TTL <= 0 || g.TTL > ttl {
		g.TTL = ttl
	}
	return g
}

// plainRefusal is an error that is among those that an operation may be refused
// with, or else one that says nothing.
func plainRefusal(err error, refusals ...any) error {
	for _, r := range refusals {
		if err == nil || errors.As(err, r) {
			return err
		}
	}
	return errors.New(oneLine(strings.ToValidUTF8(err.Error(), "?")))
}

// convict shows the smallest part of a violated history that is violated by
// itself.
func (h *hammer) convict(hist linearizability.History, o linearizability.Options) *kit.Failure {
	ctx := context.Background()
	if small, err := linearizability.Reduce(ctx, hist, o); err == nil {
		hist = small
	}
	f := &kit.Failure{
		Rule: "linearizability",
		Says: "There must be an order of the calls, each between when it was called and when it was answered, in which every answer is right: " +
			"those who call at the same time must not see the store in the middle of another's call.",
		What: "no order of the calls explains the marked answer",
		Read: "go doc fencepost/linearizability; fencepost check FILE draws it",
		Log:  h.lab.Log(),
	}
	bad := int64(-1)
	if v, err := linearizability.Check(ctx, hist, o); err == nil {
		for _, p := range v.Partitions {
			if p.Result == linearizability.Violated {
				bad = p.Index
			}
		}
		if found := telling(v.Findings); found != nil {
			f.What = fmt.Sprintf("%s: %s", found.Check, inWords(&hist, found.Text))
			if n := len(found.Indexes); bad < 0 && n > 0 {
				bad = found.Indexes[n-1]
			}
		}
	}
	f.Story = tellHistory(&hist, bad)
	var file bytes.Buffer
	if err := hist.WriteJSON(&file); err == nil {
		sum := fnv.New32a()
		sum.Write(file.Bytes())
		f.File = &kit.File{Name: fmt.Sprintf("linearizability-%08x.jsonl", sum.Sum32()), Data: file.Bytes()}
	}
	return f
}

// telling is the finding that says best what went wrong, nil if there is none:
// about tokens before what it led to.
func telling(found []linearizability.Finding) *linearizability.Finding {
	var best *linearizability.Finding
	for i := range found {
		f := &found[i]
		if f.Violates && (best == nil || f.Invariant == model.TokenMonotonicity && best.Invariant != model.TokenMonotonicity) {
			best = f
		}
	}
	return best
}

// tellHistory is a history as a story, with the event of that index marked.
func tellHistory(h *linearizability.History, bad int64) []string {
	var lines []storyLine
	var began int64
	if len(h.Events) > 0 {
		began = h.Events[0].Time
	}
	for _, op := range h.Ops() {
		call := &h.Events[op.Call]
		l := storyLine{at: int64(op.Call) + 1, did: fmt.Sprintf("at %v  %s", time.Duration(call.Time-began), askedIn(call)), got: "(answer does not matter)"}
		if op.Return >= 0 {
			e := &h.Events[op.Return]
			l.until, l.got, l.bad = int64(op.Return)+1, answeredIn(e), e.Index == bad
		}
		lines = append(lines, l)
	}
	return layOut(lines, 0)
}

func askedIn(e *linearizability.Event) string {
	who, key := nameIn(e, "owner"), keyIn(e)
	ttl, _ := e.Field("ttl").Int()
	switch e.F {
	case "acquire":
		return fmt.Sprintf("%s acquires %s for %v", who, key, time.Duration(ttl))
	case "renew":
		return fmt.Sprintf("%s renews %s under token %s for %v", who, key, word(e, "token"), time.Duration(ttl))
	case "release":
		return fmt.Sprintf("%s releases %s under token %s", who, key, word(e, "token"))
	}
	return "who has " + key + "?"
}

func answeredIn(e *linearizability.Event) string {
	holder := nameIn(e, "holder")
	switch {
	case e.Type == linearizability.Info:
		return "error: " + oneLine(word(e, "error"))
	case e.Type == linearizability.Fail && holder != "":
		return "refused: held by " + holder
	case e.Type == linearizability.Fail:
		return "refused: " + word(e, "error")
	case e.F == "acquire":
		return "granted, token " + word(e, "token")
	case e.F == "get" && nameIn(e, "owner") == "":
		return "nobody"
	case e.F == "get":
		return fmt.Sprintf("%s, token %s", nameIn(e, "owner"), word(e, "token"))
	}
	return e.F + "d"
}

// word is the text of a field.
func word(e *linearizability.Event, field string) string {
	v := e.Field(field)
	if s, ok := v.Word(); ok {
		return s
	}
	return v.String()
}

func keyIn(e *linearizability.Event) string {
	name, _, _ := strings.Cut(word(e, "key"), "-")
	return name
}

// nameIn is the candidate that a field names, "" for nobody: the node, and which
// of its incarnations unless it is the first.
func nameIn(e *linearizability.Event, field string) string {
	if e.Field(field).IsNil() {
		return ""
	}
	text := word(e, field)
	h, err := lease.ParseHolder(text)
	switch {
	case err != nil:
		return text
	case h.Seq <= 1:
		return h.Node
	}
	return fmt.Sprintf("%s.%d", h.Node, h.Seq)
}

// inWords is a sentence about a history with its names as stories have them.
func inWords(h *linearizability.History, text string) string {
	for i := range h.Events {
		e := &h.Events[i]
		for _, field := range [...]string{"owner", "holder"} {
			if name := nameIn(e, field); name != "" {
				text = strings.ReplaceAll(text, `"`+word(e, field)+`"`, name)
			}
		}
		if key := word(e, "key"); e.Type == linearizability.Invoke {
			text = strings.ReplaceAll(text, `"`+key+`"`, keyIn(e))
		}
	}
	return text
}
