package livetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
	"fencepost/model"
	"fencepost/props/kit"
)

// trial asks about one lease, and says at each answer what a correct store gives.
// An answer that is another convicts only where no instants at which the calls
// may have taken effect explain it: where the machine was slow, others are right
// too, and then the trial is made again.
type trial struct {
	w     *world[lease.Store]
	o     Options
	ttl   time.Duration
	rule  model.Rule // what is told of an answer that no step expects
	lease string
	began time.Duration
	more  time.Duration // for which the store may hold leases beside Options

	buf   bytes.Buffer
	rec   *linearizability.Recorder
	lines []line
}

// answer is what the store gave to one call.
type answer struct {
	code      lease.Code // CodeNone: no answer
	grant     lease.Grant
	seen      lease.Observation
	err       error
	call, ret time.Duration
}

// How a trial ends early: the store is convicted, or nothing was proved, or the
// trial does not apply.
type (
	conviction struct{ failure *kit.Failure }
	unproved   string
	skipped    string
)

const (
	attempts  = 3
	readStore = "go doc fencepost/impl/lease Store"
)

// try makes a trial, and again with a longer TTL where it proves nothing.
func try(w *world[lease.Store], o Options, more time.Duration, rule model.Rule, f func(*trial)) (out kit.Outcome) {
	ttl := o.TTL
	for range attempts {
		t := &trial{w: w, o: o, ttl: ttl, rule: rule, more: more, lease: w.resource()}
		if out = t.run(f); out.Unknown == "" {
			return out
		}
		ttl *= 2
	}
	return out
}

func (t *trial) run(f func(*trial)) (out kit.Outcome) {
	t.o.Options = t.o.For(t.w.process(0))
	t.began = t.w.clk.Now()
	var err error
	t.rec, err = linearizability.NewRecorder(&t.buf, metaOf(t.o, t.more), func() time.Duration { return t.w.clk.Now() - t.began })
	if err != nil {
		return kit.Outcome{Unknown: err.Error()}
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case conviction:
			out = kit.Outcome{Failure: r.failure}
		case unproved:
			out = kit.Outcome{Unknown: string(r)}
		case skipped:
			out = kit.Outcome{Skipped: string(r)}
		default:
			panic(r)
		}
	}()
	f(t)
	if v := t.judge(); v.Result != linearizability.Holds {
		t.end(t.rule, "an answer that some order of the calls explains", v)
	}
	return kit.Outcome{Covered: fmt.Sprintf("%d answers in %v", t.answers(), (t.w.clk.Now() - t.began).Round(time.Millisecond))}
}

// drift is the most by which the clocks of the store and of the checks run apart
// in parts per billion: NTP slews by 500 ppm.
const drift = 1_000_000

// metaOf is what the store promises, and more.
func metaOf(o Options, more time.Duration) linearizability.Meta {
	m := linearizability.DefaultMeta()
	m.Drift, m.Late, m.LockDelay = drift, int64(o.slack()+more), int64(o.LockDelay)
	m.RenewAfterLapse = o.RenewAfterLapse
	if o.Tokens == model.TokensRising {
		m.Tokens = linearizability.TokensRising
	}
	return m
}

// slack is how long after its TTL a tenure may be held.
func (o Options) slack() time.Duration { return o.Late + o.Granularity + o.Latency }

// over is when nobody holds a lease any more that was granted for ttl at ret, at
// the latest.
func (t *trial) over(a answer) time.Duration {
	ttl := a.grant.TTL + t.o.slack() + t.more
	return a.ret + ttl + ttl/500
}

// candidate is somebody who asks, by one of the processes.
type candidate struct {
	t       *trial
	holder  lease.Holder
	process int
}

// candidate is one that there was not. Those of one process share a store.
func (t *trial) candidate(node string, process int) *candidate {
	return &candidate{t, t.w.holder(node), process}
}

// at is the same candidate, whose requests come from another process.
func (c *candidate) at(process int) *candidate { return &candidate{c.t, c.holder, process} }

// next is its next incarnation.
func (c *candidate) next() *candidate { return &candidate{c.t, c.holder.Next(), c.process} }

func (c *candidate) acquire(ttl time.Duration) answer {
	return c.ask(context.Background(), lease.Request{Op: lease.OpAcquire, TTL: ttl})
}

func (c *candidate) renew(token lease.Token, ttl time.Duration) answer {
	return c.ask(context.Background(), lease.Request{Op: lease.OpRenew, Token: token, TTL: ttl})
}

func (c *candidate) release(token lease.Token) answer {
	return c.ask(context.Background(), lease.Request{Op: lease.OpRelease, Token: token})
}

func (c *candidate) get() answer {
	if c.t.o.NoGet {
		panic(skipped("the store has no Get"))
	}
	return c.ask(context.Background(), lease.Request{Op: lease.OpGet})
}

