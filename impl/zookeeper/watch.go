package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"
)

// hub watches one lease for all who want hints. It lives as long as the store,
// since ZooKeeper's client forgets a watch only when that fires.
type hub struct {
	armed chan struct{} // closed once the first watch stands, or none can

	mu   sync.Mutex
	subs map[chan struct{}]struct{}
	gone error // why it watches no longer
}

// Watch implements [lease.Watcher]. A lapse sends a hint too, at once: the end
// of a session is a change like any other. So do a renewal with another TTL, and
// the loss of the session that watches. It waits until the first watch stands. The
// error is that of ctx, says that the store is closed, or is the servers' refusal.
func (s *Store) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	h, err := s.hub(resource)
	if err == nil {
		select {
		case <-h.armed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	var hints chan struct{}
	if err == nil {
		hints, err = h.add()
	}
	if err != nil {
		return nil, fmt.Errorf("lease %q: zookeeper: watch: %w", resource, err)
	}
	context.AfterFunc(ctx, func() { h.remove(hints) })
	return hints, nil
}

func (s *Store) hub(resource string) (*hub, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hubs[resource]; h != nil {
		return h, nil
	}
	h := &hub{subs: map[chan struct{}]struct{}{}, armed: make(chan struct{})}
	if !s.conn.start(func() { h.run(s, resource) }) {
		return nil, errClosed
	}
	s.hubs[resource] = h
	return h, nil
}

func (h *hub) run(s *Store, resource string) {
	armed, gone := false, errClosed
	defer func() {
		s.mu.Lock()
		delete(s.hubs, resource)
		s.mu.Unlock()
		h.close(gone)
		if !armed {
			close(h.armed)
		}
	}()
	select {
	case <-s.conn.shown:
	case <-s.conn.ended.Done():
		return
	}
	for {
		changed, err := s.arm(resource)
		switch {
		case s.conn.ended.Err() != nil:
			return
		case disconnected(err):
			// Until there is a connection again the library queues what is asked.
			s.pause()
			continue
		case err != nil:
			s.opts.Logger.Error("watch refused", "resource", resource, "err", err)
			gone = err
			return
		case !armed:
			armed = true
			close(h.armed)
		default:
			// Only now: what happened while no watch stood is hinted at too.
			h.hint()
		}
		select {
		case <-changed.record:
		case <-changed.tenure:
		case <-s.conn.ended.Done():
		}
	}
}

func disconnected(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) ||
		errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}

// pause waits a little, or until the store is closed.
func (s *Store) pause() {
	t := s.opts.Clock.Timer(s.opts.Clock.Now() + betweenRounds)
	defer t.Stop()
	select {
	case <-t.C():
	case <-s.conn.ended.Done():
	}
}

type changes struct{ record, tenure <-chan zk.Event }

// arm sets a watch on the record and one on the tenure that it names.
func (s *Store) arm(resource string) (changes, error) {
	path := s.record(resource)
	data, _, changed, err := s.conn.zk.GetW(path)
	if errors.Is(err, zk.ErrNoNode) {
		exists, _, changed, err := s.conn.zk.ExistsW(path)
		if exists && err == nil {
			return s.arm(resource)
		}
		return changes{record: changed}, err
	} else if err != nil {
		return changes{}, err
	}
	c := changes{record: changed}
	tenure, _, err := decodeRecord(path, data)
	if err != nil {
		return c, nil
	}
	_, _, c.tenure, err = s.conn.zk.ChildrenW(tenure)
	if errors.Is(err, zk.ErrNoNode) {
		return c, nil // it has a successor, and so has the record
	}
	return c, err
}

func (h *hub) add() (chan struct{}, error) {
	hints := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone != nil {
		return nil, h.gone
	}
	h.subs[hints] = struct{}{}
	return hints, nil
}

func (h *hub) remove(hints chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.subs[hints]; ok {
		delete(h.subs, hints)
		close(hints)
	}
}

func (h *hub) hint() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for hints := range h.subs {
		select {
		case hints <- struct{}{}:
		default: // one waits there already
		}
	}
}

func (h *hub) close(gone error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = gone
	for hints := range h.subs {
		close(hints)
	}
	clear(h.subs)
}
