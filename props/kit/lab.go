package kit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
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
	cancel context.CancelFunc
	thing  T
	runs   bool // there is a thing
	boots  int
	steady bool // see SteadyClock
	log    Log
	watch  *Watch // of what was opened; nil: nobody watches
}

// NewLab starts the first process of what open makes. wrap, where it is not
// nil, changes the clock that each process is given. It panics with a
// *[SetupError] where open gives up; [Attempt] turns that into an error.
func NewLab[T any](open func(Env) T, wrap func(clock.Clock) clock.Clock) *Lab[T] {
	l := &Lab[T]{open: open, wrap: wrap}
	defer func() {
		if !l.runs { // nobody gets the lab to close it
			l.Close()
		}
	}()
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
	n := time.Duration(l.boots % 200) // or after many boots it would overflow
	// Beyond 2^53 ns, where a float64 has no room for a nanosecond any more.
	born := n * 10_000_019 * time.Second
	if l.boots%2 == 0 {
		born = n * time.Second // a clock that starts low, as after a reboot
	}
	if l.steady && l.clk != nil {
		born = l.clk.Now()
	}
	l.clk = clock.NewManual(born)
	var clk clock.Clock = l.clk
	if l.wrap != nil {
		clk = l.wrap(clk)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	env := Env{Clock: clk, Context: ctx, Logger: slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{ReplaceAttr: timeless})), disk: &l.disk, watch: &l.watch}
	l.thing = l.open(env)
	if err := usable(l.thing); err != nil {
		panic(&SetupError{err})
	}
	l.runs = true
}

// usable is why there is nothing to check, nil if there is something.
func usable(thing any) error {
	switch v := reflect.ValueOf(thing); {
	case !v.IsValid():
		return errors.New("open returned nil")
	case v.Kind() == reflect.Pointer && v.IsNil():
		return fmt.Errorf("open returned a nil %T", thing)
	}
	return nil
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
		l.watch.Within("Settle", s.Settle)
	}
}

// Call is a call of the thing, in f: see [Watch.Call].
func (l *Lab[T]) Call(f func()) { l.watch.Call(f) }

// Within is what no answer is expected of: see [Watch.Within].
func (l *Lab[T]) Within(what string, f func()) { l.watch.Within(what, f) }

// Tell says who tells of a call that does not return: see [Watch.Tell].
func (l *Lab[T]) Tell(tell func(within string) *Failure) { l.watch.Tell(tell) }

// Restart crashes the process and starts the next one. The old one's context
// ends, and its Close is called where it has one: all that a Close may do here
// is what the death of a process does, such as to give up file locks.
func (l *Lab[T]) Restart() {
	l.crash()
	l.boot()
}

func (l *Lab[T]) crash() {
	l.cancel()
	if !l.runs {
		return // it died, and the next one could not be opened
	}
	thing := l.thing
	l.thing, l.runs = *new(T), false
	l.watch.Within("Close", func() { Close(thing) })
}

// Close ends the process and discards its durable state.
func (l *Lab[T]) Close() {
	defer l.watch.Within("the Close of what is Durable", l.disk.discard) // also where the thing panics
	l.crash()
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

// Try is what check comes to: unknown if it gave up.
func Try(check func() Outcome) (out Outcome) {
	if err := Attempt(func() { out = check() }); err != nil {
		return Outcome{Unknown: err.Error()}
	}
	return out
}

// timeless leaves the time of day out of the log, which would differ between
// two runs.
func timeless(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
