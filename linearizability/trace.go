package linearizability

import "fencepost/model"

// FromTrace makes the history that the clients of a run could have recorded,
// and the operations that nobody answered but that had an effect: a network
// copy that the store handled, a restart of the store, a deletion of the lease.
// A request is one operation, and its process is free again once it returned;
// what was not answered stays open. Requests that every store refuses (nobody
// asks, no TTL) are left out, as are the events inside the nodes.
//
// The run knows in which order the requests were carried out. Check tries that
// order first, and searches only where it is not an explanation.
//
// The value 0 stands for nothing: a storage has it before the first write.
func FromTrace(events []model.Event, names *model.Names, meta Meta) History {
	t := tracer{
		names: names, open: make(map[model.Msg]tracedOp), leads: make(map[model.Node]tracedLead), idle: make(map[model.Node][]int64),
		landed: make(map[model.Msg]bool), calls: make(map[model.Msg]int), returned: make(map[int]bool),
	}
	for i := range events {
		if e := &events[i]; e.Kind == model.KindHandle && e.Copy {
			t.landed[e.Msg] = true
		}
	}
	t.h = History{Name: "trace", Meta: meta, Events: make([]Event, 0, len(events)/2)}
	for i := range events {
		t.add(&events[i])
	}
	// A refusal that nobody heard of changed nothing, and explains nothing.
	for _, call := range t.handled {
		if call.done || t.returned[call.at] {
			t.h.effects = append(t.h.effects, call.at)
		}
	}
	return t.h
}

// handledCall is a call that the service carried out.
type handledCall struct {
	at   int  // position of the event
	done bool // as asked
}

// tracedOp is an operation that has not returned.
type tracedOp struct {
	process int64
	f       string
}

// tracedLead is a belief that has not ended.
type tracedLead struct {
	process int64
	at      int // position of its event
}

type tracer struct {
	h        History
	names    *model.Names
	open     map[model.Msg]tracedOp
	leads    map[model.Node]tracedLead
	idle     map[model.Node][]int64
	landed   map[model.Msg]bool // copies that were handled
	calls    map[model.Msg]int  // positions of the events
	handled  []handledCall
	returned map[int]bool // by position of the call
	process  int64
}

func (t *tracer) emit(at, process int64, typ Type, f string, fields ...Field) {
	t.h.Events = append(t.h.Events, Event{Index: int64(len(t.h.Events)), Time: at, Process: process, Type: typ, F: f, Fields: fields})
}

// begin takes an idle process of a node, or a new one.
func (t *tracer) begin(n model.Node) int64 {
	if idle := t.idle[n]; len(idle) > 0 {
		t.idle[n] = idle[:len(idle)-1]
		return idle[len(idle)-1]
	}
	t.process++
	return t.process - 1
}

func (t *tracer) add(e *model.Event) {
	if e.Slow != 0 {
		t.slow(e.Slow)
	}
	switch e.Kind {
	case model.KindInvoke:
		if fields, ok := t.request(e); ok {
			op := tracedOp{t.begin(e.Node), e.Op.String()}
			t.open[e.Req] = op
			t.calls[e.Req] = len(t.h.Events)
			t.emit(e.At, op.process, Invoke, op.f, fields...)
		}
	case model.KindDuplicate:
		if fields, ok := t.request(e); ok && t.landed[e.Msg] {
			t.process++ // never idle again: nobody learns the outcome
			t.calls[e.Msg] = len(t.h.Events)
			t.emit(e.At, t.process-1, Invoke, e.Op.String(), fields...)
		}
	case model.KindHandle:
		if at, ok := t.calls[e.Req]; ok {
			typ, _ := t.answer(e)
			t.handled = append(t.handled, handledCall{at, typ == OK})
		}
	case model.KindReturn:
		if op, ok := t.open[e.Req]; ok {
			typ, fields := t.answer(e)
			if typ == Info {
				return // stays open
			}
			delete(t.open, e.Req)
			t.returned[t.calls[e.Req]] = true
			t.idle[e.Node] = append(t.idle[e.Node], op.process)
			t.emit(e.At, op.process, typ, op.f, fields...)
		}
	case model.KindLead:
		p := t.begin(e.Node)
		t.leads[e.Node] = tracedLead{p, len(t.h.Events)}
		t.emit(e.At, p, Invoke, "lead", t.key(model.RoleStore), t.owner("owner", e.Owner), Field{"token", Uint(e.Token)})
	case model.KindStepDown:
		t.endLead(e.At, e.Node)
	case model.KindCrash, model.KindRestart:
		if e.Kind == model.KindCrash {
			t.endLead(e.At, e.Node)
		}
		if e.Kind == model.KindRestart && t.names[e.Node].Role == model.RoleStore {
			t.instant(e, "restart")
			return
		}
		t.fault(e)
	case model.KindDelete:
		t.instant(e, "delete", t.key(model.RoleStore))
	case model.KindPause, model.KindResume, model.KindSuspend, model.KindFreeze, model.KindDrift, model.KindJump, model.KindCut, model.KindHeal:
		t.fault(e)
	}
}

