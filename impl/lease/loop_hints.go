package lease

import "time"

// How many hints are followed at once within each retry interval. A leader's own
// calls may be what the hints are about, so it follows fewer.
const (
	mostToCampaign = 8
	mostToLead     = 1
)

func (l *loop) mostHints() int {
	if l.client.State().Phase == Campaigning {
		return mostToCampaign
	}
	return mostToLead
}

// hasten makes the client's next attempt early: for a hint, or since it is time to
// poll.
func (l *loop) hasten(now time.Duration) {
	if l.mayFollow() && l.pace.follow(now, l.mostHints()) || now >= l.poll {
		l.poll = never
		l.client.Hasten(now)
		l.send(l.client.Tick(now))
	}
}

// mayFollow reports whether a hint need not wait. While an attempt is on its way
// its answer is waited for, or the next poll: it may be all that there is to know.
func (l *loop) mayFollow() bool {
	s := l.client.State()
	switch {
	case s.Phase == Campaigning && (s.Working || s.Yielding), s.Phase == Stopping:
		l.pace.waiting = false // the client asks anyway, or has no more to ask
		return false
	case s.Phase == Campaigning:
		for _, c := range l.store.calls {
			if c.req.Op == OpAcquire && c.req.Holder == s.Holder && !c.cancelled {
				return false
			}
		}
	}
	return l.pace.waiting
}

// drawPoll draws when to try again after a refusal, since those who wait for one
// lease were refused together: a period in (2/3, 1] of the retry interval, which
// [Config.Failover] counts on.
func (l *loop) drawPoll(rep Reply) {
	s := l.client.State()
	third := l.e.cfg.Retry() / 3
	if (rep.Code != CodeHeld && rep.Code != CodeDelayed) || s.Phase != Campaigning || rep.Holder != s.Holder || l.poll != never || third == 0 {
		return
	}
	l.poll = s.NextSend - time.Duration(l.rng.Int64N(int64(third)))
}
