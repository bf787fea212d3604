package linearizability

import "fencepost/model"

// FromTrace makes the history that the clients of a run could have recorded,
// and the operations that nobody answered but that had an effect: a network
// copy that the store handled, a restart of the store, a deletion of the lease.
// A request is one operation, and its process is free again once it returned;
// what was not answered stays open. Requests that every store refuses (nobody
// asks, no TTL) are left out, as are the events inside the nodes.
//
// The value 0 stands for nothing: a storage has it before the first write.
func FromTrace(events []model.Event, names *model.Names, meta Meta) History {
	t := tracer{
		names: names, open: make(map[model.Msg]tracedOp), leads: make(map[model.Node]int64), idle: make(map[model.Node][]int64),
		landed: make(map[model.Msg]bool),
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
	return t.h
}

// tracedOp is an operation that has not returned.
type tracedOp struct {
	process int64
	f       string
}

type tracer struct {
	h       History
	names   *model.Names
	open    map[model.Msg]tracedOp
	leads   map[model.Node]int64 // processes
	idle    map[model.Node][]int64
	landed  map[model.Msg]bool // copies that were handled
	process int64
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
	switch e.Kind {
	case model.KindInvoke:
		if fields, ok := t.request(e); ok {
			op := tracedOp{t.begin(e.Node), e.Op.String()}
			t.open[e.Req] = op
			t.emit(e.At, op.process, Invoke, op.f, fields...)
		}
	case model.KindDuplicate:
		if fields, ok := t.request(e); ok && t.landed[e.Msg] {
			t.process++ // never idle again: nobody learns the outcome
			t.emit(e.At, t.process-1, Invoke, e.Op.String(), fields...)
		}
	case model.KindReturn:
		if op, ok := t.open[e.Req]; ok {
			typ, fields := t.answer(e)
			if typ == Info {
				return // stays open
			}
			delete(t.open, e.Req)
			t.idle[e.Node] = append(t.idle[e.Node], op.process)
			t.emit(e.At, op.process, typ, op.f, fields...)
		}
	case model.KindLead:
		p := t.begin(e.Node)
		t.leads[e.Node] = p
		t.emit(e.At, p, Invoke, "lead", t.key(model.RoleStore), t.owner("owner", e.Owner), Field{"token", Uint(e.Token)})
	case model.KindStepDown:
		t.endLead(e.At, e.Node)
	case model.KindCrash, model.KindRestart:
		if e.Kind == model.KindCrash {
			t.endLead(e.At, e.Node)
		}
		if e.Kind == model.KindRestart && t.names[e.Node].Role == model.RoleStore {
			p := t.begin(e.Node)
			t.emit(e.At, p, Invoke, "restart")
			t.emit(e.At, p, OK, "restart")
			t.idle[e.Node] = append(t.idle[e.Node], p)
			return
		}
		t.fault(e)
	case model.KindDelete:
		p := t.begin(e.Node)
		t.emit(e.At, p, Invoke, "delete", t.key(model.RoleStore))
		t.emit(e.At, p, OK, "delete")
		t.idle[e.Node] = append(t.idle[e.Node], p)
	case model.KindPause, model.KindResume, model.KindSuspend, model.KindFreeze, model.KindDrift, model.KindJump, model.KindCut, model.KindHeal:
		t.fault(e)
	}
}

func (t *tracer) endLead(at int64, n model.Node) {
	if p, ok := t.leads[n]; ok {
		delete(t.leads, n)
		t.idle[n] = append(t.idle[n], p)
		t.emit(at, p, OK, "lead")
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
