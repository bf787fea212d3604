package lease

import (
	"errors"
	"fmt"
	"time"
)

// ErrWedged matches what [Elector.Health] returns where something is stuck.
var ErrWedged = errors.New("elector is wedged")

// WedgedError says what an [Elector] should have done by now, and did not. It
// matches [ErrWedged].
type WedgedError struct {
	Resource string
	Late     string        // what is late
	Since    time.Duration // on the elector's clock: when it was due
	For      time.Duration // how long ago that was
}

func (e *WedgedError) Error() string {
	return fmt.Sprintf("lease %q: %s for %v (since %v on the elector's clock); restart the process if it does not recover", e.Resource, e.Late, e.For, e.Since)
}

// Is makes errors.Is(err, ErrWedged) hold.
func (e *WedgedError) Is(target error) bool { return target == ErrWedged }

// Health returns nil, or a *[WedgedError] where the elector has been stuck for
// longer than a retry interval:
//
//   - in a call of the Logger or the Observer, which should return at once, so that
//     nothing is renewed;
//   - since the goroutine that keeps the lease was not woken when it was due;
//   - in work that has not returned, though its term is over and the lease is no
//     longer kept for it;
//
// or where no renewal was confirmed since one was due, and a quarter of the time
// from then to the deadline is left.
//
// Belief ends on time in each of these cases; what fails is to keep the lease, or
// to campaign. A candidate that does not get the lease is healthy, also while the
// store is down, and so is an elector that does not run. Health looks at the clock,
// makes no call and waits for none.
func (e *Elector) Health() error {
	l := e.loop.Load()
	if l == nil {
		return nil
	}
	now := e.clk.Now()
	late, since := l.warden.late(now, e.cfg.Retry())
	if late == "" {
		return nil
	}
	return &WedgedError{Resource: e.opts.Resource, Late: late, Since: since, For: now - since}
}

// late says what is overdue at now by more than grace, and since when.
func (w *warden) late(now, grace time.Duration) (what string, since time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.job
	switch {
	case w.busy && now > add(w.beatAt, grace):
		return "a call of its Logger or Observer has not returned", w.beatAt
	case !w.busy && now > add(w.beatAt, grace):
		return "its goroutine was not woken", w.beatAt
	case j != nil && j.over && now > add(w.kept, grace):
		return "the work has not returned, and the lease is not kept for it", w.kept
	case j != nil && !j.over && !j.belief.cut() && now-w.renewal > (j.Deadline()-w.renewal)/4*3:
		return "a renewal has not been confirmed", w.renewal
	}
	return "", 0
}
