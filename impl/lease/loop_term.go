package lease

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// errExited stands for work that panicked or ended its goroutine. Nobody sees
// it, since Run does not return then.
var errExited = errors.New("work exited")

// work is called by Run, on the caller's goroutine: a panic of lead reaches the
// caller as it is, with its stack.
func (l *loop) work(j *job, lead func(context.Context, Term) error) {
	err := errExited
	defer func() { l.end <- err }()
	err = lead(j.ctx, j.Term)
}

// settle brings the world in line with the client after each of its steps, and the
// client in line with a term that ended without it. why is what ended the term, if
// that step did and its deadline had not passed.
func (l *loop) settle(now time.Duration, why error) {
	s := l.client.State()
	switch j := l.job; {
	case j == nil:
		if s.Phase == Leading && l.ctx.Err() == nil && l.client.BeginWork(now) {
			l.beginTerm(now, s)
		}
	case j.Holder != s.Holder:
		l.warden.lose(now, why)
	case l.ctx.Err() != nil:
		l.warden.end(now, context.Cause(l.ctx))
	default:
		l.warden.extend(s)
	}
	l.wind(now)
	for t := range l.targets() {
		for _, c := range t.calls {
			if c.req.Holder != s.Holder && c.req.Op != OpRelease {
				c.giveUp()
			}
		}
	}
}

// wind does what is due once a term has ended and its work has not.
func (l *loop) wind(now time.Duration) {
	j := l.job
	if j == nil || !l.warden.isOver(j) {
		return
	}
	if s := l.client.State(); s.Holder == j.Holder && s.Phase == Leading {
		if now >= l.drained(j) {
			l.client.Resign(now) // sends nothing: the work goes on
		} else {
			l.warden.extend(s)
		}
	}
	if !j.told {
		j.told = true
		l.log(slog.LevelInfo, "term ends", "holder", j.Holder.String(), "token", j.Token, "cause", j.why)
		l.observe(Event{Kind: EventTermEnded, Holder: j.Holder, Token: j.Token, At: j.at, Err: j.why})
	}
}

// drained is until when the lease is renewed for work whose term has ended.
func (l *loop) drained(j *job) time.Duration {
	if errors.Is(j.why, ErrLapsed) {
		return j.at
	}
	return add(j.at, l.e.opts.Drain)
}

func (l *loop) beginTerm(now time.Duration, s ClientState) {
	j := &job{Term: Term{Resource: l.e.opts.Resource, Holder: s.Holder, Token: s.Token, belief: &belief{clk: l.e.clk, run: l.ctx}}}
	j.ctx, j.cancel = context.WithCancelCause(l.ctx)
	l.job = j
	l.warden.begin(j, s)
	l.log(slog.LevelInfo, "term begins", "holder", s.Holder.String(), "token", s.Token)
	l.observe(Event{Kind: EventTermBegan, Holder: s.Holder, Token: s.Token, At: now})
	l.begin <- j
}

func (l *loop) workEnded(err error) {
	j, now := l.job, l.e.clk.Now()
	if err != nil && !j.toldOfEnd(err) {
		l.err = err
	}
	l.warden.end(now, ErrResigned) // before the release
	l.send(l.client.EndWork(now))
	l.send(l.client.Resign(now))
	l.settle(now, ErrResigned)
	l.job = nil
	l.warden.stopped()
	l.log(slog.LevelDebug, "work stopped", "holder", j.Holder.String(), "token", j.Token, "err", err)
	l.observe(Event{Kind: EventWorkStopped, Holder: j.Holder, Token: j.Token, At: now, Err: err})
}

// toldOfEnd reports whether err says no more than that the term is over.
func (j *job) toldOfEnd(err error) bool {
	for _, why := range []error{ErrLapsed, ErrRefused, ErrResigned, ErrBarrier} {
		if errors.Is(err, why) {
			return true
		}
	}
	return j.ctx.Err() != nil && (errors.Is(err, j.ctx.Err()) || errors.Is(err, context.Cause(j.ctx)))
}

// note tells of what rep, which the client has taken, made of the lease.
func (l *loop) note(now time.Duration, before ClientState, rep Reply, why error) {
	s := l.client.State()
	e := Event{Holder: s.Holder, Token: s.Token, At: now}
	switch {
	case s.Phase != Campaigning && s.Token != before.Token:
		e.Kind = EventGranted
	case rep.Op == OpRenew && s.Deadline > before.Deadline:
		e.Kind, e.Margin = EventRenewed, before.Deadline-now
	case before.Phase == Fencing && s.Phase == Campaigning:
		l.log(slog.LevelWarn, "no term begins", "holder", before.Holder.String(), "token", before.Token, "cause", why)
		return
	default:
		return
	}
	l.observe(e)
}
