package electortest

import (
	"strings"
	"time"
)

// fate is what becomes of one call of the store. The zero fate: it lands, and
// is answered, at the instant of the call.
type fate struct {
	Request time.Duration // until the request lands
	Answer  time.Duration // from then on, until the answer is there
	Lost    lost          // the call fails instead; its outcome is unknown
	Hang    bool          // the call is never answered
	Deaf    bool          // it does not return when its context ends
	Copy    time.Duration // this long after the request a copy of it lands
	Before  upset         // happens to the store just before the request lands
	Percent int           // of the TTL is granted; 0: all
}

// lost is which half of a call gets lost.
type lost string

const (
	lostRequest lost = "request" // it never lands
	lostAnswer  lost = "answer"  // it has landed
)

// upset is what may happen to a store beside its calls.
type upset string

const (
	upsetDelete  upset = "delete"  // an operator deletes the lease
	upsetRestart upset = "restart" // the store crashes, and comes back
	upsetRival   upset = "rival"   // another candidate takes the lease, if it is free, and keeps it for a TTL
)

// words say what is out of the ordinary about a call when it is made; empty if
// nothing is.
func (f fate) words() string {
	var w []string
	add := func(cond bool, s string) {
		if cond {
			w = append(w, s)
		}
	}
	fails := ", and the call fails"
	if f.Request+f.Answer > 0 {
		fails += " after " + (f.Request + f.Answer).String()
	}
	switch {
	case f.Hang && f.Lost == lostRequest:
		add(true, "the request is lost, and the call hangs")
	case f.Hang:
		add(f.Request > 0, "the request takes "+f.Request.String())
		add(true, "the call hangs")
	case f.Lost == lostRequest:
		add(true, "the request is lost"+fails)
	case f.Lost == lostAnswer:
		add(f.Request > 0, "the request takes "+f.Request.String())
		add(true, "the answer is lost"+fails)
	default:
		add(f.Request > 0, "the request takes "+f.Request.String())
		add(f.Answer > 0, "the answer takes "+f.Answer.String())
	}
	add(f.Deaf && (f.Hang || f.Request+f.Answer > 0), "it ignores its context")
	add(f.Copy > 0, "a copy lands "+f.Copy.String()+" later")
	return strings.Join(w, ", ")
}
