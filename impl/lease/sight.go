package lease

import "time"

// Sight is a version of a lease as one observer has seen it: the rule of a store
// whose server keeps what is written and judges no time, such as object storage
// or the Lease of Kubernetes. There each candidate judges for itself that a
// tenure has lapsed, and this is how, as a pure value:
//
//   - It compares no instant that another machine has written. The version must have
//     stood unchanged for the whole TTL by the observer's own clock, and for what
//     clocks may differ in rate on top: see [Sight.Lapse].
//   - It counts from when the first answer that showed the version had come. The
//     holder counts from when it asked for the write of that version
//     ([Config.Window]), which was before.
//   - Whoever takes over writes on condition that the version is still the one it
//     has seen, so that a renewal it has not seen makes it fail.
//
// So each write has to make another version, one that changes nothing else too.
// The zero Sight is of a lease that was never seen.
//
// The first two are those of client-go's leader election (observedTime in its
// package leaderelection), which leaves out the rate, and says so: it bears clocks
// that show different times, but not such that run at different rates. That a
// bound on the rate is needed, and enough, is in Gray and Cheriton, section 5.
type Sight struct {
	Version string        // as the server names it, such as an ETag; not empty
	Since   time.Duration // on the observer's clock: when the first answer that showed it had come
}

// See is the sight after an answer that showed version came at now. Only another
// version counts anew.
func (s Sight) See(version string, now time.Duration) Sight {
	if version == s.Version {
		return s
	}
	return Sight{Version: version, Since: now}
}

// Lapse is the instant on the observer's clock from which a tenure of ttl that was
// seen so has lapsed: Since + ttl/(1-maxDriftRate), rounded up. The rate of a
// holder's clock over the observer's is at least 1-maxDriftRate, in [0, 1), of
// which billionths count. A holder on such a clock may use its TTL to the end.
func (s Sight) Lapse(ttl time.Duration, maxDriftRate float64) time.Duration {
	return add(s.Since, stretch(ttl, ppb(maxDriftRate)))
}

// After reports whether s, the latest sight, was taken after a question was asked
// at which asked was the latest. An answer to that question which shows an older
// version than s was overtaken on its way then, and is to be dropped; else
// the server has gone back, as from a backup, and is to be believed.
func (s Sight) After(asked Sight) bool { return s != asked }
