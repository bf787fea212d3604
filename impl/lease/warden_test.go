package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"fencepost/impl/clock"
)

// ending is a context at the moment at which it has ended, and those derived from
// it have not yet: the one marks itself before it tells the others.
type ending struct{ context.Context }

func (ending) Err() error { return context.Canceled }

// A firing says that a deadline has come, not which: it may have moved since.
func TestATimerEndsATermOnlyAtTheDeadlineThatStands(t *testing.T) {
	l := idle(t, t.Context())
	clk := l.e.clk.(*clock.Manual)
	l.beginTerm(0, ClientState{Holder: alice, Token: 7, Deadline: 9 * sec, NextSend: 3 * sec})
	j := <-l.begin
	l.warden.extend(ClientState{Holder: alice, Token: 7, Deadline: 12 * sec, NextSend: 6 * sec})
	for _, at := range []time.Duration{9 * sec, 12*sec - 1} {
		clk.Set(at)
		if l.warden.lapse(); j.ctx.Err() != nil || !j.Valid() || j.Deadline() != 12*sec {
			t.Errorf("at %v: %v, valid %v, until %v", at, context.Cause(j.ctx), j.Valid(), j.Deadline())
		}
	}
	clk.Set(20 * sec) // and the timer is late
	if l.warden.lapse(); !errors.Is(context.Cause(j.ctx), ErrLapsed) || j.Valid() || j.Deadline() != 12*sec || j.at != 12*sec {
		t.Errorf("at 20s: %v, valid %v, until %v, ended at %v", context.Cause(j.ctx), j.Valid(), j.Deadline(), j.at)
	}
}

// Nobody may act any more from that moment on, and what the term shows as its end
// is that moment. That is no lapse yet: the deadline is at 9s.
func TestTheEndOfRunsContextIsNotTakenForTheDeadline(t *testing.T) {
	l := idle(t, ending{t.Context()})
	clk := l.e.clk.(*clock.Manual)
	l.beginTerm(0, ClientState{Holder: alice, Token: 7, Deadline: 9 * sec, NextSend: 3 * sec})
	j := <-l.begin
	clk.Set(5 * sec)
	if j.Valid() || j.Deadline() != 5*sec {
		t.Errorf("valid %v, until %v", j.Valid(), j.Deadline())
	}
	if l.warden.lapse(); l.warden.isOver(j) {
		t.Errorf("lapsed at 5s: %v", context.Cause(j.ctx))
	}
	l.warden.end(5*sec, ErrResigned)
	if cause := context.Cause(j.ctx); !errors.Is(cause, ErrResigned) || errors.Is(cause, ErrLapsed) || j.at != 5*sec {
		t.Errorf("%v at %v, want ErrResigned at 5s", cause, j.at)
	}
}

func TestTheEndOfAGroupsContextIsNotTakenForTheDeadline(t *testing.T) {
	clk := clock.NewManual(0)
	g, err := NewGroup(newMemory(t, clk, MemoryOptions{}), GroupConfig{
		Node: "alice", Timing: tenSeconds, Clock: clk, Lead: func(context.Context, Term, func()) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Add("a")
	k, err := g.start(t.Context()) // without its goroutine
	if err != nil {
		t.Fatal(err)
	}
	defer k.quit(nil)
	for _, c := range []struct {
		now  time.Duration
		want error
		ends time.Duration
	}{{5 * sec, ErrResigned, 5 * sec}, {9 * sec, ErrLapsed, 9 * sec}, {30 * sec, ErrLapsed, 9 * sec}} {
		m := g.members["a"]
		k.beginTerm(m, ClientState{Holder: alice, Token: 7, Deadline: 9 * sec}, 0)
		w := m.work
		w.belief.run = ending{t.Context()}
		clk.Set(c.now)
		k.endTerm(m, c.now, ErrResigned)
		if cause := context.Cause(w.ctx); !errors.Is(cause, c.want) {
			t.Errorf("at %v: %v, want %v", c.now, cause, c.want)
		}
		diff(t, "end", w.belief.deadline(), c.ends)
	}
}
