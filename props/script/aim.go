package script

import (
	"time"

	"fencepost/model"
)

// aim is one lease as it looks from outside, by the answers alone: what may be
// worth asking next, and what a run has reached. It judges nothing.
type aim struct {
	holder Who           // who was granted it last; nobody once that was given up
	token  uint64        // under which
	ttl    time.Duration // the longest that was granted to the holder
	until  time.Duration // when that ends, if the store keeps its word
	lapsed bool          // somebody was told that it has
}

// held reports whether the holder should still have it at an instant.
func (a *aim) held(at time.Duration) bool { return a.holder != (Who{}) && at < a.until }

// learn takes a line about this lease into account, or one about all of them.
func (a *aim) learn(l *Line) {
	switch l.Step.Do {
	case Delete:
		*a = aim{token: a.token}
		return
	case Restart:
		if l.steady {
			return
		}
		a.until = later(l.At, a.ttl)
		if a.lapsed {
			a.until = l.At
		}
		return
	}
	switch l.Said.Code {
	case model.CodeGranted:
		ttl := time.Duration(l.Said.TTL)
		if l.Said.Token != a.token {
			*a = aim{token: l.Said.Token, until: l.At}
		}
		a.holder, a.lapsed = l.Step.Who, false
		a.until, a.ttl = max(a.until, later(l.At, ttl)), max(a.ttl, ttl)
	case model.CodeReleased:
		a.holder, a.ttl = Who{}, 0
	case model.CodeDelayed, model.CodeLapsed, model.CodeFree:
		a.lapsed = a.holder != (Who{})
	}
}

// aims are those of all leases.
type aims [len(resources)]aim

func (as *aims) learn(l *Line) {
	switch {
	case l.NoOp:
	case l.Step.Do == Restart:
		for i := range as {
			as[i].learn(l)
		}
	case l.Step.Do != Advance:
		as[l.Step.On].learn(l)
	}
}
