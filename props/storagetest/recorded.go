package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
	"fencepost/props/kit"
)

// The callers of one recorded history, and the calls of each.
const (
	recordedCallers = 4
	recordedCalls   = 12
)

// recorded has goroutines call one storage while tokens rise, records what they
// are told, and looks for an order that explains it.
func recorded(open opener, o Options, e kit.Effort) kit.Outcome {
	const calls = recordedCallers * recordedCalls
	total, unknown := (o.budget(e, 8)+calls-1)/calls, 0
	for n := range total {
		h, log, out := history(open, o, e, n)
		if out == nil {
			out = explain(h, log)
		}
		switch {
		case out == nil:
		case out.Unknown == "":
			return *out
		default:
			// Calls of unknown outcome make some histories hard to decide.
			if unknown++; unknown == total {
				return *out
			}
		}
	}
	covered := fmt.Sprintf("%s of %d calls", counted(total, "history"), calls)
	if unknown > 0 {
		covered += fmt.Sprintf(", of which %d were not decided", unknown)
	}
	return kit.Outcome{Covered: covered}
}

// history records one run.
func history(open opener, o Options, e kit.Effort, n int) (linearizability.History, string, *kit.Outcome) {
	lab := kit.NewLab(open, yieldClock)
	defer lab.Close()
	var buf bytes.Buffer
	// The order of the lines is all that counts: no instant is needed.
	rec, err := linearizability.NewRecorder(&buf, linearizability.DefaultMeta(), func() time.Duration { return 0 })
	if err != nil {
		panic(err) // of the buffer
	}
	kv := record.NewStorage(&plain{lab.Thing(), o.Carry != nil}, "storage", rec)
	r := &race{o: o, lab: lab, ctx: yielding{context.Background()}, old: 1, succ: 2}
	var highest atomic.Uint64
	highest.Store(1)
	r.grant(1)
	var wg sync.WaitGroup
	first := make([]*done, recordedCallers) // what went wrong by itself
	for c := range recordedCallers {
		wg.Go(func() {
			rnd := source(e.Seed, n*recordedCallers+c)
			for i := range recordedCalls {
				h := highest.Load()
				st := step{do: doWrite, token: h, key: string(rune('x' + rnd.IntN(2))), value: fmt.Sprintf("%c%d", 'a'+c, i)}
				switch p := rnd.IntN(100); {
				case p < 35 && h > 1:
					st.token--
				case p < 45 && o.Carry == nil: // a successor comes
					highest.CompareAndSwap(h, h+1)
					st.token++
				}
				switch p := rnd.IntN(100); {
				case p < 35:
					st = step{do: doRead, key: st.key}
				case p < 50 && !o.NoFence:
					st.do, st.key, st.value = doFence, "", ""
				}
				if o.Carry != nil && c == 0 && i%3 == 2 {
					if err := setup(func() { r.grant(h + 1) }); err != nil {
						first[c] = &done{setup: err}
						return
					}
					highest.Store(h + 1)
				}
				if d := r.on(kv, st); d.setup != nil || d.said == saidPanic {
					first[c] = &d
					return
				}
				for range rnd.IntN(3) {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	for _, d := range first {
		if d != nil && !r.sound(*d) {
			return linearizability.History{}, "", r.out
		}
	}
	if err := rec.Flush(); err != nil {
		return linearizability.History{}, "", &kit.Outcome{Unknown: err.Error()}
	}
	h, err := linearizability.Read(&buf, "history")
	if err != nil {
		return h, "", &kit.Outcome{Unknown: err.Error()}
	}
	return h, lab.Log(), nil
}

// plain is a storage whose refusals say no more than that: which token was the
// highest may have changed by the time that a right storage looks it up.
type plain struct {
	fence.KV
	cas bool
}

func (p *plain) Write(ctx context.Context, token lease.Token, key, value string) error {
	return p.refusal(p.KV.Write(ctx, token, key, value))
}

func (p *plain) Fence(ctx context.Context, token lease.Token) error {
	return p.refusal(p.KV.Fence(ctx, token))
}

func (p *plain) refusal(err error) error {
	switch {
	case !errors.Is(err, fence.ErrStale):
		return err
	case p.cas:
		return &fence.NotCarriedError{}
	}
	return &fence.StaleTokenError{}
}

// checkMemory bounds one search, in bytes, about.
const checkMemory = 128 << 20

// explain looks for an order of h.
func explain(h linearizability.History, log string) *kit.Outcome {
	for i := range h.Events {
		// What plain did not say is not on record either.
		ev := &h.Events[i]
		for j, f := range ev.Fields {
			if f.Name == "highest" {
				ev.Fields = append(ev.Fields[:j], ev.Fields[j+1:]...)
				break
			}
		}
	}
	ctx, o := context.Background(), linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelStorage}, Memory: checkMemory}
	v, err := linearizability.Check(ctx, h, o)
	switch {
	case err != nil:
		return &kit.Outcome{Unknown: err.Error()}
	case v.Result == linearizability.Holds:
		return nil
	case v.Result == linearizability.Unknown:
		return &kit.Outcome{Unknown: v.Reason}
	}
	small, err := linearizability.Reduce(ctx, h, o)
	if err != nil {
		small = h
	}
	var data bytes.Buffer
	if err := small.WriteJSON(&data); err != nil {
		return &kit.Outcome{Unknown: err.Error()}
	}
	f := convict(linearizable, "no order of these calls explains what they were told", historyStory(small, h))
	f.Log = log
	f.File = named("history", "jsonl", data.Bytes())
	return &kit.Outcome{Failure: f}
}

// historyStory is the small history as a story. Where a read found what no write
// in it wrote, the one that did in the whole history is told too: that it came
// too late to be found is the point.
func historyStory(small, whole linearizability.History) []string {
	type told struct {
		step
		deed
	}
	var all []told
	var tokens []uint64
	tell := func(h *linearizability.History, op linearizability.Op) {
		ev := &h.Events[op.Call]
		st := stepOf(ev)
		d := deed{does: does(st), call: ev.Index + 1}
		if op.Return >= 0 && op.Type != linearizability.Info {
			ret, a := &h.Events[op.Return], answer{}
			if op.Type == linearizability.Fail {
				a.said = saidStale
			}
			if v := ret.Field("v"); st.do == doRead && !v.IsNil() {
				a.found = true
				a.value, _ = v.Word()
			}
			d.got, d.ret = got(st, a), ret.Index+1
			if st.do == doRead {
				st.value = a.value
			}
		}
		all = append(all, told{st, d})
		tokens = append(tokens, st.token)
	}
	for _, op := range small.Ops() {
		tell(&small, op)
	}
	last := 0
	for i, t := range all {
		if t.ret > all[last].ret {
			last = i
		}
	}
	if len(all) > 0 {
		all[last].mark = "no order explains this"
	}
	for _, read := range all {
		wrote := func(t told) bool { return t.do == doWrite && t.step.value == read.step.value && t.key == read.key }
		if read.do != doRead || slices.ContainsFunc(all, wrote) {
			continue
		}
		for _, op := range whole.Ops() {
			if st := stepOf(&whole.Events[op.Call]); wrote(told{step: st}) {
				tell(&whole, op)
			}
		}
	}
	name := people(tokens)
	deeds := make([]deed, len(all))
	for i, t := range all {
		if t.who = "anybody"; t.do != doRead {
			t.who = name(t.token)
		}
		deeds[i] = t.deed
	}
	return story(deeds)
}

// stepOf is the call of an operation.
func stepOf(ev *linearizability.Event) (st step) {
	text := func(name string) string {
		w, _ := ev.Field(name).Word()
		return w
	}
	st.token, _ = ev.Field("token").Uint()
	st.key, st.value = text("k"), text("v")
	switch ev.F {
	case "write":
		st.do = doWrite
	case "fence":
		st.do = doFence
	default:
		st.do = doRead
	}
	return st
}
