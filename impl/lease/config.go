package lease

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Config is the timing of one lease, the same for every candidate and its
// store. Zero RenewFraction and RetryInterval stand for their defaults.
//
// The timing argument. The client starts its countdown when it sends a
// request; the store starts the TTL when it handles it, which is no earlier.
// The client then acts for
//
//	SafeWindow = TTL - TTL*MaxDriftRate - SafetyMargin
//
// on its own clock. A clock that runs slow by a rate r against the store's
// stretches that to SafeWindow/(1-r) of the store's time, which is at most TTL
// whenever r <= MaxDriftRate. So belief ends before the store can lapse.
type Config struct {
	// TTL is how long a grant lasts on the store's clock.
	TTL time.Duration
	// MaxDriftRate bounds the client's clock against the store's: client rate
	// over store rate is at least 1-MaxDriftRate, in [0, 1). Where every clock
	// is within e of true time it is 2e/(1+e). Resolved to parts per billion.
	MaxDriftRate float64
	// SafetyMargin is taken off the window besides, for what drift does not
	// cover: the time between checking belief and acting on it.
	SafetyMargin time.Duration
	// RenewFraction of the window passes before a renewal is sent, in (0, 1).
	// Default 1/3, so that two lost renewals are survived.
	RenewFraction float64
	// RetryInterval passes before an unanswered request is sent again, and
	// between a candidate's attempts; an [Elector] that was refused draws each
	// such period from (2/3, 1] of it. Less than the window; a lost renewal is
	// sent again only if this and RenewFraction leave the time. Default a tenth
	// of the window.
	RetryInterval time.Duration
	// LockDelay is how long after a lapse, not after a release, the store
	// grants the lease to nobody.
	LockDelay time.Duration
	// Barrier makes a new leader fence its token at the storage, and have
	// that acknowledged, before it leads.
	Barrier bool
}

const (
	defaultRenewFraction = 1.0 / 3
	// maxDuration keeps every sum of configured durations, stretched by any
	// rate, far from overflow.
	maxDuration = 365 * 24 * time.Hour
)

// ConfigError says which field of a [Config] is refused and why, with the
// arithmetic.
type ConfigError struct {
	Field  string
	Reason string
}

func (e *ConfigError) Error() string { return "lease config: " + e.Field + ": " + e.Reason }

// Validate returns a *[ConfigError] for the first field that makes no sense,
// or nil. A configuration without a positive window is refused, and so is one
// without a renewal and a retry interval that fit into it.
func (c Config) Validate() error {
	bad := func(field, format string, args ...any) error {
		return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"TTL", c.TTL}, {"SafetyMargin", c.SafetyMargin}, {"RetryInterval", c.RetryInterval}, {"LockDelay", c.LockDelay}} {
		if d.d < 0 || d.d > maxDuration {
			return bad(d.name, "%v is not between 0 and %v", d.d, maxDuration)
		}
	}
	if c.TTL == 0 {
		return bad("TTL", "must be set")
	}
	if !(c.MaxDriftRate >= 0 && c.MaxDriftRate < 1) {
		return bad("MaxDriftRate", "%v is not in [0, 1): 0.01 means that a clock may run 1%% slow", c.MaxDriftRate)
	}
	if !(c.RenewFraction >= 0 && c.RenewFraction < 1) {
		return bad("RenewFraction", "%v is not in (0, 1); 0 stands for 1/3", c.RenewFraction)
	}
	if w := c.SafeWindow(); w <= 0 {
		return bad("TTL", "leaves no time to act: window = ttl - ttl*maxDriftRate - safetyMargin = %v - %v*%v - %v = %v; raise TTL or lower SafetyMargin",
			c.TTL, c.TTL, c.MaxDriftRate, c.SafetyMargin, w)
	}
	// Else a term would flood the store, or renew too late, or never retry.
	w, after := c.SafeWindow(), c.RenewAfter()
	if after <= 0 || after >= w {
		return bad("RenewFraction", "renewAfter = window * renewFraction = %v * %v = %v is not between 0 and the window, to the nanosecond; bring it nearer to 1/3, or raise TTL",
			w, c.fraction(), after)
	}
	if retry := c.Retry(); retry >= w {
		return bad("RetryInterval", "%v is not below the window of %v: no lost renewal would be sent again; lower it, well below window - renewAfter = %v - %v = %v", retry, w, w, after, w-after)
	}
	return nil
}

