package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fencepost/impl/clock"
)

// mapJournal is a journal in memory that can hang, fail, and fail after it did
// what was asked.
type mapJournal struct {
	mu    sync.Mutex
	state map[string]Durable
	saves int
	fail  error
	but   bool // it saves all the same
	panic bool

	enter, leave chan struct{} // if not nil, Save signals one and waits for the other
}

func (j *mapJournal) Save(resource string, d Durable) error {
	if j.enter != nil {
		j.enter <- struct{}{}
		<-j.leave
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.saves++
	if j.fail == nil || j.but {
		if j.state == nil {
			j.state = map[string]Durable{}
		}
		j.state[resource] = d
	}
	if j.panic {
		panic("journal")
	}
	return j.fail
}

func (j *mapJournal) snapshot() map[string]Durable {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Collect(maps.All(j.state))
}

func TestMemoryIsDurableBeforeItAnswersAndOnlyWhereItMustBe(t *testing.T) {
	clk := clock.NewManual(0)
	journal := &mapJournal{}
	m := newMemory(t, clk, MemoryOptions{Journal: journal, LockDelay: 5 * sec})
	for i, c := range []struct {
		req   Request
		pass  time.Duration
		saves int // in all
	}{
		{Request{Op: OpGet}, 0, 0},
		{acquire(alice, 10*sec), 0, 1},
		{acquire(bob, 10*sec), 0, 1},
		{renew(alice, 1, 10*sec), sec, 1}, // a restart grants the whole TTL anyway
		{renew(alice, 1, 5*sec), sec, 1},
		{renew(alice, 1, 11*sec), sec, 2}, // a longer one it would not know
		{renew(bob, 1, 10*sec), 0, 2},
		{Request{Op: OpGet}, 20 * sec, 3}, // the lapse is made known, once
		{Request{Op: OpGet}, 0, 3},
		{acquire(bob, 10*sec), 6 * sec, 4},
		{release(bob, 2), 0, 5},
	} {
		clk.Advance(c.pass)
		ask(t.Context(), m, "db", c.req)
		if journal.saves != c.saves {
			t.Errorf("step %d, %v: %d saves, want %d", i, c.req.Op, journal.saves, c.saves)
		}
		if c.saves > 0 {
			diff(t, fmt.Sprintf("step %d: journal", i), journal.snapshot(), m.Durable())
		}
	}
}

// If the journal fails nobody knows whether it saved. The answer says so, the
// state stays where it was, and whatever is answered next is saved first: a
// tenure that the journal may know as released must not be renewed out of memory.
func TestMemoryIsNeverAheadOfItsJournal(t *testing.T) {
	broken := errors.New("disk full")
	changes := map[string]struct {
		pass time.Duration
		do   func(*Memory) error
	}{
		"acquire of what lapsed": {20 * sec, func(m *Memory) error { _, err := m.Acquire(t.Context(), "db", bob, sec); return err }},
		"longer renewal":         {0, func(m *Memory) error { _, err := m.Renew(t.Context(), "db", alice, 1, 60*sec); return err }},
		"release":                {0, func(m *Memory) error { return m.Release(t.Context(), "db", alice, 1) }},
		"lapse made known":       {20 * sec, func(m *Memory) error { _, err := m.Get(t.Context(), "db"); return err }},
		"delete":                 {0, func(m *Memory) error { return m.Delete(t.Context(), "db") }},
	}
	next := []Request{renew(alice, 1, sec), acquire(alice, sec), acquire(bob, sec), {Op: OpGet}, release(bob, 1)}
	for name, change := range changes {
		for _, saved := range []bool{false, true} {
			for _, panics := range []bool{false, true} {
				for _, req := range next {
					where := fmt.Sprintf("%s, saved %v, panics %v, then %v", name, saved, panics, req.Op)
					clk := clock.NewManual(0)
					journal := &mapJournal{}
					m := newMemory(t, clk, MemoryOptions{Journal: journal})
					m.Acquire(t.Context(), "db", alice, 10*sec)
					before := m.Durable()
					clk.Advance(change.pass)

					journal.fail, journal.but, journal.panic = broken, saved, panics
					func() {
						defer func() {
							if r := recover(); (r != nil) != panics {
								t.Errorf("%s: panic %v", where, r)
							}
						}()
						if err := change.do(m); !errors.Is(err, broken) || !strings.Contains(err.Error(), "unknown") || errors.Is(err, ErrNotHeld) {
							t.Errorf("%s: %v, want an unknown outcome", where, err)
						}
					}()
					diff(t, where+": state after the failure", m.Durable(), before)

					journal.panic = false
					saves := journal.saves
					if o := ask(t.Context(), m, "db", req); !errors.Is(o.Err, broken) {
						t.Errorf("%s: answered %+v while nothing can be saved", where, o)
					}
					journal.fail = nil
					ask(t.Context(), m, "db", req)
					diff(t, where+": saves", journal.saves, saves+2)
					diff(t, where+": journal", journal.snapshot(), m.Durable())
				}
			}
		}
	}
}

func TestMemoryHungJournalHoldsUpOnlyItsOwnResource(t *testing.T) {
	hung := hangFor{resource: "slow", entered: make(chan struct{}), leave: make(chan struct{})}
	m := newMemory(t, clock.NewManual(0), MemoryOptions{Journal: hung})
	var wg sync.WaitGroup
	wg.Go(func() { m.Acquire(t.Context(), "slow", alice, sec) })
	<-hung.entered
	if _, err := m.Acquire(t.Context(), "quick", alice, sec); err != nil {
		t.Error(err)
	}
	close(hung.leave)
	wg.Wait()
	diff(t, "resources", slices.Sorted(maps.Keys(m.Durable())), []string{"quick", "slow"})
}

// A caller that gives up takes nothing back. Were its save to land after others,
// the counter would fall, and a restart would issue their tokens again.
func TestMemoryWaitsForASaveWhoseCallerIsGone(t *testing.T) {
	journal := &mapJournal{enter: make(chan struct{}), leave: make(chan struct{})}
	m := newMemory(t, clock.NewManual(0), MemoryOptions{Journal: journal})
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan Grant, 1), make(chan Grant, 1)
	go func() {
		g, err := m.Acquire(ctx, "db", alice, sec)
		if err != nil {
			t.Errorf("alice is not told of what was saved: %v", err)
		}
		first <- g
	}()
	<-journal.enter
	cancel()
	go func() {
		m.Release(t.Context(), "db", alice, 1)
		g, _ := m.Acquire(t.Context(), "db", bob, sec)
		second <- g
	}()
	if m.entry("db", false).mu.TryLock() {
		t.Fatal("nothing keeps another save from beginning beside the one under way")
	}
	journal.leave <- struct{}{}
	diff(t, "alice's grant", <-first, Grant{"db", alice, 1, sec})
	for range 2 {
		<-journal.enter
		journal.leave <- struct{}{}
	}
	diff(t, "bob's grant", <-second, Grant{"db", bob, 2, sec})

	again := newMemory(t, clock.NewManual(0), MemoryOptions{State: journal.snapshot()})
	again.Release(t.Context(), "db", bob, 2)
	g, err := again.Acquire(t.Context(), "db", alice2, sec)
	if g.Token != 3 || err != nil {
		t.Errorf("after the restart: token %d, %v; want 3, since 2 was issued", g.Token, err)
	}
}

type hangFor struct {
	resource       string
	entered, leave chan struct{}
}

func (h hangFor) Save(resource string, _ Durable) error {
	if resource == h.resource {
		close(h.entered)
		<-h.leave
	}
	return nil
}
