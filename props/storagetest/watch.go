package storagetest

import (
	"context"
	"errors"
	"sync"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// watch remembers the calls of a check, to tell of one that never returns: a lock
// that a refusal does not give back is a common mistake.
type watch struct {
	*kit.Watch
	mu    sync.Mutex
	tick  int64 // how many calls began and ended
	deeds []watched
}

// watched is a call: one of the last that returned, or one under way.
type watched struct {
	step step
	got  string
	call int64
	ret  int64 // 0: under way
}

// recalled is how many calls a watch remembers at least.
const recalled = 6

// over opens what open makes, watched.
func (w *watch) over(open opener) opener {
	open = kit.Watched(w.Watch, open)
	return func(e kit.Env) fence.KV {
		kv := open(e)
		w.mu.Lock()
		w.deeds = nil // of another storage, or of a process that is gone
		w.mu.Unlock()
		w.Tell(w.stuck)
		return &watchedKV{kv, w}
	}
}

func (w *watch) begin(st step) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tick++
	if len(w.deeds) > 4*recalled { // few enough to be under way, or over and done with
		w.forget()
	}
	w.deeds = append(w.deeds, watched{step: st, call: w.tick})
	return w.tick
}

// forget leaves the calls under way, and the last ones that returned.
func (w *watch) forget() {
	kept := w.deeds[:0]
	for i, d := range w.deeds {
		if d.ret == 0 || i >= len(w.deeds)-recalled {
			kept = append(kept, d)
		}
	}
	w.deeds = kept
}

func (w *watch) end(call int64, got string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tick++
	for i := len(w.deeds) - 1; i >= 0; i-- {
		if d := &w.deeds[i]; d.call == call {
			d.got, d.ret = got, w.tick
			return
		}
	}
}

// stuck tells of the call that began first of those under way: see
// [kit.Watch.Tell].
func (w *watch) stuck(within string) *kit.Failure {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
	var tokens []uint64
	for _, d := range w.deeds {
		tokens = append(tokens, d.step.token)
	}
	name := people(tokens)
	var first *step
	var deeds []deed
	for i := range w.deeds {
		d := &w.deeds[i]
		who := "anybody"
		if d.step.do != doRead {
			who = name(d.step.token)
		}
		told := deed{who: who, does: does(d.step), got: d.got, call: d.call, ret: d.ret}
		if d.ret == 0 && first == nil {
			first, told.mark = &d.step, "must return"
		}
		deeds = append(deeds, told)
	}
	what := "a call"
	if first != nil {
		what = "a " + kindNames[first.do]
	}
	f := convict(everyCallReturns, what, story(deeds))
	f.Rule = "" // and how long it took
	if within != "" {
		f.Story = append(f.Story, within+" does not return  ◄")
	}
	return f
}

// watchedKV is a storage whose calls are watched.
type watchedKV struct {
	kv fence.KV
	w  *watch
}

// unwatched is o for a storage that is watched: Carry gets the one that was
// opened.
func (o Options) unwatched() Options {
	if carry := o.Carry; carry != nil {
		o.Carry = func(ctx context.Context, kv fence.KV, token lease.Token) (err error) {
			k := kv.(*watchedKV)
			k.w.Within("Options.Carry", func() { err = carry(ctx, k.kv, token) })
			return err
		}
	}
	return o
}

func (k *watchedKV) Write(ctx context.Context, token lease.Token, key, value string) error {
	st := step{do: doWrite, token: uint64(token), key: key, value: value}
	call, said := k.w.begin(st), "panicked"
	defer func() { k.w.end(call, said) }()
	var err error
	k.w.Call(func() { err = k.kv.Write(ctx, token, key, value) })
	said = got(st, answerOf(err))
	return err
}

func (k *watchedKV) Fence(ctx context.Context, token lease.Token) error {
	st := step{do: doFence, token: uint64(token)}
	call, said := k.w.begin(st), "panicked"
	defer func() { k.w.end(call, said) }()
	var err error
	k.w.Call(func() { err = k.kv.Fence(ctx, token) })
	said = got(st, answerOf(err))
	return err
}

func (k *watchedKV) Read(ctx context.Context, key string) (value string, found bool, err error) {
	st := step{do: doRead, key: key}
	call, said := k.w.begin(st), "panicked"
	defer func() { k.w.end(call, said) }()
	if k.w.Call(func() { value, found, err = k.kv.Read(ctx, key) }); err != nil {
		said = "error: " + clip(err.Error())
	} else {
		said = got(st, answer{value: value, found: found})
	}
	return value, found, err
}

// Settle waits for what works in the background, where the storage does.
func (k *watchedKV) Settle() {
	if s, ok := k.kv.(kit.Settler); ok {
		s.Settle()
	}
}

// Close ends the process, where the storage has something to end.
func (k *watchedKV) Close() { kit.Close(k.kv) }

// answerOf is what an error of a write or a fence says.
func answerOf(err error) answer {
	var stale *fence.StaleTokenError
	switch {
	case err == nil:
		return answer{}
	case !errors.Is(err, fence.ErrStale):
		return answer{said: saidFailed, err: err.Error()}
	case errors.As(err, &stale):
		return answer{said: saidStale, highest: uint64(stale.Highest)}
	}
	return answer{said: saidStale}
}
