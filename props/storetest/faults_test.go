package storetest

import (
	"math"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

const (
	ns  = time.Nanosecond
	sec = time.Second

	month = 30 * 24 * time.Hour
)

// faults are one for each check.
func faults() []fault {
	acq, ren, rel, get := lease.OpAcquire, lease.OpRenew, lease.OpRelease, lease.OpGet
	yes := func(b bool) func(time.Duration, row, lease.Request) (bool, bool) {
		return func(time.Duration, row, lease.Request) (bool, bool) { return b, !b }
	}
	nodeOnly := func(_ time.Duration, r row, q lease.Request) (bool, bool) {
		return sameNode(r.Holder, q.Holder), false
	}
	delay := 5 * sec
	withDelay := kit.Options{LockDelay: delay}
	steady, steadyDelay := kit.Options{SteadyClock: true}, kit.Options{SteadyClock: true, LockDelay: delay}
	expire := func(r row) row { r.Expires = 0; return r }
	restored := func(f func(old, r row, now time.Duration) row) func(row, time.Duration) row {
		return func(old row, now time.Duration) row { return f(old, lease.Restore(old.Durable, now), now) }
	}
	fs := []fault{
		{name: "grants nothing", check: "rules/a-free-lease-is-granted", handle: on(acq, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			rep := q.To(lease.CodeHeld)
			rep.Current, rep.Token, rep.Remaining = node("c"), 9, sec
			return r, rep
		})},
		{name: "panics at a renewal", check: "rules/every-request-is-answered", handle: on(ren, 0, func(time.Duration, row, lease.Request) (row, lease.Reply) { panic("nil map") })},
		{name: "no look who has it", check: "rules/acquire-while-held-is-refused", handle: on(acq, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Holder != q.Holder {
				r.Status = lease.Free
			}
			return r.Handle(now, 0, q)
		})},
		{name: "acquire compares nodes", check: "rules/acquire-by-the-next-incarnation-of-the-node-is-refused", handle: on(acq, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if sameNode(r.Holder, q.Holder) && !q.Holder.IsZero() {
				r.Holder = q.Holder
			}
			return r.Handle(now, 0, q)
		})},
		{name: "refusal names who asked", check: "rules/the-refusal-names-the-holder", err: func(err error) error {
			if held, ok := err.(*lease.HeldError); ok {
				held.Holder = node("c")
			}
			return err
		}},
		{name: "refusal says the whole TTL", check: "rules/the-refusal-says-for-how-long", handle: after(acq, lease.CodeHeld, func(_ time.Duration, _, r row, rep *lease.Reply) row {
			rep.Remaining = r.TTL
			return r
		})},
		{name: "retry has a new token", check: "rules/retry-of-an-acquire-keeps-the-token", handle: after(acq, lease.CodeGranted, func(_ time.Duration, before, r row, rep *lease.Reply) row {
			if before.Token == r.Token {
				r.Token++
				rep.Token++
			}
			return r
		})},
		{name: "the highest token is that of the highest text", check: "rules/next-token-over-many-turns", handle: after(acq, lease.CodeGranted, func(_ time.Duration, before, r row, rep *lease.Reply) row {
			if before.Token == 10 && r.Token == 11 {
				r.Token, rep.Token = 10, 10
			}
			return r
		})},
		{name: "tokens have 8 bits", check: "rules/next-token-over-many-turns", handle: after(acq, lease.CodeGranted, func(_ time.Duration, before, r row, rep *lease.Reply) row {
			if r.Token == 256 {
				r.Token, rep.Token = 1, 1
			}
			return r
		})},
		{name: "a free row is purged after a month", check: "rules/next-token-long-after-release", handle: func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Free && r.Token > 0 && now-r.Expires > month {
				r = row{}
			}
			r, rep := r.Handle(now, 0, q)
			if rep.Code == lease.CodeReleased {
				r.Expires = now
			}
			return r, rep
		}},
		{name: "a lapsed row is purged after a month", check: "rules/next-token-long-after-lapse", handle: func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status != lease.Free && now-r.Expires > month {
				r = row{}
			}
			return r.Handle(now, 0, q)
		}},
		{name: "milliseconds have 32 bits", check: "rules/held-until-the-last-nanosecond-of-weeks", handle: after(acq, lease.CodeGranted, func(now time.Duration, _, r row, rep *lease.Reply) row {
			if rep.TTL == r.TTL {
				r.Expires = now + rep.TTL%(1<<32*time.Millisecond)
			}
			return r
		})},
		{name: "retry sets the expiry", check: "rules/retry-never-shortens", handle: after(acq, lease.CodeGranted, func(now time.Duration, _, r row, rep *lease.Reply) row {
			r.Expires = now + rep.TTL
			return r
		})},
		{name: "retry keeps the expiry", check: "rules/retry-extends", handle: after(acq, lease.CodeGranted, func(_ time.Duration, before, r row, rep *lease.Reply) row {
			if before.Token == r.Token {
				r.Expires = before.Expires
			}
			return r
		})},
		{name: "release resets the counter", check: "rules/next-token-after-release", handle: after(rel, lease.CodeReleased, func(_ time.Duration, _, r row, _ *lease.Reply) row {
			return row{}
		})},
		{name: "token again after a lapse", check: "rules/next-token-after-lapse", handle: after(acq, lease.CodeGranted, func(_ time.Duration, before, r row, rep *lease.Reply) row {
			if before.Status == lease.Running || before.Status == lease.Lapsed {
				r.Token, rep.Token = before.Token, before.Token
			}
			return r
		})},
		{name: "the counter is forgotten an hour after a release", check: "rules/next-token-long-after-release", handle: forgets(lease.Free, time.Hour)},
		{name: "the counter is forgotten a day after a release", check: "rules/next-token-long-after-release", handle: forgets(lease.Free, 24*time.Hour)},
		{name: "the counter is forgotten a year after a release", check: "rules/next-token-long-after-release", handle: forgets(lease.Free, year)},
		{name: "the counter is forgotten an hour after a lapse", check: "rules/next-token-long-after-lapse", handle: forgets(lease.Running, time.Hour)},
		{name: "the counter is forgotten a year after a lapse", check: "rules/next-token-long-after-lapse", handle: forgets(lease.Running, year)},
		{name: "renews a year after the lapse", check: "rules/renew-long-after-lapse-is-refused", handle: on(ren, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Running && now-r.Expires >= year {
				r.Expires = now + 1
			}
			return r.Handle(now, 0, q)
		})},
		{name: "releases a year after the lapse", check: "rules/release-long-after-lapse-is-refused", handle: on(rel, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Running && now-r.Expires >= year {
				r.Expires = now + 1
			}
			return r.Handle(now, 0, q)
		})},
		{name: "token again for the same holder", check: "rules/next-token-for-the-same-holder", handle: after(acq, lease.CodeGranted, func(_ time.Duration, before, r row, rep *lease.Reply) row {
			if before.Holder == r.Holder {
				r.Token, rep.Token = before.Token, before.Token
			}
			return r
		})},
		{name: "token again for the same holder after a lapse", check: "rules/next-token-for-the-same-holder-after-lapse", handle: after(acq, lease.CodeGranted, func(_ time.Duration, before, r row, rep *lease.Reply) row {
			if before.Holder == r.Holder && before.Status == lease.Running {
				r.Token, rep.Token = before.Token, before.Token
			}
			return r
		})},
		{name: "a refusal takes a token", check: "rules/next-token-whoever-was-refused-meanwhile", handle: on(acq, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			refused := lease.Token(r.TTL % time.Microsecond) // how often, counted there
			next, rep := r.Handle(now, 0, q)
			switch {
			case rep.Code == lease.CodeHeld:
				next.TTL++
			case next.Token != r.Token:
				next.Token += refused
				rep.Token += refused
			}
			return next, rep
		})},
		{name: "lapses early", check: "rules/held-until-the-last-nanosecond", handle: func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Expires-now == 1 {
				r.Expires = now
			}
			return r.Handle(now, 0, q)
		}},
		{name: "whole seconds", check: "rules/held-until-the-last-nanosecond-of-a-tenth", handle: cutTTL(acq, sec)},
		{name: "whole milliseconds", check: "rules/held-until-the-last-nanosecond-of-a-fraction-of-a-millisecond", handle: cutTTL(acq, time.Millisecond)},
		{name: "whole microseconds", check: "rules/held-until-the-last-nanosecond-of-a-fraction-of-a-microsecond", handle: cutTTL(acq, time.Microsecond)},
		{name: "a minute at most", check: "rules/held-until-the-last-nanosecond-of-minutes", handle: capTTL(time.Minute)},
		{name: "an hour at most", check: "rules/held-until-the-last-nanosecond-of-hours", handle: capTTL(time.Hour)},
		{name: "a day at most", check: "rules/held-until-the-last-nanosecond-of-hours", handle: capTTL(24 * time.Hour)},
		{name: "a month at most", check: "rules/held-until-the-last-nanosecond-of-weeks", handle: capTTL(30 * 24 * time.Hour)},
		{name: "lasts as long as the longest TTL ever", check: "rules/the-ttl-of-a-lapsed-tenure-does-not-count", handle: after(acq, lease.CodeGranted, func(now time.Duration, before, r row, _ *lease.Reply) row {
			r.TTL = max(before.TTL, r.TTL)
			r.Expires = now + r.TTL
			return r
		})},
		{name: "never ends before an earlier tenure would", check: "rules/the-ttl-of-a-released-tenure-does-not-count", handle: func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			next, rep := r.Handle(now, 0, q)
			if rep.Code == lease.CodeReleased || rep.Code == lease.CodeGranted {
				next.Expires = max(next.Expires, r.Expires)
			}
			return next, rep
		}},
		{name: "whole seconds of now", check: "rules/granted-at-any-instant-held-until-the-last-nanosecond", handle: after(acq, lease.CodeGranted, func(now time.Duration, before, r row, rep *lease.Reply) row {
			if before.Token != r.Token {
				r.Expires = now/sec*sec + rep.TTL
			}
			return r
		})},
		{name: "held at the end", check: "rules/lapses-at-the-instant", handle: func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Running && r.Expires == now {
				now--
			}
			return r.Handle(now, 0, q)
		}},
		{name: "lock delay that it does not declare", check: "rules/lapses-at-the-instant", delay: delay},
		{name: "lock delay after a release that it does not declare", check: "rules/release-frees-at-once", handle: func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			next, rep := r.Handle(now, sec, q)
			if rep.Code == lease.CodeReleased {
				next.Status, next.Expires = lease.Lapsed, now
			}
			return next, rep
		}},
		{name: "lock delay after a deletion", check: "delete/frees-at-once", o: withDelay, delay: delay, delete: func(r row) row {
			r.Status, r.Expires = lease.Lapsed, max(r.Expires, 1)
			return r
		}},
		{name: "a refused renewal keeps what has lapsed", check: "rules/lapses-once-and-for-all", handle: after(ren, lease.CodeLapsed, func(now time.Duration, _, r row, _ *lease.Reply) row {
			r.Status, r.Expires = lease.Running, now+1
			return r
		})},
		{name: "calls every renewal invalid", check: "rules/every-request-is-answered", handle: on(ren, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			return r, q.To(lease.CodeInvalid)
		})},
		{name: "renews what was told as lapsed", check: "rules/lapses-once-and-for-all", handle: on(ren, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Lapsed && q.Holder == r.Holder && q.Token == r.Token {
				r.Status, r.Expires = lease.Running, now+1
			}
			return r.Handle(now, 0, q)
		})},
		{name: "renews what get called lapsed", check: "rules/what-get-called-lapsed-stays-lapsed", handle: on(ren, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Lapsed && q.Holder == r.Holder && q.Token == r.Token {
				r.Status, r.Expires = lease.Running, now+1
			}
			return r.Handle(now, 0, q)
		})},
		{name: "renews in time only", check: "rules/renew-is-granted-to-the-holder", handle: on(ren, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Held(now) && r.Expires-now < sec {
				return r, q.To(lease.CodeLost)
			}
			return r.Handle(now, 0, q)
		})},
		{name: "a renewal keeps the expiry", check: "rules/renew-extends", handle: after(ren, lease.CodeGranted, func(_ time.Duration, before, r row, _ *lease.Reply) row {
			r.Expires = before.Expires
			return r
		})},
		{name: "a renewal in whole milliseconds", check: "rules/renew-extends-by-fractions", handle: cutTTL(ren, time.Millisecond)},
		{name: "a renewal adds up", check: "rules/renew-extends-from-now-and-no-further", handle: after(ren, lease.CodeGranted, func(_ time.Duration, before, r row, rep *lease.Reply) row {
			r.Expires = before.Expires + rep.TTL
			return r
		})},
		{name: "a renewal sets the expiry", check: "rules/renew-with-a-shorter-ttl-never-shortens", handle: after(ren, lease.CodeGranted, func(now time.Duration, _, r row, rep *lease.Reply) row {
			r.Expires = now + rep.TTL
			return r
		})},
		{name: "the second renewal sets the expiry", check: "rules/late-copy-of-a-renewal-never-shortens", handle: after(ren, lease.CodeGranted, func(now time.Duration, before, r row, rep *lease.Reply) row {
			if before.TTL == 2*rep.TTL {
				r.Expires = now + rep.TTL
			}
			return r
		})},
		{name: "no owner check at renew", check: "rules/renew-by-another-is-refused", handle: asHolder(ren, yes(true))},
		{name: "renew compares nodes", check: "rules/renew-by-the-next-incarnation-of-the-node-is-refused", handle: asHolder(ren, nodeOnly)},
		{name: "no token check at renew", check: "rules/renew-under-an-old-token-is-refused", handle: asHolder(ren, yes(false))},
		{name: "renew takes higher tokens", check: "rules/renew-under-a-token-never-granted-is-refused", handle: asHolder(ren, func(_ time.Duration, r row, q lease.Request) (bool, bool) { return false, q.Token > r.Token })},
		{name: "renew does not look at the time", check: "rules/renew-after-lapse-is-refused", handle: on(ren, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Running && q.Holder == r.Holder && q.Token == r.Token {
				r.Expires = max(r.Expires, now+1)
			}
			return r.Handle(now, 0, q)
		})},
		{name: "renews what was released", check: "rules/renew-after-release-is-refused", handle: on(ren, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Free && q.Holder == r.Holder && q.Token == r.Token {
				r.Status, r.Expires = lease.Running, now+1
			}
			return r.Handle(now, 0, q)
		})},
		{name: "renew checks nothing after a takeover", check: "rules/renew-after-takeover-is-refused", handle: asHolder(ren, func(_ time.Duration, r row, q lease.Request) (bool, bool) { b := q.Token < r.Token; return b, b })},
		{name: "a refused renewal extends", check: "rules/a-refused-renewal-changes-nothing", handle: after(ren, lease.CodeLost, func(now time.Duration, _, r row, _ *lease.Reply) row {
			if r.Held(now) {
				r.Expires += r.TTL
			}
			return r
		})},
		{name: "release frees nothing", check: "rules/release-frees-at-once", handle: after(rel, lease.CodeReleased, func(_ time.Duration, before, _ row, _ *lease.Reply) row { return before })},
		{name: "no owner check at release", check: "rules/release-by-another-is-refused", handle: asHolder(rel, yes(true))},
		{name: "release compares nodes", check: "rules/release-by-the-next-incarnation-of-the-node-is-refused", handle: asHolder(rel, nodeOnly)},
		{name: "no token check at release", check: "rules/release-under-an-old-token-is-refused", handle: asHolder(rel, yes(false))},
		{name: "release takes higher tokens", check: "rules/release-under-a-token-never-granted-is-refused", handle: asHolder(rel, func(_ time.Duration, r row, q lease.Request) (bool, bool) { return false, q.Token > r.Token })},
		{name: "a refused release frees", check: "rules/release-by-another-is-refused", handle: after(rel, lease.CodeLost, func(time.Duration, row, row, *lease.Reply) row {
			return row{Durable: lease.Durable{Token: 1}}
		})},
		{name: "releases what has lapsed", check: "rules/release-of-a-lapsed-lease-is-refused", handle: after(rel, lease.CodeLapsed, func(_ time.Duration, _, r row, rep *lease.Reply) row {
			rep.Code = lease.CodeReleased
			return r
		})},
		{name: "releases twice", check: "rules/release-twice-is-refused", handle: on(rel, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Free && q.Holder == r.Holder && q.Token == r.Token && q.Token > 0 {
				return r, q.To(lease.CodeReleased)
			}
			return r.Handle(now, 0, q)
		})},
		{name: "a late release frees the successor's", check: "rules/late-release-of-an-earlier-tenure-frees-nothing", handle: asHolder(rel, func(_ time.Duration, r row, q lease.Request) (bool, bool) { b := q.Token < r.Token; return b, b })},

		{name: "no lock delay", check: "rules/lock-delay-after-a-lapse", o: withDelay},
		{name: "lock delay for others only", check: "rules/lock-delay-is-for-the-last-holder-too", o: withDelay, handle: func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if q.Holder == r.Holder {
				return r.Handle(now, 0, q)
			}
			return r.Handle(now, delay, q)
		}},
		{name: "lock delay does not end", check: "rules/lock-delay-ends", o: withDelay, handle: func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if q.Op == acq && r.Status == lease.Lapsed {
				return r.Handle(now, 2*delay, q)
			}
			return r.Handle(now, delay, q)
		}},
		{name: "lock delay after a release", check: "rules/no-lock-delay-after-a-release", o: withDelay, handle: func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			next, rep := r.Handle(now, delay, q)
			if rep.Code == lease.CodeReleased {
				next.Status, next.Expires = lease.Lapsed, now
			}
			return next, rep
		}},

		{name: "get makes a holder up", check: "rules/get-of-a-lease-nobody-ever-held", handle: on(get, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			next, rep := r.Handle(now, 0, q)
			if r.Token == 0 {
				rep.Code, rep.Current = lease.CodeHeld, node("c")
			}
			return next, rep
		})},
		{name: "get names nobody", check: "rules/get-names-the-holder", handle: after(get, lease.CodeHeld, func(_ time.Duration, _, r row, rep *lease.Reply) row {
			rep.Current, rep.Remaining = lease.Holder{}, 0
			return r
		})},
		{name: "get looks at the row", check: "rules/get-after-release-names-nobody", handle: after(get, lease.CodeFree, func(_ time.Duration, _, r row, rep *lease.Reply) row {
			if r.Status == lease.Free && !r.Holder.IsZero() {
				rep.Current, rep.Remaining = r.Holder, 1
			}
			return r
		})},
		{name: "get does not look at the time", check: "rules/get-after-lapse-names-nobody", handle: on(get, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
			if r.Status == lease.Running {
				now = min(now, r.Expires-1)
			}
			return r.Handle(now, 0, q)
		})},
		{name: "get is a cache", check: "rules/get-after-takeover-names-the-successor", handle: after(get, lease.CodeHeld, func(_ time.Duration, _, r row, rep *lease.Reply) row {
			if r.Token > 1 {
				rep.Token--
			}
			return r
		})},
		{name: "get takes a token", check: "rules/get-changes-nothing", handle: after(get, lease.CodeFree, func(_ time.Duration, _, r row, _ *lease.Reply) row {
			r.Token++
			return r
		})},
		{name: "one lease for all", check: "rules/leases-are-apart", resource: func(string) string { return "" }},
		{name: "all lapse together", check: "rules/leases-lapse-apart", others: expire},
		{name: "one counter for all", check: "rules/each-lease-has-its-own-tokens", others: func(r row) row {
			if r.Status == lease.Free {
				r.Token++
			}
			return r
		}},

		// Restarts.
		{name: "a restart frees", check: "restarts/a-tenure-is-held-on", restart: restored(func(old, r row, _ time.Duration) row { r.Status = lease.Free; return r })},
		{name: "a restart knows what is left", check: "restarts/a-tenure-is-held-for-its-whole-ttl", restart: restored(func(_, r row, now time.Duration) row {
			r.Expires = now + 2*ns
			return r
		})},
		{name: "a restart knows seconds", check: "restarts/a-tenure-is-held-for-fractions-of-a-second", restart: restored(func(_, r row, _ time.Duration) row {
			if r.Status == lease.Running {
				r.Expires = r.Expires / sec * sec
			}
			return r
		})},
		{name: "a restart keeps instants of the old clock", check: "restarts/a-tenure-ends-after-its-ttl", restart: restored(func(old, r row, now time.Duration) row {
			if old.Expires > now {
				r.Expires = old.Expires
			}
			return r
		})},
		{name: "a restart forgets tokens of sessions", check: "restarts/the-holder-renews-after-it", restart: restored(func(_, r row, _ time.Duration) row {
			if r.Status == lease.Running {
				r.Token += 5
			}
			return r
		})},
		{name: "a restart forgets who", check: "restarts/retry-of-an-acquire-keeps-the-token", restart: restored(func(_, r row, _ time.Duration) row {
			if r.Status == lease.Running {
				r.Holder = node("nobody")
			}
			return r
		})},
		{name: "a restart knows the last TTL", check: "restarts/the-largest-ttl-of-the-tenure-counts", handle: after(ren, lease.CodeGranted, func(_ time.Duration, _, r row, rep *lease.Reply) row {
			r.TTL = rep.TTL
			return r
		})},
		{name: "a restart knows the longest TTL ever", check: "restarts/the-ttl-of-an-earlier-tenure-does-not-count", handle: after(acq, lease.CodeGranted, func(_ time.Duration, before, r row, rep *lease.Reply) row {
			r.TTL = max(before.TTL, r.TTL)
			return r
		})},
		{name: "a restart knows the first holder", check: "restarts/a-takeover-stays", restart: restored(func(_, r row, _ time.Duration) row {
			if r.Status == lease.Running && r.Token == 2 {
				r.Status = lease.Free
			}
			return r
		})},
		{name: "a restart resets the counter", check: "restarts/the-counter-stays-after-a-release", restart: restored(func(_, r row, _ time.Duration) row {
			if r.Status == lease.Free {
				return row{}
			}
			return r
		})},
		{name: "the lapse of a restored lease resets the counter", check: "restarts/the-counter-stays-after-a-lapse", restart: restored(func(_, r row, _ time.Duration) row {
			if r.Status == lease.Running {
				r.Token--
			}
			return r
		})},
		{name: "a restart is one token behind", check: "restarts/no-token-is-issued-twice", restart: restored(func(_, r row, _ time.Duration) row {
			if r.Token > 1 && r.Status == lease.Free {
				r.Token--
			}
			return r
		})},
		{name: "a restart undoes a release", check: "restarts/a-release-stays", restart: func(old row, now time.Duration) row {
			if old.Status == lease.Free && !old.Holder.IsZero() {
				old.Status = lease.Running
			}
			return lease.Restore(old.Durable, now)
		}},
		{name: "a restart undoes a release for who did it", check: "restarts/a-released-lease-cannot-be-renewed", restart: func(old row, now time.Duration) row {
			if old.Status == lease.Free && !old.Holder.IsZero() {
				old.Status = lease.Running
			}
			return lease.Restore(old.Durable, now)
		}},
		{name: "a restart forgets a lapse", check: "restarts/a-lapse-that-was-told-stays", restart: func(old row, now time.Duration) row {
			if old.Status == lease.Lapsed {
				old.Status = lease.Running
			}
			return lease.Restore(old.Durable, now)
		}},
		{name: "a restart forgets a lapse that get told", check: "restarts/a-lapse-that-get-told-stays", restart: func(old row, now time.Duration) row {
			if old.Status == lease.Lapsed {
				old.Status = lease.Running
			}
			return lease.Restore(old.Durable, now)
		}},
		{name: "a restart forgets a lapse for the holder", check: "restarts/a-lapsed-lease-cannot-be-renewed", restart: func(old row, now time.Duration) row {
			if old.Status == lease.Lapsed {
				old.Status = lease.Running
			}
			return lease.Restore(old.Durable, now)
		}},
		{name: "a restart ends the lock delay", check: "restarts/a-lapse-that-was-told-starts-its-lock-delay-anew", o: withDelay, delay: delay, restart: restored(func(_, r row, _ time.Duration) row {
			if r.Status == lease.Lapsed {
				r.Status = lease.Free
			}
			return r
		})},
		{name: "the second restart frees", check: "restarts/two-in-a-row-start-the-ttl-twice", restart: restored(func(old, r row, now time.Duration) row {
			if old.Expires < 1000*sec { // of a second process's clock, which starts low
				r.Status = lease.Free
			}
			return r
		})},
		{name: "a restart takes all leases for held", check: "restarts/a-lease-nobody-ever-held-is-free", reboot: func(recs map[string]row, now time.Duration) {
			if _, ok := recs["shard-2"]; !ok {
				recs["shard-2"] = row{Durable: lease.Durable{Token: 1, Holder: node("c"), TTL: sec, Status: lease.Running}, Expires: now + sec}
			}
		}},

		// Restarts with a clock that goes on. A store that keeps no instants
		// loses them, or starts TTLs anew.
		{name: "a restart loses a nanosecond", check: "restarts/a-tenure-is-held-for-the-rest-of-its-ttl", o: steady, restart: func(old row, _ time.Duration) row {
			old.Expires -= 2
			return old
		}},
		{name: "a restart starts the TTL anew", check: "restarts/a-tenure-ends-as-if-there-had-been-none", o: steady, restart: func(old row, now time.Duration) row { return lease.Restore(old.Durable, now) }},
		{name: "a restart revives what nobody was told of", check: "restarts/a-tenure-that-has-run-out-is-over", o: steady, restart: func(old row, now time.Duration) row {
			if old.Expires <= now {
				return lease.Restore(old.Durable, now)
			}
			return old
		}},
		{name: "a restart ends a lock delay", check: "restarts/a-lock-delay-goes-on", o: steadyDelay, delay: delay, restart: func(old row, now time.Duration) row {
			if old.Status == lease.Lapsed {
				old.Status = lease.Free
			}
			return old
		}},
		{name: "a restart starts a lock delay anew", check: "restarts/a-lock-delay-is-not-started-anew", o: steadyDelay, delay: delay, restart: func(old row, now time.Duration) row {
			if old.Status == lease.Lapsed {
				old.Expires = now
			}
			return old
		}},
		{name: "a restart frees what has run for a while", check: "restarts/two-in-a-row-are-as-none", o: steady, restart: func(old row, now time.Duration) row {
			if left := old.Expires - now; left < old.TTL {
				old.Status = lease.Free
			}
			return old
		}},

		// Deletions.
		{name: "delete does nothing", check: "delete/frees-at-once", delete: func(r row) row { return r }},
		{name: "delete resets the counter", check: "delete/next-token", delete: func(row) row { return row{} }},
		{name: "delete keeps the holder", check: "delete/the-holder-cannot-renew", delete: func(r row) row { r.Expires += 1; return r }},
		{name: "a late release frees after a deletion", check: "delete/late-release-of-what-was-deleted-frees-nothing", handle: asHolder(rel, func(_ time.Duration, r row, q lease.Request) (bool, bool) { b := q.Token < r.Token; return b, b })},
		{name: "delete takes a token", check: "delete/of-a-free-lease-changes-nothing", delete: func(r row) row {
			r = r.Delete()
			r.Token++
			return r
		}},
		{name: "delete deletes all", check: "delete/no-other-lease", purge: row.Delete},
		{name: "a deleted counter is not saved", check: "delete/next-token-after-a-restart", restart: restored(func(old, r row, _ time.Duration) row {
			if old.Holder.IsZero() {
				return row{}
			}
			return r
		})},

		// Requests that make no sense.
		{name: "acquire takes TTL 0", check: "malformed/acquire-with-ttl-zero", handle: lenient(acq, func(_ row, q *lease.Request) {
			if q.TTL == 0 {
				q.TTL = 1
			}
		})},
		{name: "acquire takes a negative TTL", check: "malformed/acquire-with-a-negative-ttl", handle: lenient(acq, func(_ row, q *lease.Request) { q.TTL = max(q.TTL, -q.TTL) })},
		{name: "renew takes TTL 0", check: "malformed/renew-with-ttl-zero", handle: lenient(ren, func(_ row, q *lease.Request) { q.TTL = max(q.TTL, 1) })},
		{name: "nobody acquires", check: "malformed/acquire-as-nobody", handle: lenient(acq, func(_ row, q *lease.Request) {
			if q.Holder.IsZero() {
				q.Holder = lease.Holder{Node: "?"}
			}
		})},
		{name: "nobody renews", check: "malformed/renew-as-nobody", handle: lenient(ren, func(r row, q *lease.Request) {
			if q.Holder.IsZero() {
				q.Holder = r.Holder
			}
		})},
		{name: "token 0 renews", check: "malformed/renew-under-token-zero", handle: lenient(ren, func(r row, q *lease.Request) {
			if q.Token == 0 {
				q.Token = r.Token
			}
		})},
		{name: "nobody releases", check: "malformed/release-as-nobody", handle: lenient(rel, func(r row, q *lease.Request) {
			if q.Holder.IsZero() {
				q.Holder = r.Holder
			}
		})},
		{name: "token 0 releases", check: "malformed/release-under-token-zero", handle: lenient(rel, func(r row, q *lease.Request) {
			if q.Token == 0 {
				q.Token = r.Token
			}
		})},
		{name: "tokens of 32 bits", check: "malformed/renew-under-a-token-with-another-upper-half", handle: lenient(ren, func(_ row, q *lease.Request) { q.Token &= math.MaxUint32 })},
		{name: "tokens of 32 bits at release", check: "malformed/release-under-a-token-with-another-upper-half", handle: lenient(rel, func(_ row, q *lease.Request) { q.Token &= math.MaxUint32 })},
		{name: "tokens of 63 bits", check: "malformed/renew-under-a-token-with-another-first-bit", handle: lenient(ren, func(_ row, q *lease.Request) { q.Token &= math.MaxInt64 })},
		{name: "the largest token renews", check: "malformed/renew-under-the-largest-token", handle: lenient(ren, func(r row, q *lease.Request) {
			if q.Token == math.MaxUint64 {
				q.Token = r.Token
			}
		})},
		{name: "the largest token releases", check: "malformed/release-under-the-largest-token", handle: lenient(rel, func(r row, q *lease.Request) {
			if q.Token == math.MaxUint64 {
				q.Token = r.Token
			}
		})},
		{name: "the most negative TTL wraps around", check: "malformed/acquire-with-the-most-negative-ttl", handle: lenient(acq, func(_ row, q *lease.Request) {
			if q.TTL < 0 && q.TTL-1 > 0 {
				q.TTL--
			}
		})},
		{name: "holders compare without nonces", check: "malformed/holder-with-another-nonce", handle: sameHolder(func(a, b lease.Holder) bool { return a.Node == b.Node && a.Seq == b.Seq })},
		{name: "nonces are floating point", check: "malformed/holder-with-a-nonce-of-64-bits", handle: sameHolder(func(a, b lease.Holder) bool {
			return a.Node == b.Node && a.Seq == b.Seq && float64(a.Nonce) == float64(b.Nonce)
		})},
		{name: "nonces have 32 bits", check: "malformed/holder-with-a-nonce-of-other-upper-32-bits", handle: sameHolder(func(a, b lease.Holder) bool {
			return a.Node == b.Node && a.Seq == b.Seq && uint32(a.Nonce) == uint32(b.Nonce)
		})},
		{name: "sequence numbers have 8 bits", check: "malformed/holder-with-a-sequence-number-above-8-bits", handle: sameHolder(func(a, b lease.Holder) bool {
			return a.Node == b.Node && a.Nonce == b.Nonce && uint8(a.Seq) == uint8(b.Seq)
		})},
		{name: "sequence numbers have 16 bits", check: "malformed/holder-with-a-sequence-number-above-16-bits", handle: sameHolder(func(a, b lease.Holder) bool {
			return a.Node == b.Node && a.Nonce == b.Nonce && uint16(a.Seq) == uint16(b.Seq)
		})},
		{name: "sequence numbers have 32 bits", check: "malformed/holder-with-a-sequence-number-above-32-bits", handle: sameHolder(func(a, b lease.Holder) bool {
			return a.Node == b.Node && a.Nonce == b.Nonce && uint32(a.Seq) == uint32(b.Seq)
		})},
		{name: "TTLs wrap around", check: "malformed/acquire-for-the-largest-ttl", handle: after(acq, lease.CodeGranted, func(now time.Duration, _, r row, rep *lease.Reply) row {
			r.Expires = now + rep.TTL
			return r
		})},
		{name: "TTLs of renewals wrap around", check: "malformed/renew-for-the-largest-ttl", handle: after(ren, lease.CodeGranted, func(now time.Duration, before, r row, rep *lease.Reply) row {
			r.Expires = now + rep.TTL
			return r
		})},
		{name: "an ended context says held", check: "malformed/acquire-under-an-ended-context", ended: func(lease.Op) error { return &lease.HeldError{} }},
		{name: "an ended context says lost", check: "malformed/renew-under-an-ended-context", ended: func(lease.Op) error { return lease.ErrNotHeld }},
		{name: "an ended context says invalid", check: "malformed/release-under-an-ended-context", ended: func(lease.Op) error { return &lease.InvalidError{} }},
	}
	return append(fs, nameFaults()...)
}
