package model

import "math"

// Slack is how much longer than the TTL that was asked for a tenure may be
// held, in ns of the store's clock.
func (p Promise) Slack() int64 {
	return saturate(saturate(p.Late, p.Granularity), p.MinTTL)
}

// Revival is how long after its TTL the holder may still renew a tenure that
// nobody took, in ns of the store's clock; [math.MaxInt64] for ever.
func (p Promise) Revival() int64 {
	if p.RenewAfterLapse {
		return math.MaxInt64
	}
	return p.Slack()
}
