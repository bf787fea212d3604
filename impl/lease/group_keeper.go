package lease

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"fencepost/impl/clock"
)

// keeper is one Run of a [Group]: it owns the clients, the timer and the calls in
// flight. It calls nothing foreign but the clock, so that nobody can keep it from
// ending a term: the store and the storages are called in goroutines of their
// own, and Lead, Logger and Observer by Run, from news.
type keeper struct {
	g    *Group
	ctx  context.Context
	quit context.CancelCauseFunc
	done chan struct{}
	err  error // what Run returns, once done is closed
	news *news

	timer    clock.Timer
	all      schedule
	spread   spread
	parked   []*member // wait for a slot, in order
	slots    int       // taken, of MaxHeld
	working  int       // stints that go on
	stopping bool      // ctx has ended

	calls  calls
	fences fences
	cut    time.Duration // when all calls are cancelled; set once nothing else goes on
	leave  time.Duration // when those that ignore it are left behind
}

func (g *Group) start(ctx context.Context) (*keeper, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running {
		return nil, fmt.Errorf("lease group: %w", ErrRunning)
	}
	g.running, g.notes = true, nil
	k := &keeper{g: g, done: make(chan struct{}), news: newNews(g.opts), cut: never, leave: never}
	k.ctx, k.quit = context.WithCancelCause(ctx)
	k.calls.results = make(chan *batch, g.opts.MaxCalls)
	k.fences.results = make(chan *fenceCall, g.opts.MaxCalls)
	members := make([]*member, 0, len(g.members))
	for _, m := range g.members {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b *member) int { return int(a.number) - int(b.number) })
	now := g.clk.Now()
	for _, m := range members {
		k.join(m, max(g.first, m.used+1), now)
	}
	return k, nil
}

// join is called with g locked.
func (k *keeper) join(m *member, seq uint64, now time.Duration) {
	cfg := k.g.cfg
	cfg.Barrier = len(m.storages) > 0
	// Validated by NewGroup, for the same values but the incarnation.
	m.client, _ = NewClient(cfg, Holder{Node: k.g.opts.Node, Seq: seq, Nonce: k.g.opts.Nonce}, now)
	m.notYet, m.in = now, nil
	m.leaving, m.barred, m.slot, m.parked = false, false, false, false
	heap.Push(&k.all, m)
	k.place(m)
	k.spread = spreadFor(len(k.all), k.g.maxBatch, k.g.opts.Nonce)
}

func (k *keeper) run() {
	defer close(k.done)
	k.timer = k.g.clk.Timer(k.g.clk.Now())
	defer k.timer.Stop()
	ended := k.ctx.Done()
	for {
		now := k.g.clk.Now()
		k.unpark(now)
		k.tick(now)
		k.send(now)
		k.expire(now)
		if k.finished(now) {
			break
		}
		k.timer.Reset(k.wake())
		select {
		case <-k.timer.C():
		case b := <-k.calls.results:
			k.answered(b)
		case f := <-k.fences.results:
			k.fenced(f)
		case <-k.g.inbox:
			k.listen()
		case <-ended:
			ended = nil // the work sees it too, and is waited for
			k.stop()
		}
	}
	k.err = context.Cause(k.ctx)
	k.g.mu.Lock()
	defer k.g.mu.Unlock()
	for _, d := range k.all {
		m := d.member
		m.used = m.client.State().Holder.Seq
		m.queued, m.unsent, m.calls = Request{}, 0, 0
		for i := range m.storages {
			m.storages[i].asked = false
		}
	}
	k.g.running = false
	for _, d := range k.all {
		if d.asked { // and not heard any more
			k.g.leave(d.member)
		}
	}
}

// tick lets each member do what is due.
func (k *keeper) tick(now time.Duration) {
	for len(k.all) > 0 && k.all[0].at <= now {
		m := k.all[0].member
		s := &m.client.state
		if bound := k.g.opts.MaxHeld; bound > 0 && s.Phase == Campaigning && !s.Working && !m.slot && k.slots >= bound {
			m.parked = true
			k.parked = append(k.parked, m)
			k.place(m)
			continue
		}
		k.queue(m, m.client.Tick(now))
		k.settle(m, now, ErrLapsed)
	}
}

// unpark lets as many members campaign as there are slots.
func (k *keeper) unpark(now time.Duration) {
	for free := k.g.opts.MaxHeld - k.slots; free > 0 && len(k.parked) > 0; {
		m := k.parked[0]
		k.parked = k.parked[1:]
		if m.parked {
			m.parked = false
			k.place(m)
			free--
		}
	}
}

// settle brings the world in line with m's client after each of its steps. why is
// what ended the term, if that step did and its deadline had not passed.
func (k *keeper) settle(m *member, now time.Duration, why error) {
	s := &m.client.state
	switch w := m.work; {
	case w == nil && (s.Phase == Fencing || s.Phase == Leading):
		if k.stopping || m.leaving {
			k.queue(m, m.client.Resign(now))
		} else if s.Phase == Leading && m.client.BeginWork(now) {
			k.beginTerm(m, *s, now)
		}
	case w == nil:
	case w.over:
		if w.Holder == s.Holder && now >= w.kept {
			m.client.Resign(now) // sends nothing: the work goes on
		}
	case w.Holder == s.Holder:
		w.belief.set(s.Deadline)
	default:
		k.endTerm(m, now, why)
	}
	if busy := m.busy(); busy != m.slot {
		m.slot = busy
		if busy {
			k.slots++
		} else {
			k.slots--
		}
	}
	if m.leaving && !m.slot {
		k.depart(m, now)
		return
	}
	k.place(m)
}

