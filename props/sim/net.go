package sim

import (
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

func (w *World) cut(a, b model.Node) bool { return w.cuts[a]&(1<<b) != 0 }

// room is how many messages may be in flight. To lose more is a fault, of which
// there are none in a calm.
func (w *World) room() int {
	if w.calming {
		return MaxMessages
	}
	return w.setup.cfg.messages()
}

// InFlight is how many messages are in flight.
func (w *World) InFlight() int { return w.nmsgs }

// Message names the i-th message in flight.
func (w *World) Message(i int) model.Msg { return w.msgs[i].id }

func (w *World) find(id model.Msg) int {
	for i := range w.nmsgs {
		if w.msgs[i].id == id {
			return i
		}
	}
	return -1
}

func (w *World) take(i int) message {
	m := w.msgs[i]
	w.nmsgs--
	w.msgs[i] = w.msgs[w.nmsgs]
	return m
}

func (w *World) lose(m message, why model.Reason) {
	w.emit(&model.Event{Kind: model.KindLose, Node: m.to, Peer: m.from, Msg: m.id, Req: m.req, Copy: m.copy, Reason: why, Op: m.op})
}

// sendAll sends what a client's step returned.
func (w *World) sendAll(from model.Node, out lease.Requests) {
	if out.Store.Op != lease.OpNone {
		w.send(from, StoreNode, message{op: opOf[out.Store.Op], lease: out.Store})
	}
	if out.Storage.Op != lease.OpNone {
		w.send(from, StorageNode, message{op: opOf[out.Storage.Op], lease: out.Storage})
	}
}

// send puts a request into the network.
func (w *World) send(from, to model.Node, m message) {
	m.id = model.Msg{Action: w.action, N: w.nextMsg}
	w.nextMsg++
	m.req, m.from, m.to = m.id, from, to
	m.sent = w.counted(from)
	w.emit(&model.Event{Kind: model.KindInvoke, Node: from, Peer: to, Req: m.id, Op: m.op, Owner: ownerOf(m.lease.Holder),
		Asked: uint64(m.lease.Token), TTL: int64(m.lease.TTL), Key: m.key, Value: m.value, Local: int64(w.nodes[from].clocks().Boot)})
	w.post(m)
}

func (w *World) post(m message) {
	if w.nmsgs >= w.room() {
		w.lose(m, model.ReasonOverflow)
		return
	}
	m.due = w.now
	w.msgs[w.nmsgs] = m
	w.nmsgs++
}

func (w *World) duplicate(id model.Msg) bool {
	i := w.find(id)
	if i < 0 || w.nmsgs >= w.room() {
		return false
	}
	m := w.msgs[i]
	m.copy = true
	m.id = model.Msg{Action: w.action, N: w.nextMsg}
	w.nextMsg++
	if !m.reply {
		m.req = m.id // an operation of its own, whose answer nobody waits for
	}
	w.emit(&model.Event{Kind: model.KindDuplicate, Node: m.to, Peer: m.from, Msg: m.id, Req: w.msgs[i].req, Op: m.op, Copy: true,
		Owner: ownerOf(m.lease.Holder), Asked: uint64(m.lease.Token), TTL: int64(m.lease.TTL), Key: m.key, Value: m.value})
	w.post(m)
	return true
}

// deliver lets a message arrive. It waits while its link is cut or its
// receiver stands still, and is lost if its receiver has crashed.
func (w *World) deliver(id model.Msg) bool {
	i := w.find(id)
	if i < 0 {
		return false
	}
	to := &w.nodes[w.msgs[i].to]
	switch {
	case w.cut(w.msgs[i].from, w.msgs[i].to) || to.stopped != KindNone:
		return false
	case to.crashed:
		w.lose(w.take(i), model.ReasonDown)
		return true
	}
	m := w.take(i)
	switch {
	case m.reply:
		w.receive(&m)
	case m.to == StoreNode:
		w.handleStore(&m)
	default:
		w.handleStorage(&m)
	}
	return true
}

func (w *World) handleStore(m *message) {
	if m.raw && w.poses(&m.lease) {
		w.counts.Impersonated++
	}
	s, now, held := &w.setup.subject, w.nodes[StoreNode].clocks(), w.tenure.running
	rep := s.Store.Handle(&w.store, now, w.setup.delay, m.lease)
	if w.look(); rep.Code == lease.CodeReleased && !w.tenure.running {
		w.tenure.owner = model.Owner{}
	}
	if w.setup.opaque != nil {
		w.breakDown()
		if held && !w.tenure.running && rep.Code != lease.CodeReleased {
			w.lapse(now.Boot) // by its own account, and before its time
		}
	}
	e := w.handled(m, StoreNode, now.Boot, rep)
	w.emit(&e)
	if rep.Code == lease.CodeNone {
		return // it gave no answer
	}
	w.reply(m, rep, e.Code, 0)
}

func (w *World) handleStorage(m *message) {
	s := &w.setup.subject
	code, value := s.Storage.Handle(&w.storage, &w.store.Record,
		StorageRequest{Op: m.op, Token: m.lease.Token, Key: m.key, Value: m.value})
	rep := m.lease.To(lease.CodeFenced)
	if code == model.CodeStale {
		rep.Code = lease.CodeStale
	}
	rep.Op, rep.Token = lease.OpFence, w.storage.Highest
	e := w.handled(m, StorageNode, w.nodes[StorageNode].clocks().Boot, rep)
	e.Code = code
	if m.op == model.OpRead {
		e.Value = value
	}
	w.emit(&e)
	w.reply(m, rep, code, e.Value)
}

// handled is the event of m being answered with rep.
func (w *World) handled(m *message, by model.Node, local time.Duration, rep lease.Reply) model.Event {
	return model.Event{Kind: model.KindHandle, Node: by, Peer: m.from, Req: m.req, Msg: m.id, Copy: m.copy, Op: m.op,
		Owner: ownerOf(m.lease.Holder), Asked: uint64(m.lease.Token), TTL: int64(m.lease.TTL), Key: m.key, Value: m.value,
		Code: codeOf[rep.Code], Token: uint64(rep.Token), Holder: ownerOf(rep.Current), Remaining: int64(rep.Remaining), Local: int64(local)}
}

func (w *World) reply(m *message, rep lease.Reply, code model.Code, value int64) {
	r := *m
	r.id = model.Msg{Action: w.action, N: w.nextMsg}
	w.nextMsg++
	r.from, r.to, r.reply = m.to, m.from, true
	r.answer, r.code, r.value = rep, code, value
	w.post(r)
}

// receive lets a reply arrive at its client or raw party.
func (w *World) receive(m *message) {
	now := w.nodes[m.to].clocks()
	e := w.handled(m, m.to, now.Boot, m.answer)
	e.Kind, e.Peer, e.Code, e.Value = model.KindReturn, m.from, m.code, m.value
	w.emit(&e)
	i := int(m.to) - int(firstClient)
	if i >= w.setup.cfg.Clients || m.op == model.OpWrite || m.op == model.OpRead || m.op == model.OpGet {
		return
	}
	why := model.ReasonLapsed
	if c := w.clients[i].State(); m.answer.Code != lease.CodeGranted && m.answer.Code != lease.CodeFenced && now.Boot < c.Deadline {
		why = model.ReasonRefused
	}
	out := w.setup.subject.Client.Receive(&w.clients[i].ClientState, now, m.answer)
	w.sync(i, &m.sent, why)
	w.sendAll(m.to, out)
}

// poses reports whether a raw request would do for the store as one of a
// client's running term, or of the attempt that may become one.
func (w *World) poses(req *lease.Request) bool {
	as := ownerOf(req.Holder)
	i := int(as.Node) - int(firstClient)
	if i < 0 || i >= w.setup.cfg.Clients || w.nodes[as.Node].crashed {
		return false
	}
	st := w.clients[i].State()
	if req.Holder != st.Holder {
		return false
	}
	switch req.Op {
	case lease.OpAcquire:
		return true
	case lease.OpRenew, lease.OpRelease:
		return st.Phase == lease.Campaigning || req.Token == st.Token
	}
	return false
}

// raw sends a request as the schedule says, whatever sense it makes.
func (w *World) raw(a *Action) {
	as := a.As
	if as == (model.Owner{}) {
		as = model.Owner{Node: a.Who, Boot: w.nodes[a.Who].boots, Seq: 1}
	}
	m := message{op: rawOps[a.Kind], raw: true, key: a.Key, value: a.Value}
	m.lease = lease.Request{Holder: holderOf(as), Token: lease.Token(a.Token), TTL: a.TTL, Sent: w.nodes[a.Who].clocks().Boot}
	to := StorageNode
	switch m.op {
	case model.OpAcquire:
		m.lease.Op, to = lease.OpAcquire, StoreNode
	case model.OpRenew:
		m.lease.Op, to = lease.OpRenew, StoreNode
	case model.OpRelease:
		m.lease.Op, to = lease.OpRelease, StoreNode
	case model.OpGet:
		m.lease.Op, to = lease.OpGet, StoreNode
	case model.OpFence:
		m.lease.Op = lease.OpFence
	}
	w.send(a.Who, to, m)
}

var rawOps = [kinds]model.Op{Acquire: model.OpAcquire, Renew: model.OpRenew, Release: model.OpRelease, Get: model.OpGet,
	Write: model.OpWrite, Read: model.OpRead, Fence: model.OpFence}

var opOf = [...]model.Op{lease.OpAcquire: model.OpAcquire, lease.OpRenew: model.OpRenew, lease.OpRelease: model.OpRelease,
	lease.OpGet: model.OpGet, lease.OpFence: model.OpFence}

var codeOf = [...]model.Code{lease.CodeGranted: model.CodeGranted, lease.CodeReleased: model.CodeReleased, lease.CodeHeld: model.CodeHeld,
	lease.CodeDelayed: model.CodeDelayed, lease.CodeFree: model.CodeFree, lease.CodeLapsed: model.CodeLapsed, lease.CodeLost: model.CodeLost,
	lease.CodeInvalid: model.CodeInvalid, lease.CodeFenced: model.CodeFenced, lease.CodeStale: model.CodeStale}
