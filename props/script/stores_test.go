package script

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

// journal is the stable storage of a memory store.
type journal struct {
	mu    sync.Mutex
	state map[string]lease.Durable
}

func (j *journal) Save(resource string, d lease.Durable) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state[resource] = d
	return nil
}

// memoryWith opens the store that is right: lease.Memory with a journal.
func memoryWith(delay time.Duration) Open {
	return func(e kit.Env) lease.Store {
		j := kit.Durable(e, "journal", func() *journal { return &journal{state: map[string]lease.Durable{}} })
		m, err := lease.NewMemory(e.Clock, lease.MemoryOptions{LockDelay: delay, State: maps.Clone(j.state), Journal: j})
		if err != nil {
			e.Fatal(err)
		}
		return m
	}
}

var memory = memoryWith(0)

// plain hides all that a store can do besides.
type plain struct{ lease.Store }

func without(open Open) Open {
	return func(e kit.Env) lease.Store { return plain{open(e)} }
}

// rig changes what a right store does: into another right one, or a wrong one.
type rig struct {
	name    string
	delay   time.Duration
	before  func(now time.Duration, rec *lease.Record, req *lease.Request)
	after   func(now time.Duration, was lease.Record, rec *lease.Record, req lease.Request, rep *lease.Reply)
	refusal func(lease.Reply, error) error
	load    func(*lease.Durable)
	remove  func(*lease.Record)
	snap    bool // it offers snapshots
	steady  bool // its clock goes on over a restart: it keeps instants
}

// open makes a store of lease.Record, with what r changes.
func (r rig) open(e kit.Env) lease.Store {
	disk := kit.Durable(e, "disk", func() *map[string]lease.Durable { return &map[string]lease.Durable{} })
	s := &rigged{rig: r, clk: e.Clock, disk: *disk, recs: map[string]lease.Record{}}
	for name, d := range *disk {
		if r.load != nil {
			r.load(&d)
		}
		s.recs[name] = lease.Restore(d, e.Clock.Now())
	}
	if r.steady {
		s.recs = kit.Durable(e, "records", func() map[string]lease.Record { return s.recs })
	}
	if r.snap {
		return snapped{s}
	}
	return s
}

type rigged struct {
	rig
	clk  clock.Clock
	disk map[string]lease.Durable
	recs map[string]lease.Record
}

func (s *rigged) handle(resource string, req lease.Request) (lease.Reply, error) {
	now := s.clk.Now()
	rec := s.recs[resource]
	asked := req
	if s.before != nil {
		s.before(now, &rec, &req)
	}
	was := rec
	rec, rep := rec.Handle(now, s.delay, req)
	rep.Holder = asked.Holder
	if s.after != nil {
		s.after(now, was, &rec, asked, &rep)
	}
	s.recs[resource], s.disk[resource] = rec, rec.Durable
	err := rep.Err(resource)
	if s.refusal != nil {
		err = s.refusal(rep, err)
	}
	return rep, err
}

func (s *rigged) Acquire(_ context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	rep, err := s.handle(resource, lease.Request{Op: lease.OpAcquire, Holder: holder, TTL: ttl})
	return lease.Grant{Resource: resource, Holder: rep.Holder, Token: rep.Token, TTL: rep.TTL}, err
}

func (s *rigged) Renew(_ context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	rep, err := s.handle(resource, lease.Request{Op: lease.OpRenew, Holder: holder, Token: token, TTL: ttl})
	return lease.Grant{Resource: resource, Holder: rep.Holder, Token: rep.Token, TTL: rep.TTL}, err
}

func (s *rigged) Release(_ context.Context, resource string, holder lease.Holder, token lease.Token) error {
	_, err := s.handle(resource, lease.Request{Op: lease.OpRelease, Holder: holder, Token: token})
	return err
}

func (s *rigged) Get(_ context.Context, resource string) (lease.Observation, error) {
	rep, err := s.handle(resource, lease.Request{Op: lease.OpGet})
	return lease.Observation{Resource: resource, Holder: rep.Current, Token: rep.Token, Remaining: rep.Remaining}, err
}

func (s *rigged) Delete(_ context.Context, resource string) error {
	rec := s.recs[resource].Delete()
	if s.remove != nil {
		s.remove(&rec)
	}
	s.recs[resource], s.disk[resource] = rec, rec.Durable
	return nil
}

// snapped is a rigged store that can be put back.
type snapped struct{ *rigged }

func (s snapped) Snapshot() []byte {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(s.recs)) {
		rec := s.recs[name]
		if rec.Status != lease.Free {
			rec.Expires -= s.clk.Now()
		}
		b = append(append(b, name...), 0)
		b = append(append(b, rec.Holder.Node...), 0)
		for _, n := range [...]uint64{rec.Holder.Seq, rec.Holder.Nonce, uint64(rec.Token), uint64(rec.TTL), uint64(rec.Status), uint64(rec.Expires)} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
	}
	return b
}