// ask makes one call, on record.
func (c *candidate) ask(ctx context.Context, req lease.Request) (a answer) {
	t := c.t
	req.Holder = c.holder
	asked := describe(req)
	var store lease.Store = plain{t.w.process(c.process), t.w.clk}
	if !senseless(req) { // whose answer is judged without the others, and cannot be written down
		store = record.Store(store, t.rec)
	}
	a.call = t.w.clk.Now()
	switch req.Op {
	case lease.OpAcquire:
		a.grant, a.err = store.Acquire(ctx, t.lease, req.Holder, req.TTL)
	case lease.OpRenew:
		a.grant, a.err = store.Renew(ctx, t.lease, req.Holder, req.Token, req.TTL)
	case lease.OpRelease:
		a.err = store.Release(ctx, t.lease, req.Holder, req.Token)
	case lease.OpGet:
		a.seen, a.err = store.Get(ctx, t.lease)
	}
	a.ret = t.w.clk.Now()
	a.code = codeOf(req.Op, &a)
	t.tell(a.call, asked, a.says())
	if f := fault(asked, a.err); f != nil {
		f.Story, f.Log = t.story(""), t.w.log.String()
		panic(conviction{f})
	}
	if setup, ok := errors.AsType[*kit.SetupError](a.err); ok {
		panic(setup)
	}
	if a.code == lease.CodeGranted && !senseless(req) {
		t.granted(req, a)
	}
	return a
}

// senseless is whether req is refused whatever the state.
func senseless(req lease.Request) bool {
	switch req.Op {
	case lease.OpAcquire:
		return req.Holder.IsZero() || req.TTL <= 0
	case lease.OpRenew:
		return req.Holder.IsZero() || req.TTL <= 0 || req.Token == 0
	case lease.OpRelease:
		return req.Holder.IsZero() || req.Token == 0
	}
	return false
}

// granted looks at what a grant says by itself.
func (t *trial) granted(req lease.Request, a answer) {
	g := a.grant
	switch {
	case g.Holder != req.Holder:
		t.convict(model.RuleGrantHolder, fmt.Sprintf("a grant to %v", named(req.Holder)))
	case g.TTL <= 0:
		t.convict(model.RuleGrantTTL, "a grant that says for how long")
	case g.Token == 0:
		t.convict(model.RuleTokenNext, "a token from 1 on")
	case req.Op == lease.OpRenew && g.Token != req.Token:
		t.convict(model.RuleRenewKeepsToken, fmt.Sprintf("token %d", req.Token))
	}
}

func codeOf(op lease.Op, a *answer) lease.Code {
	switch {
	case a.err != nil:
		return lease.Refusal(a.err)
	case op == lease.OpRelease:
		return lease.CodeReleased
	case op != lease.OpGet:
		return lease.CodeGranted
	case a.seen.Holder.IsZero():
		return lease.CodeFree
	}
	return lease.CodeHeld
}

// is whether the answer is one of these.
func (a answer) is(codes ...lease.Code) bool {
	for _, c := range codes {
		if a.code == c {
			return true
		}
	}
	return false
}

// notHeld is whether a renewal or release was refused.
func (a answer) notHeld() bool { return a.is(lease.CodeLapsed, lease.CodeLost) }

// answered ends the trial where there was no answer: the outcome is unknown.
func (t *trial) answered(a answer) {
	if a.code == lease.CodeNone {
		panic(unproved(fmt.Sprintf("no answer: %v", a.err)))
	}
}

// want is what a correct store answers, if all is in time.
func (t *trial) want(ok bool, rule model.Rule, format string, args ...any) {
	if ok {
		return
	}
	t.end(rule, fmt.Sprintf(format, args...), t.judge())
}

// end convicts if the judge does.
func (t *trial) end(rule model.Rule, want string, v linearizability.Verdict) {
	if v.Result == linearizability.Violated {
		t.convict(rule, want)
	}
	last := t.lines[len(t.lines)-1]
	panic(unproved(fmt.Sprintf("%s, and the answer was %q, which may be right with calls as slow as here; expected: %s", last.asked, last.answer, want)))
}

// convict is for an answer that is wrong at any instant.
func (t *trial) convict(rule model.Rule, want string) {
	last := t.lines[len(t.lines)-1]
	f := &kit.Failure{
		Rule: rule.String(), Says: rule.Says(), Read: readStore, Log: t.w.log.String(),
		What:  fmt.Sprintf("%s, and the answer was %q; expected: %s", last.asked, last.answer, want),
		Story: t.story(want),
	}
	t.rec.Flush()
	file := kit.NewFile("live", "jsonl", bytes.Clone(t.buf.Bytes()))
	f.File = &file
	panic(conviction{f})
}

// judge says whether any instants explain all answers so far.
func (t *trial) judge() linearizability.Verdict {
	if err := t.rec.Flush(); err != nil {
		panic(unproved(err.Error()))
	}
	h, err := linearizability.Read(bytes.NewReader(t.buf.Bytes()), "history")
	if err != nil {
		panic(unproved(fmt.Sprintf("the history cannot be read: %v", err)))
	}
	v, err := linearizability.Check(context.Background(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}})
	if err != nil {
		panic(unproved(fmt.Sprintf("the history makes no sense: %v", err)))
	}
	return v
}

// until waits for an instant of the world's clock.
func (t *trial) until(at time.Duration) { sleep(t.w.clk, at) }
