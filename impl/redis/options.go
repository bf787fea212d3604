package redis

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fencepost/impl/lease"
)

// Options are what a [Store] may be told. The zero Options are a store without
// lock delay, which starts every resource at token 1 and refuses a server that
// could issue a token twice.
type Options struct {
	// Prefix is what the store's keys start with, "fencepost:" if empty. The
	// keys of a resource are Prefix{resource}:lease and Prefix{resource}:token,
	// in one slot of a cluster because of the braces; hints go to the channel
	// Prefix + "changes".
	Prefix string
	// LockDelay is how long after a lapse, not after a release, a resource is
	// granted to nobody: [lease.Config.LockDelay]. Not negative. All who use the
	// same leases must say the same.
	LockDelay time.Duration
	// FirstToken is the first token of a resource that the server does not know,
	// 1 if zero. Whoever moves here from another source of tokens starts above
	// all of them. At most 2^63-1.
	FirstToken lease.Token
	// Accept names the settings that [New] must not object to, as the
	// [SettingError] names them. Each is a risk that you take.
	Accept []string
	// Unchecked keeps New from asking the server anything.
	Unchecked bool
}

const defaultPrefix = "fencepost:"

func (o Options) prefix() string {
	if o.Prefix == "" {
		return defaultPrefix
	}
	return o.Prefix
}

func (o Options) validate() error {
	switch {
	case o.LockDelay < 0:
		return &lease.ConfigError{Field: "LockDelay", Reason: fmt.Sprintf("%v is negative", o.LockDelay)}
	case o.LockDelay > maxLockDelay:
		return &lease.ConfigError{Field: "LockDelay", Reason: fmt.Sprintf("%v is more than %v", o.LockDelay, maxLockDelay)}
	case o.FirstToken > math.MaxInt64:
		return &lease.ConfigError{Field: "FirstToken", Reason: fmt.Sprintf("%d is more than %d, where the server's integers end", o.FirstToken, int64(math.MaxInt64))}
	}
	return nil
}

func (o Options) accepts(setting string) bool { return slices.Contains(o.Accept, setting) }

// maxLockDelay keeps an instant that a script adds it to exact.
const maxLockDelay = 10 * 365 * 24 * time.Hour
