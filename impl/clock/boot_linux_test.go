package clock

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestBootReadsTheKernelsBootClock(t *testing.T) {
	var info unix.Sysinfo_t // its uptime is the boot clock's, in seconds rounded up
	before := Boot().Now()
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	after := Boot().Now()
	if up := time.Duration(info.Uptime) * time.Second; up < before || up > after+time.Second {
		t.Fatalf("up for %v, but the clock read %v before and %v after", up, before, after)
	}
}

// The only test that waits for real time: 4 ms of it in all.
func TestBootTimerIsNotEarly(t *testing.T) {
	c := Boot()
	timer := c.Timer(0)
	defer timer.Stop()
	wantFiring(t, timer, "at once")
	for range 40 {
		at := c.Now() + 100*time.Microsecond
		timer.Reset(at)
		<-timer.C()
		if now := c.Now(); now < at {
			t.Fatalf("fired at %v for %v", now, at)
		}
	}
}

func TestBootResetReplacesTheInstant(t *testing.T) {
	c := Boot()
	timer := c.Timer(c.Now() + time.Hour)
	defer timer.Stop()
	at := c.Now() + 50*time.Microsecond
	timer.Reset(at)
	<-timer.C() // or the test does not end
	for range 20 {
		timer.Reset(c.Now() + 20*time.Microsecond)
		timer.Reset(1<<63 - 1)
		wantNone(t, timer, "of an arming that was replaced")
	}
	timer.Reset(3_000_000_000 * time.Second) // negative in a 32-bit system's timespec
	wantNone(t, timer, "95 years early")
}

func timerfds(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && strings.Contains(to, "[timerfd]") {
			n++
		}
	}
	return n
}

// waiters counts the goroutines that serve a timerfd.
func waiters() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "clock.(*timerfd).run(")
}

func TestStopReleasesDescriptorAndGoroutine(t *testing.T) {
	c := Boot()
	var timers []Timer
	for range 8 {
		timers = append(timers, c.Timer(c.Now()+time.Hour))
	}
	if fds := timerfds(t); fds != 8 {
		t.Fatalf("8 timers have %d descriptors", fds)
	}
	for waiters() != 8 { // until all have started
		runtime.Gosched()
	}
	for _, timer := range timers {
		timer.Stop()
		timer.Stop()
	}
	if fds := timerfds(t); fds != 0 || waiters() != 0 {
		t.Fatalf("%d descriptors and %d goroutines are left after Stop", fds, waiters())
	}
	timers[0].Reset(c.Now())
	<-timers[0].C()
	timers[0].Stop()
	if fds := timerfds(t); fds != 0 || waiters() != 0 {
		t.Fatalf("%d descriptors and %d goroutines are left after Stop, Reset, Stop", fds, waiters())
	}
}

func TestTimerfdCloseWaitsForAWakeInProgress(t *testing.T) {
	entered := make(chan struct{})
	ended := false
	a, err := newTimerfd(func() {
		close(entered)
		for range 1000 {
			runtime.Gosched()
		}
		ended = true
	})
	if err != nil {
		t.Fatal(err)
	}
	a.set(1) // long ago
	<-entered
	a.close()
	if !ended {
		t.Fatal("close returned while its goroutine was running")
	}
}

func TestBootTimerWorksWithoutDescriptors(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	c := Boot()
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	at := c.Now() + 100*time.Microsecond
	timer := c.Timer(at)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer timer.Stop()
	if timerfds(t) != 0 {
		t.Fatal("the limit was not in force")
	}
	<-timer.C()
	if now := c.Now(); now < at {
		t.Fatalf("fired at %v for %v", now, at)
	}
}
