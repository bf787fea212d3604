package livetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// world is a number of processes of the code under test at once, on one server.
// It must be closed.
type world[T any] struct {
	open func(Env) T
	clk  clock.Clock
	name string // of this run, so that nothing of an earlier one is found
	made atomic.Int64
	log  kit.Log

	mu        sync.Mutex
	processes []*process[T]
}

// process is one of them.
type process[T any] struct {
	thing T
	end   context.CancelFunc
}

func newWorld[T any](open func(Env) T) *world[T] {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return &world[T]{open: open, clk: clock.Monotonic(), name: hex.EncodeToString(b[:])}
}

// process is the one of that number, which starts where it has not yet.
func (w *world[T]) process(n int) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.processes) <= n {
		w.processes = append(w.processes, nil)
	}
	if w.processes[n] == nil {
		w.processes[n] = w.start()
	}
	return w.processes[n].thing
}

// start opens a process. It panics where that gives up.
func (w *world[T]) start() *process[T] {
	ctx, end := context.WithCancel(context.Background())
	p := &process[T]{end: end}
	err := guarded(ctx, w.clk, 6*patience, func(context.Context) error {
		p.thing = w.open(Env{Context: ctx, Logger: slog.New(slog.NewTextHandler(&w.log, nil))})
		return nil
	})
	if err == nil && any(p.thing) == nil {
		err = fmt.Errorf("open returned nil")
	}
	if err != nil {
		end()
		panic(&kit.SetupError{Err: err})
	}
	return p
}

// close ends all processes. What becomes of that does not matter to them, but
// it has to end.
func (w *world[T]) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		if p != nil {
			p.stop(w.clk)
		}
	}
	w.processes = nil
}

func (p *process[T]) stop(clk clock.Clock) {
	guarded(context.Background(), clk, 3*patience, func(context.Context) error {
		kit.Close(p.thing)
		return nil
	})
	p.end()
}

// resource is a name that nobody has used, in letters that every system takes.
func (w *world[T]) resource() string {
	return fmt.Sprintf("live-%s-%d", w.name, w.made.Add(1))
}

// holder is a candidate that nobody has been.
func (w *world[T]) holder(node string) lease.Holder {
	return lease.Holder{Node: node, Seq: 1, Nonce: uint64(time.Now().UnixNano())<<8 | uint64(w.made.Add(1))&0xff}
}