func (s snapped) Restore(state []byte) {
	clear(s.recs)
	clear(s.disk)
	text := func() string {
		word, rest, _ := bytes.Cut(state, []byte{0})
		state = rest
		return string(word)
	}
	number := func() uint64 {
		n := binary.LittleEndian.Uint64(state)
		state = state[8:]
		return n
	}
	for len(state) > 0 {
		name := text()
		holder := lease.Holder{Node: text(), Seq: number(), Nonce: number()}
		d := lease.Durable{Token: lease.Token(number()), Holder: holder, TTL: time.Duration(number()), Status: lease.Status(number())}
		rec := lease.Record{Durable: d, Expires: time.Duration(number())}
		if d.Status != lease.Free {
			rec.Expires += s.clk.Now()
		}
		s.recs[name], s.disk[name] = rec, d
	}
}

// variant is a right store and what it promises.
type variant struct {
	name string
	open Open
	o    kit.Options
}

func variants() []variant {
	const s = time.Second
	granularity := func(g time.Duration) func(time.Duration, *lease.Record, *lease.Request) {
		return func(_ time.Duration, _ *lease.Record, req *lease.Request) {
			if req.TTL > 0 {
				req.TTL = (req.TTL + g - 1) / g * g
			}
		}
	}
	minimum := func(_ time.Duration, _ *lease.Record, req *lease.Request) {
		if req.TTL > 0 {
			req.TTL = max(req.TTL, 2*s)
		}
	}
	refuseShort := func(_ time.Duration, _ *lease.Record, req *lease.Request) {
		if req.TTL < 2*s && (req.Op == lease.OpAcquire || req.Op == lease.OpRenew) {
			req.TTL = 0
		}
	}
	sweeping := func(_ time.Duration, _ lease.Record, rec *lease.Record, _ lease.Request, rep *lease.Reply) {
		if rep.Code == lease.CodeGranted {
			rec.Expires = (rec.Expires + s - 1) / s * s
		}
	}
	terse := func(rep lease.Reply, err error) error {
		switch {
		case errors.Is(err, lease.ErrNotHeld):
			return lease.ErrNotHeld
		case rep.Code == lease.CodeHeld && err != nil:
			return &lease.HeldError{}
		}
		return err
	}
	// Tokens 7, 14, 21 and so on.
	sevenfold := func(now time.Duration, rec *lease.Record, req *lease.Request) {
		if req.Token%7 != 0 {
			req.Token = 1 << 60
		}
		req.Token /= 7
	}
	times7 := func(_ time.Duration, _ lease.Record, _ *lease.Record, _ lease.Request, rep *lease.Reply) {
		rep.Token *= 7
	}
	revive := func(now time.Duration, rec *lease.Record, req *lease.Request) {
		if req.Op == lease.OpRenew && req.TTL > 0 && req.Holder == rec.Holder && req.Token == rec.Token && rec.Status != lease.Free && !rec.Held(now) {
			rec.Status, rec.Expires = lease.Running, now+1
		}
	}
	return []variant{
		{"memory", memory, kit.Options{}},
		{"no deletion", without(memory), kit.Options{}},
		{"lock delay", memoryWith(5 * s), kit.Options{LockDelay: 5 * s}},
		{"volatile", memory, kit.Options{Volatile: true}},
		{"records", rig{}.open, kit.Options{}},
		{"granularity", rig{before: granularity(s)}.open, kit.Options{Granularity: s}},
		{"odd granularity, lock delay", rig{before: granularity(7 * time.Millisecond), delay: 3 * s}.open, kit.Options{Granularity: 7 * time.Millisecond, LockDelay: 3 * s}},
		{"minimum raised", rig{before: minimum}.open, kit.Options{MinTTL: 2 * s}},
		{"minimum refused", rig{before: refuseShort}.open, kit.Options{MinTTL: 2 * s}},
		{"swept each second", rig{after: sweeping}.open, kit.Options{Late: s}},
		{"swept, lock delay", rig{after: sweeping, delay: 2 * s}.open, kit.Options{Late: s, LockDelay: 2 * s}},
		{"terse", rig{refusal: terse}.open, kit.Options{Terse: true}},
		{"terse, no get", rig{refusal: terse}.open, kit.Options{Terse: true, NoGet: true}},
		{"rising tokens", rig{before: sevenfold, after: times7}.open, kit.Options{Tokens: model.TokensRising}},
		{"renewal after lapse", rig{before: revive}.open, kit.Options{RenewAfterLapse: true}},
		{"snapshots", rig{snap: true}.open, kit.Options{}},
		{"steady clock", rig{steady: true}.open, kit.Options{SteadyClock: true}},
		{"steady clock, swept, lock delay", rig{steady: true, after: sweeping, delay: 2 * s}.open, kit.Options{SteadyClock: true, Late: s, LockDelay: 2 * s}},
		{"steady clock, renewal after lapse", rig{steady: true, before: revive}.open, kit.Options{SteadyClock: true, RenewAfterLapse: true}},
		{"steady clock, snapshots", rig{steady: true, snap: true}.open, kit.Options{SteadyClock: true}},
	}
}
