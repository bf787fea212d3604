package script

import (
	"fmt"
	"strings"

	"fencepost/model"
	"fencepost/props/kit"
)

// Coverage is what a batch of runs has reached, in numbers of steps. Its zero
// value has seen nothing.
type Coverage struct {
	Scripts, Steps, NoOps int

	Grants    int // new ownerships
	Takeovers int // of these, of somebody else's lease that lapsed
	Retries   int // acquires by the holder, granted under the running token
	Renewals  int
	Releases  int

	Held    int // acquires refused since another has it
	Delayed int // acquires refused for the lock delay
	Lapsed  int // renewals and releases refused, after a lapse or any other loss
	Lost    int // of a token that is not the latest
	Invalid int

	AtTheEnd    int // asked at the instant at which a TTL ends
	JustBefore  int // a nanosecond before it
	HeldRestart int // restarts while somebody held a lease
	Deletions   int
}

// Add counts the lines of a run.
func (c *Coverage) Add(r Result) {
	c.Scripts++
	var aims aims
	for i := range r.Lines {
		l := &r.Lines[i]
		c.Steps++
		if l.NoOp {
			c.NoOps++
			continue
		}
		c.count(l, &aims)
		aims.learn(l)
	}
}

func (c *Coverage) count(l *Line, aims *aims) {
	a := &aims[l.Step.On]
	switch l.Step.Do {
	case Restart:
		for i := range aims {
			if aims[i].held(l.At) {
				c.HeldRestart++
				break
			}
		}
		return
	case Delete:
		c.Deletions++
		return
	case Advance:
		return
	}
	if a.holder != (Who{}) {
		switch a.until - l.At {
		case 0:
			c.AtTheEnd++
		case 1:
			c.JustBefore++
		}
	}
	acquire := l.Step.Do == Acquire
	switch l.Said.Code {
	case model.CodeGranted:
		switch {
		case !acquire:
			c.Renewals++
		case l.Said.Token == a.token:
			c.Retries++
		default:
			c.Grants++
			if a.holder != (Who{}) && a.holder != l.Step.Who {
				c.Takeovers++
			}
		}
	case model.CodeReleased:
		c.Releases++
	case model.CodeHeld:
		if acquire {
			c.Held++
		}
	case model.CodeDelayed:
		if acquire {
			c.Delayed++
		}
	case model.CodeLapsed, model.CodeLost:
		if l.Token == a.token {
			c.Lapsed++
		} else {
			c.Lost++
		}
	case model.CodeInvalid:
		c.Invalid++
	}
}

// Missed is what a batch never reached though stores with these options can: a
// batch that missed something has not checked it, and no pass.
func (c *Coverage) Missed(o kit.Options) []string {
	var missed []string
	for _, m := range []struct {
		n      int
		what   string
		cannot bool
	}{
		{c.Grants, "a lease granted", false},
		{c.Takeovers, "a takeover of a lapsed lease", false},
		{c.Retries, "an acquire repeated by the holder", false},
		{c.Renewals, "a renewal", false},
		{c.Releases, "a release", false},
		{c.Held, "an acquire refused since the lease is held", false},
		{c.Delayed, "an acquire refused for the lock delay", o.LockDelay == 0},
		{c.Lapsed, "a renewal or release refused since the lease is not held any more", false},
		{c.Lost, "a renewal or release refused for its token", false},
		{c.AtTheEnd, "a request at the instant at which a lease lapses", false},
		{c.JustBefore, "a request a nanosecond before a lease lapses", false},
		{c.HeldRestart, "a restart while the lease is held", o.Volatile},
	} {
		if m.n == 0 && !m.cannot {
			missed = append(missed, m.what)
		}
	}
	return missed
}

// String is the batch in a few words.
func (c *Coverage) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d scripts, %d steps: %d grants (%d takeovers), %d renewals, %d releases, %d refusals",
		c.Scripts, c.Steps, c.Grants, c.Takeovers, c.Renewals, c.Releases, c.Held+c.Delayed+c.Lapsed+c.Lost+c.Invalid)
	if c.HeldRestart > 0 {
		fmt.Fprintf(&b, ", %d restarts while held", c.HeldRestart)
	}
	return b.String()
}
