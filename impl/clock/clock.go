// Package clock gives fencepost its time: instants to compare, and timers that
// fire when one is reached, both on a clock that the caller injects.
//
// It must not know the date, nor what a lease is. An instant is a [time.Duration]
// since its own clock's origin; the wall clock, which may be set to anything at any
// moment, appears nowhere, and no instant of one clock may be compared with one of
// another.
//
// Start with [Clock] and [Timer]. [Boot] and [Monotonic] are the real clocks, and
// [Boot] has the table of what each protects from. [Manual] moves only when told,
// and [Drifting] makes any clock slow, fast, or stopped: with these two, everything
// that a bad clock can do to a lease is a deterministic test.
package clock

import "time"

// Clock tells instants as durations since its own origin. Instants of two clocks
// are never comparable, nor are those of two runs of one process; what clocks share
// is the length of a second, give or take their drift.
//
// A Clock never goes back, and is safe for concurrent use.
type Clock interface {
	// Now returns the current instant.
	Now() time.Duration

	// Timer returns a new timer that fires once Now() >= at, at once if that is
	// already so. Whoever calls it must call Stop in the end.
	Timer(at time.Duration) Timer
}

// Timer fires once for each time that it is armed: by [Clock.Timer], and by each Reset.
//
// Firing is half-open, as every interval in fencepost: not while Now() < at, but when
// Now() == at. It is never early by its own clock, and as late as the scheduler makes
// it; so a timer is there to wake somebody who then reads Now, and never itself the
// proof that an instant is still ahead.
//
// A Timer is safe for concurrent use.
type Timer interface {
	// C returns the channel that receives one value for each firing. It is the same
	// channel for the life of the timer, has room for one value, and is never closed.
	C() <-chan struct{}

	// Reset arms the timer for at instead of whatever it was armed for. A firing that
	// nobody has received is discarded: what arrives after Reset returns is
	// due to that Reset. A stopped timer may be reset.
	Reset(at time.Duration)

	// Stop disarms the timer, discards a firing that nobody has received, and releases
	// what the timer holds, which for [Boot] is a file descriptor and a goroutine.
	// Nothing arrives after Stop returns. A timer that has fired must be stopped too.
	// Stopping twice is harmless.
	Stop()
}