// SafeWindow is how long after sending a request that was granted the full TTL
// a client may believe it leads, on its own clock.
func (c Config) SafeWindow() time.Duration { return c.Window(c.TTL) }

// Window is the safe window for a grant of ttl; it is not positive where ttl
// leaves no time to act.
func (c Config) Window(ttl time.Duration) time.Duration {
	return window(ttl, ppb(c.MaxDriftRate), c.SafetyMargin)
}

// RenewAfter is how long after sending a request that was granted the full TTL
// the next renewal is sent.
func (c Config) RenewAfter() time.Duration {
	return time.Duration(math.Round(float64(c.SafeWindow()) * c.fraction()))
}

func (c Config) fraction() float64 { return cmp.Or(c.RenewFraction, defaultRenewFraction) }

// Retry is RetryInterval or its default.
func (c Config) Retry() time.Duration {
	if c.RetryInterval > 0 {
		return c.RetryInterval
	}
	return max(c.SafeWindow()/10, 1)
}

// Failover bounds the time from the store's handling of a dead leader's last
// renewal to a waiting candidate's next attempt after the lapse, in true time
// with every clock within the bound: TTL, lock delay and one retry interval,
// stretched by the slowest clock. The network comes on top: five one-way
// delays, seven with the barrier.
func (c Config) Failover() time.Duration {
	return stretch(c.TTL+c.LockDelay+c.Retry(), ppb(c.MaxDriftRate))
}

const billion = 1_000_000_000

func ppb(rate float64) uint64 { return uint64(math.Round(rate * billion)) }

// window rounds the drift allowance up: a nanosecond less belief, never more.
func window(ttl time.Duration, driftPPB uint64, margin time.Duration) time.Duration {
	if ttl <= 0 {
		return -margin
	}
	hi, lo := bits.Mul64(uint64(ttl), driftPPB)
	lo, carry := bits.Add64(lo, billion-1, 0)
	loss, _ := bits.Div64(hi+carry, lo, billion)
	return ttl - time.Duration(loss) - margin
}

// stretch is d/(1-rate), rounded up.
func stretch(d time.Duration, ratePPB uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(d), billion)
	den := billion - ratePPB
	lo, carry := bits.Add64(lo, den-1, 0)
	if hi+carry >= den {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi+carry, lo, den)
	return time.Duration(min(q, math.MaxInt64))
}

// configJSON is the file form: durations as Go writes them ("1.5s").
type configJSON struct {
	TTL           string  `json:"ttl"`
	MaxDriftRate  float64 `json:"maxDriftRate,omitempty"`
	SafetyMargin  string  `json:"safetyMargin,omitempty"`
	RenewFraction float64 `json:"renewFraction,omitempty"`
	RetryInterval string  `json:"retryInterval,omitempty"`
	LockDelay     string  `json:"lockDelay,omitempty"`
	Barrier       bool    `json:"barrier,omitempty"`
}

// MarshalJSON writes durations as Go does, such as "1.5s".
func (c Config) MarshalJSON() ([]byte, error) {
	text := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	return json.Marshal(configJSON{
		TTL: text(c.TTL), MaxDriftRate: c.MaxDriftRate, SafetyMargin: text(c.SafetyMargin), RenewFraction: c.RenewFraction,
		RetryInterval: text(c.RetryInterval), LockDelay: text(c.LockDelay), Barrier: c.Barrier,
	})
}

// UnmarshalJSON reads what MarshalJSON writes and refuses unknown fields. It
// does not validate.
func (c *Config) UnmarshalJSON(b []byte) error {
	var j configJSON
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		return fmt.Errorf("lease config: %w", err)
	}
	out := Config{MaxDriftRate: j.MaxDriftRate, RenewFraction: j.RenewFraction, Barrier: j.Barrier}
	for _, f := range []struct {
		name string
		text string
		to   *time.Duration
	}{{"ttl", j.TTL, &out.TTL}, {"safetyMargin", j.SafetyMargin, &out.SafetyMargin}, {"retryInterval", j.RetryInterval, &out.RetryInterval}, {"lockDelay", j.LockDelay, &out.LockDelay}} {
		if f.text == "" {
			continue
		}
		d, err := time.ParseDuration(f.text)
		if err != nil {
			return &ConfigError{Field: f.name, Reason: fmt.Sprintf("%q is not a duration such as \"1.5s\"", f.text)}
		}
		*f.to = d
	}
	*c = out
	return nil
}
