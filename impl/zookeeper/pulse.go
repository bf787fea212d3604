package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/lease"
	"fencepost/impl/zookeeper/internal/session"
)

// tenureKey is a tenure as its holder names it.
type tenureKey struct {
	resource string
	holder   lease.Holder
	token    lease.Token
}

// pulse is what keeps a tenure: an ephemeral node below the tenure's, in a
// session of its own whose timeout is the TTL.
type pulse struct {
	key          tenureKey
	tenure, path string
	timeout      time.Duration // as it was asked for
	session      session.Session
	attached     chan struct{} // full while somebody is: a second would drive out the first
}

func newPulse(tenure string, timeout time.Duration, in session.Session) *pulse {
	return &pulse{
		tenure: tenure, path: tenure + "/" + pulseName(in.Timeout),
		timeout: timeout, session: in, attached: make(chan struct{}, 1),
	}
}

func (s *Store) pulse(key tenureKey, timeout time.Duration) *pulse {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pulses[key.resource]; p != nil && p.key == key && p.timeout == timeout {
		return p
	}
	return nil
}

// remember takes p for the next renewals. The pulse before it, of another
// timeout, is left to run out: an expiry never moves back.
func (s *Store) remember(key tenureKey, p *pulse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.key = key
	s.pulses[key.resource] = p
}

// forget drops the pulse of a tenure that is over.
func (s *Store) forget(key tenureKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pulses[key.resource]; p != nil && p.key == key {
		delete(s.pulses, key.resource)
	}
}

// keep extends a tenure by timeout from now, or says why not.
func (s *Store) keep(ctx context.Context, key tenureKey, timeout time.Duration, op lease.Op) error {
	if p := s.pulse(key, timeout); p != nil {
		err := s.beat(ctx, p)
		if err == nil || !ended(err) {
			return err
		}
		s.forget(key)
	}
	// Another TTL than before, another process, or no tenure any more.
	return s.join(ctx, key, timeout, op)
}

// beat starts the clock of the pulse's session anew, and proves that it still
// keeps a tenure that was not released.
func (s *Store) beat(ctx context.Context, p *pulse) error {
	select {
	case p.attached <- struct{}{}:
		defer func() { <-p.attached }()
	case <-ctx.Done():
		return ctx.Err()
	}
	conn, err := s.dialer.Attach(ctx, p.session)
	if err != nil {
		return err
	}
	defer conn.Close()
	// A multi is agreed upon by a majority, also when it changes nothing. A sync
	// and a read would do for a leader that has been deposed and does not know:
	// its successor counts the session from an earlier instant.
	_, err = s.multi(ctx, conn, &zk.CheckVersionRequest{Path: p.tenure, Version: 0}, &zk.CheckVersionRequest{Path: p.path, Version: -1})
	return err
}

// multi makes ops in the session of conn. A server breaks the connection of a
// session that has ended, and what becomes of the multi goes untold: the error
// then is an *overError. After any error that is no refusal conn is closed.
func (s *Store) multi(ctx context.Context, conn *session.Conn, ops ...any) ([]zk.Stat, error) {
	stats, err := conn.Multi(ctx, ops...)
	if _, refused := errors.AsType[*session.MultiError](err); err == nil || refused {
		return stats, err
	}
	conn.Close()
	if ctx.Err() != nil || errors.Is(err, zk.ErrSessionExpired) {
		return nil, err
	}
	again, attachErr := s.dialer.Attach(ctx, conn.Session)
	switch {
	case attachErr == nil:
		again.Close()
	case errors.Is(attachErr, zk.ErrSessionExpired):
		return nil, &overError{timeout: conn.Timeout, err: err}
	}
	return nil, err
}

// overError says that a session has ended, and that it is not known what was
// made in it before. Nothing will be any more.
type overError struct {
	timeout time.Duration
	err     error
}

func (e *overError) Error() string {
	return fmt.Sprintf("the session, of %v, ended during the call (%v), and whether a tenure began before is not known: ask for a longer TTL if that happens often", e.timeout, e.err)
}

func (e *overError) Unwrap() []error { return []error{zk.ErrSessionExpired, e.err} }

// join adds a pulse to a tenure that another one keeps at that very moment.
func (s *Store) join(ctx context.Context, key tenureKey, timeout time.Duration, op lease.Op) error {
	var conn *session.Conn
	defer func() {
		if conn != nil {
			conn.End(ctx)
		}
	}()
	for {
		seen, err := s.look(ctx, key.resource)
		if err == nil {
			err = seen.own(key)
		}
		if err != nil {
			return err
		}
		if conn == nil {
			if conn, err = s.open(ctx, key.resource, timeout, op); err != nil {
				return err
			}
		}
		p := newPulse(seen.path, timeout, conn.Session)
		_, err = s.multi(ctx, conn,
			&zk.CheckVersionRequest{Path: seen.path, Version: 0},
			&zk.CheckVersionRequest{Path: seen.path + "/" + seen.lasting(), Version: -1},
			&zk.CreateRequest{Path: p.path, Acl: s.opts.ACL, Flags: zk.FlagEphemeral})
		switch {
		case err == nil:
			s.remember(key, p)
			conn.Close()
			conn = nil
			return nil
		case errors.Is(err, zk.ErrSessionExpired):
			conn = nil // and so is its pulse, if it was made
		case !conflict(err):
			conn.Close()
			conn = nil
			return err
		}
	}
}

// open makes a session that lasts for timeout at least.
func (s *Store) open(ctx context.Context, resource string, timeout time.Duration, op lease.Op) (*session.Conn, error) {
	conn, err := s.dialer.Open(ctx, timeout)
	if err != nil {
		return nil, err
	}
	if conn.Timeout < timeout {
		conn.End(ctx)
		return nil, fmt.Errorf("a TTL of %v is more than the servers' maxSessionTimeout of %v: ask for less, or raise it: %w",
			timeout, conn.Timeout, &lease.InvalidError{Resource: resource, Op: op})
	}
	return conn, nil
}

// pulseName says how long the session lasts, for whoever looks at the tenure,
// and is never used again.
func pulseName(timeout time.Duration) string {
	return fmt.Sprintf("%s%d-%s", pulsePrefix, timeout.Milliseconds(), rand.Text())
}

// conflict reports whether a multi was refused because something has changed.
func conflict(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNotEmpty)
}

// ended reports whether err says that a pulse keeps nothing any more.
func ended(err error) bool { return conflict(err) || errors.Is(err, zk.ErrSessionExpired) }
