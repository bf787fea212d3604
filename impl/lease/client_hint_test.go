package lease

import (
	"testing"
	"time"
)

func hint(c *Client, now time.Duration) Requests {
	c.Hasten(now)
	return c.Tick(now)
}

func TestAHintIsFollowedAtOnce(t *testing.T) {
	c := newClient(t, tenSeconds, 0)
	diff(t, "first attempt", c.Tick(0).Store.Op, OpAcquire)
	diff(t, "before the retry", c.Tick(500*ms).Store.Op, OpNone)
	hinted := hint(c, 500*ms)
	diff(t, "hinted", hinted.Store, Request{Op: OpAcquire, Holder: alice, TTL: 10 * sec, Sent: 500 * ms})
	diff(t, "the next one counts from there", c.State().NextSend, 1500*ms)
	c.Receive(600*ms, granted(hinted.Store, 7, 10*sec))
	diff(t, "a leader renews", hint(c, 700*ms).Store, Request{Op: OpRenew, Holder: alice, Token: 7, TTL: 10 * sec, Sent: 700 * ms})
	diff(t, "and believes on", c.IsLeader(9499*ms), true)
}

// The release is what the hint is about.
func TestAfterAResignationOthersGoFirstHintOrNot(t *testing.T) {
	c := newClient(t, tenSeconds, 0)
	c.Receive(0, granted(c.Tick(0).Store, 7, 10*sec))
	diff(t, "release", c.Resign(2*sec).Store.Op, OpRelease)
	diff(t, "hinted", hint(c, 2*sec+1).Store.Op, OpNone)
	diff(t, "hinted again", hint(c, 3*sec-1).Store.Op, OpNone)
	diff(t, "after the retry interval", hint(c, 3*sec).Store.Op, OpAcquire)
	diff(t, "hinted from then on", hint(c, 3*sec+1).Store.Op, OpAcquire)
}

func TestAHintMovesNoEndAndStartsNothingBesideOldWork(t *testing.T) {
	c := newClient(t, tenSeconds, 0)
	c.Receive(0, granted(c.Tick(0).Store, 7, 10*sec))
	c.BeginWork(0)
	c.Resign(sec)
	before := c.State()
	diff(t, "stopping", hint(c, 2*sec), Requests{})
	after := c.State()
	after.NextSend = before.NextSend
	diff(t, "state", after, before)
	diff(t, "lapsed, and the work goes on", hint(c, 9*sec), Requests{})
}
