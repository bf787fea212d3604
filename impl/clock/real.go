package clock

import (
	"math"
	"time"
)

// Boot returns the clock to hold a lease by: it counts from the machine's start, also
// while the machine is suspended, and its timers fire on time even so.
//
//	                                        Boot    Monotonic
//	wall clock set, leap second             safe    safe
//	process paused (GC, SIGSTOP, paging)    safe    safe
//	machine suspended                       safe    UNSAFE: stands still while the lease lapses
//	virtual machine frozen, snapshotted     UNSAFE  UNSAFE: both stand still
//	drift                                   safe within the drift bound, both
//
// Safe means that whoever reads the clock after the event sees the time that has
// passed, and so no longer believes in a lease that has run out. It does not help a
// write already on its way, and nothing in a frozen machine can tell that time has
// passed: against those only fencing at the storage helps. Drift is not only the
// oscillator's: a time daemon that slews the wall clock (chronyd by up to its
// maxslewrate) changes the rate of both clocks, and the bound must cover that too.
//
// On Linux it is CLOCK_BOOTTIME. Reading it takes about twice the 30 ns of [Monotonic]
// where cgo is enabled, as it is by default where a C compiler is installed. Without
// cgo it is a system call, 300 ns on one machine and 1600 ns on another (run
// go test -bench Now for yours). Each [Timer] is a timerfd and a goroutine until it is
// stopped. If the system refuses a timerfd (the
// process is out of descriptors, say, or sandboxed) the timer is one of Go's that looks
// at the clock every 100 ms: late by that after a suspend, and otherwise as good.
//
// Elsewhere there is no such clock here and Boot returns Monotonic(): there, a node that
// sleeps may wake up with too long a belief, and only fencing protects.
//
// Boot panics if CLOCK_BOOTTIME cannot be read, as under a seccomp filter that forbids
// it, rather than fall back to less than was asked for.
func Boot() Clock { return boot() }

// Monotonic returns a clock that counts from the call, by Go's own monotonic time. It
// is cheaper than [Boot], and its timers are Go's. It is the one
// to use on machines that are never suspended; the table at [Boot] says why.
//
// In a testing/synctest bubble it reads the bubble's time.
func Monotonic() Clock { return monotonic{origin: time.Now()} }

// monotonic relies on [time.Time] carrying a monotonic reading, which Since subtracts.
type monotonic struct{ origin time.Time }

func (m monotonic) Now() time.Duration { return time.Since(m.origin) }

func (m monotonic) Timer(at time.Duration) Timer { return newTimer(m.Now, m.alarm, at) }

func (m monotonic) alarm(wake func()) alarm {
	return &sleeper{now: m.Now, wake: wake, most: math.MaxInt64}
}
