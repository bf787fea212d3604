package kit

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"fencepost/impl/clock"
)

// Lab runs the processes of one thing under test, one after the other, each
// from the durable state that the one before left. T is what open makes: a
// lease.Store or a fence.KV. A Lab must be closed.
type Lab[T any] struct {
	open   func(Env) T
	disk   disk
	wrap   func(clock.Clock) clock.Clock
	clk    *clock.Manual
	born   time.Duration // the reading at which the process was born
	cancel context.CancelFunc
	thing  T
	boots  int
	steady bool // see SteadyClock
	log    log
}

// NewLab starts the first process of what open makes. wrap, where it is not
// nil, changes the clock that each process is given. It panics with a
// *[SetupError] where open gives up; [Attempt] turns that into an error.
func NewLab[T any](open func(Env) T, wrap func(clock.Clock) clock.Clock) *Lab[T] {
	l := &Lab[T]{open: open, wrap: wrap}
	l.boot()
	return l
}

// SteadyClock says whether the clocks of processes from the next on go on from
// what the one before read last, as [Options].SteadyClock promises. Each is a
// clock of its own all the same: no timer of a process outlives it.
func (l *Lab[T]) SteadyClock(on bool) { l.steady = on }

// boot starts a process. Unless clocks go on, each one's begins at a reading of
// its own, far from that of those around it: no instant of one means anything
// to the next.
func (l *Lab[T]) boot() {
	l.boots++
	n := time.Duration(l.boots % 1000) // or after many boots it would overflow
	l.born = n * 1_000_003 * time.Second
	if l.boots%2 == 0 {
		l.born = n * time.Second // a clock that starts low, as after a reboot
	}
	if l.steady && l.clk != nil {
		l.born = l.clk.Now()
	}
	l.clk = clock.NewManual(l.born)
	var clk clock.Clock = l.clk
	if l.wrap != nil {
		clk = l.wrap(clk)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	env := Env{Clock: clk, Context: ctx, Logger: slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{ReplaceAttr: timeless})), disk: &l.disk}
	l.thing = l.open(env)
}

// Thing is the running process's store or storage.
func (l *Lab[T]) Thing() T { return l.thing }

// Clock is the running process's clock, before wrap.
func (l *Lab[T]) Clock() *clock.Manual { return l.clk }

// Advance lets d pass, and lets what works in the background catch up.
func (l *Lab[T]) Advance(d time.Duration) {
	l.clk.Advance(d)
	l.Settle()
}

// Settler is offered by a store that works in the background, such as one
// whose goroutine ends leases by a timer. Settle returns once everything is
// done that is due by the store's clock.
type Settler interface{ Settle() }

// Settle waits for what works in the background, if the thing is a [Settler].
func (l *Lab[T]) Settle() {
	if s, ok := any(l.thing).(Settler); ok {
		s.Settle()
	}
}

// Restart crashes the process and starts the next one. The old one's context
// ends, and its Close is called where it has one: all that a Close may do here
// is what the death of a process does, such as to give up file locks.
func (l *Lab[T]) Restart() {
	l.crash()
	l.boot()
}

func (l *Lab[T]) crash() {
	l.cancel()
	thing := l.thing
	// A process that dies dies once, also where the next one cannot be opened.
	l.thing = *new(T)
	close(any(thing))
}

// Close ends the process and discards its durable state.
func (l *Lab[T]) Close() {
	l.crash()
	l.disk.discard()
}

// Log is the end of what the processes logged.
func (l *Lab[T]) Log() string { return l.log.String() }

// Attempt runs f, and gives back the *[SetupError] with which it gave up.
func Attempt(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *SetupError:
			err = r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// timeless leaves the time of day out of the log, which would differ between
// two runs.
func timeless(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// log keeps the last lines written to it.
type log struct {
	mu    sync.Mutex
	lines []string
}

var _ io.Writer = (*log)(nil)

const logLines = 20

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimRight(string(p), "\n"))
	if n := len(l.lines); n > logLines {
		l.lines = append(l.lines[:0], l.lines[n-logLines:]...)
	}
	return len(p), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
