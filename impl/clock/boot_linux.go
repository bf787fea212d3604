package clock

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bootClock has the kernel's own origin, so that it has no state.
type bootClock struct{}

func boot() Clock {
	bootClock{}.Now() // panics here rather than in the middle of a term
	return bootClock{}
}

func (bootClock) Now() time.Duration {
	now, err := bootTime()
	if err != nil {
		panic(fmt.Sprintf("clock: reading CLOCK_BOOTTIME: %v; allow clock_gettime, or use clock.Monotonic", err))
	}
	return now
}

func (c bootClock) Timer(at time.Duration) Timer { return newTimer(c.Now, c.alarm, at) }

// lookEvery bounds how late a timer is after a suspend when there is no timerfd for it.
const lookEvery = 100 * time.Millisecond

func (c bootClock) alarm(wake func()) alarm {
	a, err := newTimerfd(wake)
	if err != nil {
		return &sleeper{now: c.Now, wake: wake, most: lookEvery}
	}
	return a
}

// timerfd is an alarm by a kernel timer on CLOCK_BOOTTIME. Go's runtime waits for it as
// for any socket, so that its goroutine takes no thread.
type timerfd struct {
	fd   int // of file; in use only until close
	file *os.File
	done sync.WaitGroup
}

func newTimerfd(wake func()) (*timerfd, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("clock: creating a timerfd: %w", err)
	}
	t := &timerfd{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}
	// A descriptor that the runtime could not register is one without deadlines, and
	// reading it would not wait.
	if err := t.file.SetReadDeadline(time.Time{}); err != nil {
		t.file.Close()
		return nil, fmt.Errorf("clock: waiting for a timerfd: %w", err)
	}
	t.done.Go(func() { t.run(wake) })
	return t, nil
}

// run ends when close closes the file.
func (t *timerfd) run(wake func()) {
	var expirations [8]byte
	for {
		switch _, err := t.file.Read(expirations[:]); {
		case err == nil:
			wake()
		case errors.Is(err, os.ErrClosed):
			return
		default:
			t.broken(err)
		}
	}
}

func (t *timerfd) set(at time.Duration) (due bool) {
	// Not zero, which would disarm: the clock, at 0 or later, has yet to reach it. And
	// not later than a 32-bit system's timespec can say, 68 years after the start.
	at = min(at, math.MaxInt32*time.Second)
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}
	if err := unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		t.broken(err)
	}
	return false
}

func (t *timerfd) close() {
	t.file.Close()
	t.done.Wait()
}

// broken ends the process: a term would not end on time. It takes somebody who closes
// descriptors that are not theirs to get here.
func (t *timerfd) broken(err error) {
	panic(fmt.Sprintf("clock: timer descriptor %d: %v; was it closed by other code in this process?", t.fd, err))
}