// place puts m where it belongs in the schedule.
func (k *keeper) place(m *member) {
	at := m.client.Wake()
	if w := m.work; w != nil && w.over && m.client.state.Phase == Leading {
		at = min(at, w.kept)
	}
	if m.client.state.Phase == Campaigning {
		if at = max(at, m.notYet); k.stopping || m.leaving || m.barred || m.parked {
			at = never
		}
	}
	if e := &k.all[m.index]; e.at != at {
		e.at = at
		heap.Fix(&k.all, m.index)
	}
}

func (k *keeper) beginTerm(m *member, s ClientState, now time.Duration) {
	t := Term{Resource: m.resource, Holder: s.Holder, Token: s.Token, belief: &belief{clk: k.g.clk, run: k.ctx}}
	t.belief.set(s.Deadline)
	w := &stint{Term: t}
	w.ctx, w.cancel = context.WithCancelCause(k.ctx)
	m.work = w
	k.working++
	k.g.held.Add(1)
	m.term.Store(&t)
	k.event(m, Event{Kind: EventTermBegan, Holder: s.Holder, Token: s.Token, At: now})
	k.news.begin(w, func() {
		k.g.mu.Lock()
		defer k.g.mu.Unlock()
		k.g.tell(note{m: m, work: w})
	})
}

func (k *keeper) endTerm(m *member, now time.Duration, why error) {
	w := m.work
	if deadline := w.belief.deadline(); now >= deadline {
		now, why = deadline, ErrLapsed
	}
	w.over, w.kept = true, add(now, k.g.opts.Drain)
	w.belief.set(now) // before the context: who sees that ended sees this
	m.term.Store(nil)
	k.g.held.Add(-1)
	w.cancel(fmt.Errorf("lease %q, token %d: %w", w.Resource, w.Token, why))
	k.event(m, Event{Kind: EventTermEnded, Holder: w.Holder, Token: w.Token, At: now, Err: why})
}

// listen does what others told the group to.
func (k *keeper) listen() {
	now := k.g.clk.Now()
	for _, n := range k.g.heard() {
		switch {
		case n.work == nil:
			k.look(n.m, now)
		case n.m.work == n.work: // else of a Run before
			k.workStopped(n.m, now)
		}
	}
}

// look finds out whether m is new, or is to leave.
func (k *keeper) look(m *member, now time.Duration) {
	k.g.mu.Lock()
	here := k.g.members[m.resource] == m
	leave := here && m.asked && !m.leaving
	if here && m.index < 0 {
		k.join(m, max(k.g.first, m.used+1), now)
	}
	k.g.mu.Unlock()
	if !leave {
		return
	}
	m.leaving = true
	if m.work != nil && !m.work.over {
		k.endTerm(m, now, ErrResigned)
	}
	k.settle(m, now, ErrResigned)
}

func (k *keeper) workStopped(m *member, now time.Duration) {
	w := m.work
	k.queue(m, m.client.EndWork(now))
	k.queue(m, m.client.Resign(now))
	k.settle(m, now, ErrResigned)
	m.work = nil
	k.working--
	k.event(m, Event{Kind: EventWorkStopped, Holder: w.Holder, Token: w.Token, At: now})
	k.settle(m, now, ErrResigned)
}

// depart forgets m, unless it was added again meanwhile.
func (k *keeper) depart(m *member, now time.Duration) {
	k.g.mu.Lock()
	defer k.g.mu.Unlock()
	heap.Remove(&k.all, m.index)
	m.parked = false
	m.used = m.client.State().Holder.Seq
	if k.g.leave(m) {
		k.spread = spreadFor(len(k.all), k.g.maxBatch, k.g.opts.Nonce)
	} else {
		k.join(m, m.used+1, now)
	}
}

// stop begins the end: nobody campaigns any more, and what is held without work
// is released.
func (k *keeper) stop() {
	k.stopping = true
	now := k.g.clk.Now()
	for _, d := range slices.Clone(k.all) {
		m := d.member
		if m.queued.Op == OpAcquire {
			m.queued = Request{}
		}
		if m.work != nil && !m.work.over {
			k.endTerm(m, now, context.Cause(k.ctx))
		}
		k.settle(m, now, ErrResigned)
	}
}

// finished reports whether nothing is left to do. Once all work has stopped, the
// last calls have one release timeout until they are cancelled, and another for
// those that ignore that.
func (k *keeper) finished(now time.Duration) bool {
	if !k.stopping || k.working > 0 {
		return false
	}
	if k.cut == never {
		k.cut = add(now, k.g.opts.ReleaseTimeout)
		k.leave = add(k.cut, k.g.opts.ReleaseTimeout)
	}
	left := len(k.calls.flying) + len(k.fences.flying)
	if left > 0 && now >= k.leave {
		k.news.warn("calls left behind: they ignore the end of their context", "calls", left)
		return true
	}
	return left == 0 && (now >= k.cut || !k.calls.waiting())
}

// wake is when there is something to do next.
func (k *keeper) wake() time.Duration {
	next := min(k.calls.nextCancel(k), k.fences.nextCancel(k))
	if len(k.all) > 0 {
		next = min(next, k.all[0].at)
	}
	if k.stopping && k.working == 0 {
		next = min(next, k.leave)
	}
	return next
}

func (k *keeper) event(m *member, e Event) {
	e.Resource = m.resource
	k.news.event(e)
}
