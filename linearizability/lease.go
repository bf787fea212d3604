package linearizability

import (
	"fmt"
	"slices"
	"strings"

	"fencepost/model"
)

// leaseCompiler makes a machine of one lease that lapses by itself. Which states
// it can be in, and since when, is model.TimedParams' business; here recorded
// operations become its operations. A state is the set of all the timed states
// that what was linearized so far can have led to.
type leaseCompiler struct {
	meta   *Meta
	params model.TimedParams
	owners names
	ops    []leaseOp

	// Of the partition in the making:
	timed   []model.TimedOp
	actions []action
}

// leaseOp is a recorded operation: what it was, with what is known at the end.
type leaseOp struct {
	span
	op model.TimedOp
}

func newLease(meta *Meta, _ Model) compiler {
	return &leaseCompiler{meta: meta, params: meta.timed()}
}

func (c *leaseCompiler) compile(until int64) (partition, error) {
	if err := c.params.Validate(); err != nil {
		return partition{}, &SyntaxError{Line: 1, Field: "meta", Msg: err.Error()}
	}
	// A partition keeps its compiler: there may be several, of different places.
	p := &leaseCompiler{meta: c.meta, params: c.params, owners: c.owners, timed: make([]model.TimedOp, 0, len(c.ops)), actions: make([]action, 0, len(c.ops))}
	p.params.NoRestarts = true
	for _, o := range c.ops {
		s, ok := o.by(until)
		if !ok {
			continue
		}
		if s.Type == Info && o.op.Outcome != model.TimedUnknown {
			o.op.Outcome, o.op.Return, o.op.Holder, o.op.HolderToken = model.TimedUnknown, Unbounded, 0, 0
			if o.op.Kind == model.TimedAcquire {
				o.op.Token = 0
			}
		}
		p.params.NoRestarts = p.params.NoRestarts && o.op.Kind != model.TimedRestart
		p.action(s, o.op)
	}
	return partition{
		actions: p.actions,
		machine: machine{
			init: &leaseState{set: p.params.Init()},
			step: func(state any, a *action) (any, bool) {
				next := state.(*leaseState).step(p.params, p.timed[a.timed])
				return next, next != nil
			},
			maybe: func(state any, a *action) any {
				return &leaseState{state.(*leaseState).after(p.params, p.timed[a.timed])}
			},
			equal:   func(a, b any) bool { return a.(*leaseState).equal(b.(*leaseState)) },
			hash:    func(s any) uint64 { return s.(*leaseState).hash() },
			show:    func(s any) string { return s.(*leaseState).show(p.owners) },
			bytes:   256,
			forward: p.forward(),
		},
	}, nil
}

// action adds an operation to the partition.
func (c *leaseCompiler) action(s span, op model.TimedOp) {
	a := newAction(s, leaseClass(op))
	a.since, a.until, a.timed = op.Call, op.Return, len(c.timed)
	a.answer = op.Kind == model.TimedGet || op.Outcome == model.TimedHeld || op.Outcome == model.TimedDelay || op.Outcome == model.TimedRefused
	// Where a TTL may run from the call on, the call itself makes a difference.
	a.alone = op.Kind == model.TimedAcquire && c.params.Anchor == model.AnchorCall
	c.timed = append(c.timed, op)
	c.actions = append(c.actions, a)
}

// timed is the specification that the recording promises.
func (m Meta) timed() model.TimedParams {
	p := model.TimedParams{
		DriftPPB: m.Drift, Early: m.Early, Late: m.Late, LockDelay: m.LockDelay, RenewAfterLapse: m.RenewAfterLapse,
	}
	switch m.Tokens {
	case TokensRising:
		p.Tokens = model.TokensRising
	case TokensNone:
		p.Tokens = model.TokensNone
	}
	if m.Tokens != TokensNone {
		p.First = m.First
	}
	if m.Anchor == AnchorCall {
		p.Anchor = model.AnchorCall
	}
	return p
}

var leaseKinds = map[string]model.TimedKind{
	"acquire": model.TimedAcquire, "renew": model.TimedRenew, "release": model.TimedRelease, "get": model.TimedGet,
	"restart": model.TimedRestart, "delete": model.TimedDelete,
}

// add reads one operation. What certainly had no effect, and is no evidence
// either, is left out.
func (c *leaseCompiler) add(o *operation) error {
	op := model.TimedOp{Kind: leaseKinds[o.invoked.F], Return: Unbounded}
	if o.invoked.Time == NoTime {
		return o.invokedError("time", "missing: whether a lease had lapsed is a matter of time")
	}
	op.Call = o.invoked.Time - c.meta.Eps
	if o.Type != Info {
		op.Return = o.ended.Time + c.meta.Eps
	}
	switch o.Type {
	case Info:
		op.Outcome = model.TimedUnknown
	case Fail:
		if refusal, err := c.refusal(o, &op); !refusal || err != nil {
			return err
		}
	}
	if err := c.fields(o, &op); err != nil {
		return err
	}
	c.ops = append(c.ops, leaseOp{o.span, op})
	return nil
}

