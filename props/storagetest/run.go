package storagetest

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// line is a step as it went.
type line struct {
	step   step
	answer answer
	noOp   bool
}

// result is what a run came to.
type result struct {
	lines  []line
	breach *breach // of the last line; nil if all answers were right
	stack  string  // of a panic
	log    string
	calls  int // of the storage, and what openings cost in calls
}

// openCost is what the opening of a storage counts as, in calls.
const openCost = 10

// opener makes the storage of one process.
type opener = func(kit.Env) fence.KV

// play plays steps against a fresh storage, up to the first answer that breaks
// a rule.
func play(open opener, o Options, steps []step) (r result) {
	lab := kit.NewLab(open, nil)
	r.calls = openCost
	defer func() {
		r.log = lab.Log()
		lab.Close()
	}()
	ctx := context.Background()
	s := spec{cas: o.Carry != nil}
	for _, st := range steps {
		l := line{step: st, noOp: !o.offers(st)}
		if !l.noOp {
			l.answer, r.stack = ask(ctx, lab, o, &s, st)
			r.breach = s.judge(st, l.answer)
			r.calls++
			if st.do == doRestart {
				r.calls += openCost
			}
		}
		if r.lines = append(r.lines, l); r.breach != nil {
			break
		}
	}
	return r
}

// offers reports whether a storage with these options can take the step.
func (o Options) offers(st step) bool {
	switch st.do {
	case doFence:
		return !o.NoFence && st.token <= o.max()
	case doWrite:
		return st.token <= o.max()
	case doRead:
		return !o.NoRead
	case doRestart:
		return !o.Volatile
	}
	return o.Carry != nil
}

// ask takes one step.
func ask(ctx context.Context, lab *kit.Lab[fence.KV], o Options, s *spec, st step) (answer, string) {
	switch st.do {
	case doRestart:
		lab.Restart()
		return answer{said: saidNothing}, ""
	case doGrant, doRelease:
		var token lease.Token
		if st.do == doGrant {
			token = lease.Token(s.granted + 1)
		}
		o.carry(ctx, lab.Thing(), token)
		return answer{said: saidNothing}, ""
	}
	return call(ctx, lab.Thing(), st)
}

// carry has the lease carry token. Options.Carry is the check's side of things:
// where it fails, nothing is known.
func (o Options) carry(ctx context.Context, kv fence.KV, token lease.Token) {
	if err := o.Carry(ctx, kv, token); err != nil {
		panic(&kit.SetupError{Err: fmt.Errorf("Options.Carry of token %d: %w", token, err)})
	}
}

// call asks kv for a write, a fence or a read. The stack is that of a panic.
func call(ctx context.Context, kv fence.KV, st step) (a answer, stack string) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *kit.SetupError:
			panic(p)
		default:
			a = answer{said: saidPanic, err: clip(fmt.Sprint(p))}
			stack = where(string(debug.Stack()))
		}
	}()
	switch st.do {
	case doWrite:
		a = answerOf(kv.Write(ctx, lease.Token(st.token), st.key, st.value))
	case doFence:
		a = answerOf(kv.Fence(ctx, lease.Token(st.token)))
	case doRead:
		value, found, err := kv.Read(ctx, st.key)
		switch {
		case err != nil:
			a = answer{said: saidFailed, err: err.Error()}
		case found:
			a = answer{value: value, found: true}
		}
	}
	return a, ""
}

// where is the part of a stack that is between the panic and this package.
func where(stack string) string {
	_, at, ok := strings.Cut(stack, "panic(")
	if !ok {
		return stack
	}
	at, _, _ = strings.Cut(at, "fencepost/props/storagetest.call(")
	return "panic(" + at
}
