package lease

import (
	"hash/fnv"
	"runtime"
	"slices"
	"sync"
	"time"

	"fencepost/impl/clock"
)

// pausedClock is the clock of a process that stands still at times while its clock
// goes on: what would wake it, a timer or an answer, does so only after the
// pause. It does not hold up whoever reads it, since that may be under a lock,
// for which a bubble's time would wait.
type pausedClock struct {
	clock.Clock
	base clock.Clock
	rate clock.Rate
	late time.Duration // planted: by which each timer fires

	mu     sync.Mutex
	end    time.Duration // on base
	timers []*pausedTimer
}

type pausedTimer struct {
	clock.Timer
	clk *pausedClock
	nth time.Duration // no two timers of a Run fire at the same end of a pause
	at  time.Duration
}

func (p *pausedClock) Timer(at time.Duration) clock.Timer {
	p.mu.Lock()
	defer p.mu.Unlock()
	nth := nthOfMaker()
	t := &pausedTimer{p.Clock.Timer(p.wake(at, nth)), p, nth, at}
	p.timers = append(p.timers, t)
	return t
}

// nthOfMaker tells the timers of a Run apart by who made them: in which order their
// goroutines came to it is the scheduler's to say.
func nthOfMaker() time.Duration {
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:]) // the caller of Timer
	frame, _ := runtime.CallersFrames(pcs[:]).Next()
	h := fnv.New32a()
	h.Write([]byte(frame.Function))
	return time.Duration(1 + h.Sum32()%4)
}

func (t *pausedTimer) Reset(at time.Duration) {
	t.clk.mu.Lock()
	defer t.clk.mu.Unlock()
	t.at = at
	t.Timer.Reset(t.clk.wake(at, t.nth))
}

func (t *pausedTimer) Stop() {
	t.clk.mu.Lock()
	defer t.clk.mu.Unlock()
	t.clk.timers = slices.DeleteFunc(t.clk.timers, func(old *pausedTimer) bool { return old == t })
	t.Timer.Stop()
}

// wake is when a timer for at fires.
func (p *pausedClock) wake(at, nth time.Duration) time.Duration {
	at = add(at, p.late)
	if left := p.end - p.base.Now(); left > 0 {
		at = max(at, p.Clock.Now()+(left+10*nth)*time.Duration(p.rate)/1_000_000)
	}
	return at
}

// pause begins now. Timers that have fired already have woken who waits for them.
func (p *pausedClock) pause(long time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = max(p.end, p.base.Now()+long)
	now := p.Clock.Now()
	for _, t := range p.timers {
		if t.at > now {
			t.Timer.Reset(p.wake(t.at, t.nth))
		}
	}
}

func (p *pausedClock) until() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end
}

// afterPause is how long after the end of one everything has woken.
const afterPause = 50 * time.Nanosecond

// rest returns when there is no pause: at once, or a while after one, so that no
// two answers come at its end.
func (p *pausedClock) rest(while func() time.Duration) {
	for left := p.until() - p.base.Now(); left > 0; left = p.until() - p.base.Now() {
		time.Sleep(left + afterPause + while())
	}
}

// shifted is a clock that reads by apart from another.
type shifted struct {
	clock.Clock
	by time.Duration
}

func (s shifted) Now() time.Duration { return s.Clock.Now() + s.by }