// leaseClass is what tells op from others that may do the same. An answer that
// leaves the lease as it is depends on no more than what it says.
func leaseClass(op model.TimedOp) class {
	k := class{kind: uint8(op.Kind)<<3 | uint8(op.Outcome), a: op.Owner, b: op.Holder, token: op.Token, limit: uint64(op.TTL)}
	switch {
	case op.Kind == model.TimedGet:
		k.token = op.HolderToken
	case op.Outcome == model.TimedDelay, op.Outcome == model.TimedHeld && op.Holder != 0:
		k.a, k.limit = 0, 0
	case op.Outcome == model.TimedHeld, op.Outcome == model.TimedRefused:
		k.limit = 0
	}
	return k
}

// refusal reads the error of a failed operation; false if it is no evidence of
// the state of the lease.
func (c *leaseCompiler) refusal(o *operation, op *model.TimedOp) (bool, error) {
	word := o.errorWord()
	if word == "" || word == notSent || word == invalid {
		return false, nil
	}
	switch op.Kind {
	case model.TimedAcquire:
		switch word {
		case "held":
			op.Outcome = model.TimedHeld
			op.Holder = c.owner(o.ended.Field("holder"))
			return true, nil
		case "delay":
			op.Outcome = model.TimedDelay
			return true, nil
		}
		return false, o.endedError("error", "want held, delay, invalid or not-sent, not %s", quote(word))
	case model.TimedRenew, model.TimedRelease:
		if word == "lapsed" || word == "lost" {
			op.Outcome = model.TimedRefused
			return true, nil
		}
		return false, o.endedError("error", "want lapsed, lost, invalid or not-sent, not %s", quote(word))
	}
	return false, o.endedError("error", "want invalid or not-sent, not %s", quote(word))
}

// fields reads what the operation carries, and what its answer does.
func (c *leaseCompiler) fields(o *operation, op *model.TimedOp) error {
	f := o.invoked.F
	tokens := c.meta.Tokens != TokensNone
	token, hasToken := o.field("token").Uint()
	switch op.Kind {
	case model.TimedRestart, model.TimedDelete:
		return nil
	case model.TimedGet:
		if op.Outcome == model.TimedUnknown {
			return nil
		}
		if !o.ended.Has("owner") {
			return o.endedError("owner", "missing: a get names the owner, or \"\" for nobody")
		}
		op.Holder = c.owner(o.ended.Field("owner"))
		if op.Holder != 0 && tokens {
			op.HolderToken = token
		}
		return nil
	}
	op.Owner = c.owner(o.field("owner"))
	if op.Owner == 0 {
		return o.invokedError("owner", "missing: %s names the owner that asks", f)
	}
	if op.Kind != model.TimedRelease {
		ttl := o.leaseTTL()
		if ttl <= 0 {
			return o.invokedError("ttl", "missing or 0: %s asks for a TTL above 0, in nanoseconds, or one is given for all", f)
		}
		op.TTL = ttl
	}
	switch {
	case !tokens:
	case op.Kind == model.TimedAcquire && op.Outcome != model.TimedOK:
	case !hasToken && op.Kind == model.TimedAcquire:
		return o.endedError("token", "missing: a grant has a fencing token, or meta says tokens none")
	case !hasToken:
		return o.invokedError("token", "missing: %s carries the token of the owner, or meta says tokens none", f)
	default:
		op.Token = token
	}
	return nil
}

// owner numbers the name of an owner; 0 for nobody.
func (c *leaseCompiler) owner(v Value) int32 {
	name, _ := v.identity()
	if name == "" {
		return 0
	}
	return c.owners.of(name)
}

// leaseState is a set of timed states, none of which covers another.
type leaseState struct {
	set []model.TimedState
}

// step is what op makes of the set; nil if nothing.
func (s *leaseState) step(p model.TimedParams, op model.TimedOp) *leaseState {
	next := s.after(p, op)
	if op.Outcome == model.TimedUnknown {
		// The search has its own way to say that op did not happen.
		next = slices.DeleteFunc(next, func(t model.TimedState) bool { return s.has(t) })
	}
	if len(next) == 0 {
		return nil
	}
	return &leaseState{set: next}
}

// after is what op, if it happened, may make of the set.
func (s *leaseState) after(p model.TimedParams, op model.TimedOp) []model.TimedState {
	next := make([]model.TimedState, 0, len(s.set)+1)
	for _, t := range s.set {
		next = p.AppendStep(next, t, op)
	}
	return next
}

func (s *leaseState) has(t model.TimedState) bool {
	return slices.ContainsFunc(s.set, t.Equal)
}

func (s *leaseState) equal(t *leaseState) bool {
	return len(s.set) == len(t.set) && !slices.ContainsFunc(s.set, func(x model.TimedState) bool { return !t.has(x) })
}

func (s *leaseState) hash() uint64 {
	var h uint64
	for _, t := range s.set {
		h ^= t.Hash() // whatever the order
	}
	return h
}

func (s *leaseState) show(owners names) string {
	parts := make([]string, len(s.set))
	for i, t := range s.set {
		parts[i] = t.String()
	}
	text := strings.Join(parts, " or ")
	for i, name := range owners.text {
		text = strings.ReplaceAll(text, fmt.Sprintf("held by %d,", i+1), "held by "+name+",")
	}
	return text
}