// slow marks the running beliefs of the nodes whose clock broke its bound.
func (t *tracer) slow(nodes uint16) {
	for n := range model.Node(model.MaxNodes) {
		l, leads := t.leads[n]
		if !leads || nodes>>n&1 == 0 {
			continue
		}
		if e := &t.h.Events[l.at]; !e.Has("slow") {
			e.Fields = append(e.Fields, Field{"slow", Bool(true)})
		}
	}
}

// instant adds an operation that was called, done and answered at one instant.
func (t *tracer) instant(e *model.Event, f string, fields ...Field) {
	p := t.begin(e.Node)
	t.handled = append(t.handled, handledCall{len(t.h.Events), true})
	t.emit(e.At, p, Invoke, f, fields...)
	t.emit(e.At, p, OK, f)
	t.idle[e.Node] = append(t.idle[e.Node], p)
}

func (t *tracer) endLead(at int64, n model.Node) {
	if l, ok := t.leads[n]; ok {
		delete(t.leads, n)
		t.idle[n] = append(t.idle[n], l.process)
		t.emit(at, l.process, OK, "lead")
	}
}

func (t *tracer) fault(e *model.Event) {
	var fields []Field
	if e.Node != 0 {
		fields = append(fields, Field{"node", String(t.names.Of(e.Node))})
	}
	if e.Peer != 0 {
		fields = append(fields, Field{"peer", String(t.names.Of(e.Peer))})
	}
	switch e.Kind {
	case model.KindDrift:
		fields = append(fields, Field{"ppm", Int(e.Value)})
	case model.KindJump:
		fields = append(fields, Field{"offset", Int(e.Value)})
	}
	t.emit(e.At, NoProcess, Info, e.Kind.String(), fields...)
}

// key names the only node with the given role.
func (t *tracer) key(role model.Role) Field {
	for n := range t.names {
		if t.names[n].Role == role {
			return Field{"key", String(t.names[n].Name)}
		}
	}
	return Field{"key", String("")}
}

func (t *tracer) owner(name string, o model.Owner) Field {
	if o == (model.Owner{}) {
		return Field{name, String("")}
	}
	return Field{name, String(t.names.Owner(o))}
}

// request is what an invoke carries; false if every store refuses it.
func (t *tracer) request(e *model.Event) ([]Field, bool) {
	store, storage := t.key(model.RoleStore), t.key(model.RoleStorage)
	owner, token := t.owner("owner", e.Owner), Field{"token", Uint(e.Asked)}
	k, v := Field{"k", Int(int64(e.Key))}, Field{"v", tracedValue(e.Value)}
	somebody := e.Owner != model.Owner{}
	switch e.Op {
	case model.OpAcquire:
		return []Field{store, owner, {"ttl", Int(e.TTL)}}, somebody && e.TTL > 0
	case model.OpRenew:
		return []Field{store, owner, token, {"ttl", Int(e.TTL)}}, somebody && e.TTL > 0
	case model.OpRelease:
		return []Field{store, owner, token}, somebody
	case model.OpGet:
		return []Field{store}, true
	case model.OpFence:
		return []Field{storage, owner, token}, true
	case model.OpWrite:
		return []Field{storage, owner, token, k, v}, true
	case model.OpRead:
		return []Field{storage, k}, true
	}
	return nil, false
}

// answer is how an operation returned; Info if the code says nothing.
func (t *tracer) answer(e *model.Event) (Type, []Field) {
	fail := func(word string, more ...Field) (Type, []Field) {
		return Fail, append([]Field{{"error", Keyword(word)}}, more...)
	}
	switch e.Code {
	case model.CodeGranted:
		return OK, []Field{{"token", Uint(e.Token)}}
	case model.CodeHeld:
		if e.Op == model.OpGet {
			return OK, []Field{t.owner("owner", e.Holder), {"token", Uint(e.Token)}}
		}
		return fail("held", t.owner("holder", e.Holder))
	case model.CodeFree, model.CodeDelayed:
		if e.Op == model.OpGet {
			return OK, []Field{{"owner", String("")}}
		}
		return fail("delay")
	case model.CodeLapsed, model.CodeLost, model.CodeInvalid:
		return fail(e.Code.String())
	case model.CodeStale:
		return fail("stale", Field{"highest", Uint(e.Token)})
	case model.CodeValue:
		return OK, []Field{{"v", tracedValue(e.Value)}}
	case model.CodeReleased, model.CodeFenced, model.CodeLanded:
		return OK, nil
	}
	return Info, nil
}

func tracedValue(v int64) Value {
	if v == 0 {
		return Value{}
	}
	return Int(v)
}
