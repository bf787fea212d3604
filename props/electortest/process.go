package electortest

import (
	"context"
	"log/slog"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// slot is one client, whichever process it is at the moment.
type slot struct {
	name   string
	calls  int // made, by all its processes
	claims int // the acquires and renewals among them
	led    bool
	boots  int
	now    *process
	pulse  time.Duration // the instant of its latest call
	pulses int           // how many calls it made at that instant
}

// process is one process of the client under test.
type process struct {
	slot    int
	cand    Candidate
	cancel  context.CancelFunc
	stopped bool        // its context has ended
	gone    bool        // Run has returned, and that is known
	term    *term       // what it believes now
	granted lease.Token // the highest that it was told of

	works    []*work
	returned bool
	err      error
}

// work is one call of Env.Lead.
type work struct {
	slot    int
	token   lease.Token
	ctx     context.Context
	stopped chan struct{} // closed when it has lingered
	ended   bool
}

// boot starts a process of a client.
func (w *world) boot(i int) {
	s := &w.slots[i]
	s.boots++
	node := "node"
	if !w.sameName && w.clients > 1 {
		node += "-" + string(rune('a'+i))
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{slot: i, cancel: cancel}
	env := Env{
		Store: port{w, p}, Storage: port{w, p}, Clock: clock.Monotonic(), Config: w.o.Config, Resource: resource,
		Node: node, Nonce: uint64(s.boots)<<8 | uint64(i+1), // told apart, and no counter either
		Logger: slog.New(slog.NewTextHandler(&w.tale.log, &slog.HandlerOptions{ReplaceAttr: w.stamp})).With("client", s.name),
		Lead:   func(ctx context.Context, token uint64) error { return w.lead(p, ctx, lease.Token(token)) },
	}
	p.cand = w.start(env)
	s.now = p
	w.procs = append(w.procs, p)
	if p.cand.Run == nil {
		w.unknown = "Candidate.Run is nil; it is required"
		p.gone = true
		return
	}
	go func() {
		err := p.cand.Run(ctx)
		w.mu.Lock()
		p.returned, p.err = true, err
		w.mu.Unlock()
		w.nudge()
	}()
}

// stop ends the context of a process.
func (w *world) stop(p *process) {
	if !p.stopped {
		p.stopped = true
		w.tell(w.slots[p.slot].name, "is told to stop: its context ends", "")
		p.cancel()
	}
}

// lead is Env.Lead.
func (w *world) lead(p *process, ctx context.Context, token lease.Token) error {
	k := &work{slot: p.slot, token: token, ctx: ctx, stopped: make(chan struct{})}
	w.mu.Lock()
	p.works = append(p.works, k)
	w.mu.Unlock()
	w.nudge()
	select {
	case <-ctx.Done():
		if w.linger == 0 {
			break
		}
		w.mu.Lock()
		w.stopping = append(w.stopping, k)
		w.mu.Unlock()
		w.nudge()
		select {
		case <-k.stopped:
		case <-w.over:
		}
	case <-w.over:
	}
	w.mu.Lock()
	k.ended = true
	w.mu.Unlock()
	w.nudge()
	return nil
}

// subject is who p is, at the beginning of a sentence.
func (w *world) subject(p *process) string {
	if w.clients == 1 {
		return "the client"
	}
	return w.slots[p.slot].name
}
