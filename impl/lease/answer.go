package lease

import (
	"errors"
	"fmt"
)

// answer is the reply to req that a Store or a Fencer gave as a grant and an
// error. known is false where the outcome is not.
func answer(req Request, g Grant, err error) (rep Reply, known bool) {
	code := codeOf(req.Op, err)
	rep = req.To(code)
	if code == CodeGranted {
		rep.Token, rep.TTL, rep.Current = g.Token, g.TTL, g.Holder
	}
	return rep, code != CodeNone
}

func codeOf(op Op, err error) Code {
	switch {
	case err == nil && op == OpRelease:
		return CodeReleased
	case err == nil && op == OpFence:
		return CodeFenced
	case err == nil:
		return CodeGranted
	case op == OpFence && errors.Is(err, ErrStale):
		return CodeStale
	case op == OpFence:
		return CodeNone
	}
	return Refusal(err)
}

// examine says what keeps everybody from leading under g, the answer to req.
func (c Config) examine(resource string, req Request, g Grant) error {
	given := g.Resource
	bad := func(format string, args ...any) error {
		g.Resource = resource // who was asked for, for the message
		return &GrantError{Grant: g, Reason: fmt.Sprintf(format, args...)}
	}
	switch window := c.Window(g.TTL); {
	case given != resource:
		return bad("it is for lease %q; let the store answer each request with its own grant", given)
	case g.Holder != req.Holder:
		return bad("it was asked for by %q; let the store echo that", req.Holder)
	case g.Token == 0:
		return bad("tokens count from 1; let the store give the one it issued")
	case window <= 0:
		return bad("it leaves no time to act: window = ttl - ttl*maxDriftRate - safetyMargin = %v - %v*%v - %v = %v; let the store echo the TTL of %v, or lower SafetyMargin",
			g.TTL, g.TTL, c.MaxDriftRate, c.SafetyMargin, window, req.TTL)
	}
	return nil
}
