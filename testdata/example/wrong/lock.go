package wrong

import (
	"math"
	"time"
)

// lock is a lock as most of these stores keep it.
type lock struct {
	owner   string
	token   uint64
	expires time.Duration
}

// until is ttl after now, or the last instant there is.
func until(now, ttl time.Duration) time.Duration {
	if ttl > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ttl
}
