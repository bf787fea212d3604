//go:build linux && cgo

package clock

// #include <errno.h>
// #include <stdint.h>
// #include <time.h>
//
// // fencepost_boottime gives nanoseconds, or an error number below zero.
// static int64_t fencepost_boottime(void) {
// 	struct timespec ts;
// 	if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0) return -(int64_t)errno;
// 	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
// }
//
// #cgo noescape fencepost_boottime
// #cgo nocallback fencepost_boottime
import "C"

import (
	"syscall"
	"time"
)

// bootTime asks libc, which reads a page that the kernel shares with every
// process (vDSO) instead of calling it. Go itself does so for the wall and the
// monotonic clock alone.
func bootTime() (time.Duration, error) {
	ns := C.fencepost_boottime()
	if ns < 0 {
		return 0, syscall.Errno(-ns)
	}
	return time.Duration(ns), nil
}
