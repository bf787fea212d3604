package lease

import (
	"context"
	"errors"
	"testing"
)

// replying is a handler that replies with rep, whatever it is asked, and puts
// what that was into call.
func replying(rep Reply, err error, call *Call) Handler {
	return func(_ context.Context, c Call) (Reply, error) {
		*call = c
		return rep, err
	}
}

func TestHandlerIsAskedWhatTheMethodSays(t *testing.T) {
	var asked Call
	h := replying(Reply{}, nil, &asked)
	h.Acquire(t.Context(), "db", alice, 5*sec)
	diff(t, "acquire", asked, Call{"db", Request{Op: OpAcquire, Holder: alice, TTL: 5 * sec}})
	h.Renew(t.Context(), "db", alice, 7, 5*sec)
	diff(t, "renew", asked, Call{"db", Request{Op: OpRenew, Holder: alice, Token: 7, TTL: 5 * sec}})
	h.Release(t.Context(), "db", alice, 7)
	diff(t, "release", asked, Call{"db", Request{Op: OpRelease, Holder: alice, Token: 7}})
	h.Get(t.Context(), "db")
	diff(t, "get", asked, Call{"db", Request{Op: OpGet}})
}

func TestHandlerGivesTheReplyAsTheMethodDoes(t *testing.T) {
	var asked Call
	ctx := t.Context()
	granted := Reply{Op: OpAcquire, Code: CodeGranted, Holder: alice, Token: 7, TTL: 4 * sec, Current: alice, Remaining: 9 * sec}
	g, err := replying(granted, nil, &asked).Acquire(ctx, "db", alice, 5*sec)
	diff(t, "granted", g, Grant{"db", alice, 7, 4 * sec})
	diff(t, "granted", err, nil)
	held := Reply{Op: OpAcquire, Code: CodeHeld, Holder: alice, Token: 6, Current: bob, Remaining: sec}
	g, err = replying(held, nil, &asked).Acquire(ctx, "db", alice, 5*sec)
	diff(t, "held", g, Grant{})
	diff(t, "held", err, error(&HeldError{Resource: "db", Holder: bob, Token: 6, Remaining: sec}))
	lapsed := Reply{Op: OpRenew, Code: CodeLapsed, Holder: alice, Asked: 7, Token: 8}
	g, err = replying(lapsed, nil, &asked).Renew(ctx, "db", alice, 7, 5*sec)
	diff(t, "lapsed", g, Grant{})
	diff(t, "lapsed", err, error(&LapsedError{Resource: "db", Holder: alice, Token: 7}))
	diff(t, "released", replying(Reply{Op: OpRelease, Code: CodeReleased, Token: 7}, nil, &asked).Release(ctx, "db", alice, 7), nil)
	lost := Reply{Op: OpRelease, Code: CodeLost, Holder: alice, Asked: 7, Token: 8, Current: bob}
	diff(t, "lost", replying(lost, nil, &asked).Release(ctx, "db", alice, 7), error(&LostError{Resource: "db", Holder: alice, Token: 7, Current: bob, Latest: 8}))
	o, err := replying(Reply{Op: OpGet, Code: CodeHeld, Token: 7, Current: bob, Remaining: sec}, nil, &asked).Get(ctx, "db")
	diff(t, "get", o, Observation{"db", bob, 7, sec})
	diff(t, "get", err, nil)
	o, _ = replying(Reply{Op: OpGet, Code: CodeDelayed, Token: 7, Remaining: sec}, nil, &asked).Get(ctx, "db")
	diff(t, "get, lock delay", o, Observation{"db", Holder{}, 7, sec})
}

// An error is not mistaken for an answer, whatever comes with it.
func TestHandlerThatFailsGrantsNothing(t *testing.T) {
	var asked Call
	ctx, cut := t.Context(), errors.New("cut")
	h := replying(Reply{Code: CodeGranted, Holder: alice, Token: 7, TTL: sec, Current: alice}, cut, &asked)
	g, err := h.Acquire(ctx, "db", alice, sec)
	diff(t, "acquire", g, Grant{})
	diff(t, "acquire", err, cut)
	g, err = h.Renew(ctx, "db", alice, 7, sec)
	diff(t, "renew", g, Grant{})
	diff(t, "renew", err, cut)
	diff(t, "release", h.Release(ctx, "db", alice, 7), cut)
	o, err := h.Get(ctx, "db")
	diff(t, "get", o, Observation{})
	diff(t, "get", err, cut)
}

func TestAHolderIsValidWhoseTextCanBeReadBack(t *testing.T) {
	for _, c := range []struct {
		h    Holder
		want bool
	}{
		{alice, true},
		{Holder{Node: "a b/ü\x00", Seq: 0, Nonce: 0}, true},
		{Holder{}, false},
		{Holder{Seq: 1, Nonce: 1}, false},
		{Holder{Node: "a#1.1", Seq: 2}, false},
		{Holder{Node: "#", Seq: 2}, false},
	} {
		if got := c.h.Valid(); got != c.want {
			t.Errorf("%+v: %v; want %v", c.h, got, c.want)
		}
		if back, err := ParseHolder(c.h.String()); c.want != (err == nil && back == c.h && back != Holder{}) {
			t.Errorf("%+v is read back as %+v, %v", c.h, back, err)
		}
	}
}
