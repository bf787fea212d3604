package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fencepost/impl/clock"
)

// warden ends belief. It is the only one who does, whoever wants it: the deadline,
// for which it has a timer and a goroutine of its own; the loop, when the store
// refuses; an operator. Nothing that a user gave (a store, a Logger, an Observer,
// the work) is called by it or under its lock, so that none of them can keep a term
// alive.
type warden struct {
	clk   clock.Clock
	timer clock.Timer
	quit  chan struct{}
	ended sync.WaitGroup
	show  func(*Term) // what the Elector shows as its term

	mu   sync.Mutex
	job  *job          // the work that goes on, whether or not its term does
	kept time.Duration // the lease is kept for the work until then, as far as is known

	// What Health goes by besides.
	busy    bool          // the loop is at work since beatAt; or else it sleeps until then
	beatAt  time.Duration // on the elector's clock
	renewal time.Duration // of the term that goes on: it is due at this instant
}

// job is the work of one term. It may outlast the term.
type job struct {
	Term
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Guarded by the warden's lock until over, and fixed from then on.
	over bool // the term has ended
	at   time.Duration
	why  error

	told bool // the loop has told that the term has ended
}

func newWarden(clk clock.Clock, show func(*Term)) *warden {
	return &warden{clk: clk, timer: clk.Timer(never), quit: make(chan struct{}), show: show, beatAt: never}
}

// start and close enclose the life of the warden's goroutine. At close no term may
// be going on.
func (w *warden) start() { w.ended.Go(w.run) }

func (w *warden) close() {
	close(w.quit)
	w.ended.Wait()
	w.timer.Stop()
}

func (w *warden) run() {
	for {
		select {
		case <-w.timer.C():
			w.lapse()
		case <-w.quit:
			return
		}
	}
}

// begin puts j in the warden's charge.
func (w *warden) begin(j *job, s ClientState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.job, w.kept, w.renewal = j, s.Deadline, s.NextSend
	j.belief.set(s.Deadline)
	w.show(&j.Term)
	w.timer.Reset(s.Deadline)
}

// extend moves the deadline to that of s: of the term, if it goes on, and of what
// is kept for its work.
func (w *warden) extend(s ClientState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = s.Deadline
	if j := w.job; !j.over && j.belief.deadline() != s.Deadline {
		j.belief.set(s.Deadline)
		w.renewal = s.NextSend
		w.timer.Reset(s.Deadline)
	}
}

func (w *warden) lapse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.clk.Now(); w.job != nil && now >= w.job.belief.deadline() {
		w.finish(now, ErrLapsed)
	}
}

// end ends the term that goes on, if one does.
func (w *warden) end(now time.Duration, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finish(now, why)
}

// lose is end where the lease is not held any more.
func (w *warden) lose(now time.Duration, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = min(w.kept, now)
	w.finish(now, why)
}

func (w *warden) finish(now time.Duration, why error) {
	j := w.job
	if j == nil || j.over {
		return
	}
	if deadline := j.belief.deadline(); now >= deadline {
		now, why = deadline, ErrLapsed
	}
	j.over, j.at = true, now
	// In this order: whoever sees that the context has ended sees the rest.
	j.belief.set(now)
	w.show(nil)
	j.cancel(fmt.Errorf("lease %q, token %d: %w", j.Resource, j.Token, why))
	j.why = context.Cause(j.ctx) // or that of Run's context, which came first
	w.timer.Reset(never)
}

// isOver reports whether the term of j has ended; if so, at and why stay.
func (w *warden) isOver(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return j.over
}

// stopped notes that the work has ended.
func (w *warden) stopped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.job = nil
}

// beat notes what the loop does from now on.
func (w *warden) beat(busy bool, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy, w.beatAt = busy, at
}
