package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/impl/zookeeper/internal/session"
)

// Options are where the leases stand, and how to get there.
type Options struct {
	// Servers are the servers of the ensemble, each host:port.
	Servers []string
	// Root is the node under which the leases stand, one below it for each
	// resource. It is made when it is missing. Default /fencepost.
	Root string
	// ACL is that of every node that is made. Default: anybody may do anything.
	ACL []zk.ACL
	// Auth are the credentials that each session shows.
	Auth []Auth
	// Dial connects to a server, with TLS for example. It must return when its
	// context ends. Default: plain TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Patience is how long one server may take to take up a session, which a
	// majority must agree on, before the next is tried. Default two seconds.
	Patience time.Duration
	// Clock paces attempts to reach the servers. It keeps no lease. Default [clock.Boot].
	Clock clock.Clock
	// Logger is told of what goes wrong with connections. Default: nobody.
	Logger *slog.Logger
}

// Auth is a credential: with scheme "digest" the secret is user:password.
type Auth = session.Auth

// Store keeps leases in ZooKeeper: see the package comment. It implements
// [lease.Store] and [lease.Watcher]. [Store.Close] ends it; the tenures granted
// by it run on in the servers until their TTL is over.
type Store struct {
	opts   Options
	dialer session.Dialer
	conn   *shared // for all that renews nothing

	mu     sync.Mutex
	pulses map[string]*pulse // of each resource, that of the latest tenure granted here
	hubs   map[string]*hub
}

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Watcher = (*Store)(nil)
)

// Open makes the store. It asks nothing of the servers yet. The error says which
// option makes no sense.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	conn, err := connect(o)
	if err != nil {
		return nil, fmt.Errorf("zookeeper %q: %w", o.Servers, err)
	}
	return &Store{
		opts:   o,
		conn:   conn,
		dialer: session.Dialer{Servers: o.Servers, Dial: o.Dial, Patience: o.Patience, Auth: o.Auth},
		pulses: map[string]*pulse{},
		hubs:   map[string]*hub{},
	}, nil
}

func (o Options) withDefaults() Options {
	if o.Root == "" {
		o.Root = "/fencepost"
	}
	if o.ACL == nil {
		o.ACL = zk.WorldACL(zk.PermAll)
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Patience == 0 {
		o.Patience = 2 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.Boot()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Close ends the store: its connection, what it watches, and whatever call still
// waits. It returns once all of it has ended, within two seconds by
// [Options.Clock] whatever the servers do.
func (s *Store) Close() { s.conn.close() }

// Acquire implements [lease.Store]. A TTL below the servers' minSessionTimeout
// is raised to it; one above their maxSessionTimeout is invalid.
func (s *Store) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	timeout, ok := sessionTimeout(ttl)
	if !ok || holder.IsZero() {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpAcquire}
	}
	token, err := s.acquire(ctx, resource, holder, timeout)
	if err != nil {
		return lease.Grant{}, told("acquire", resource, err)
	}
	return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: ttl}, nil
}

// Renew implements [lease.Store]. Its TTLs are as those of [Store.Acquire].
func (s *Store) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	timeout, ok := sessionTimeout(ttl)
	if !ok || holder.IsZero() || token == 0 {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpRenew}
	}
	key := tenureKey{resource, holder, token}
	err := s.keep(ctx, key, timeout, lease.OpRenew)
	if err != nil {
		return lease.Grant{}, told("renew", resource, err)
	}
	return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: ttl}, nil
}

// Release implements [lease.Store]. The lease is free at once; the sessions that
// kept it, empty now, run out by themselves.
func (s *Store) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	if holder.IsZero() || token == 0 {
		return &lease.InvalidError{Resource: resource, Op: lease.OpRelease}
	}
	key := tenureKey{resource, holder, token}
	for {
		seen, err := s.look(ctx, resource)
		if err == nil {
			err = seen.own(key)
		}
		if err != nil {
			return told("release", resource, err)
		}
		ops := append(seen.deletePulses(), &zk.SetDataRequest{Path: seen.path, Data: []byte("released"), Version: 0})
		err = s.conn.multi(ctx, ops...)
		if err == nil {
			s.forget(key)
			return nil
		}
		// A pulse ended or was added: look again.
		if !conflict(err) {
			return told("release", resource, err)
		}
	}
}

// Get implements [lease.Store]. Remaining is zero, here and in refusals:
// ZooKeeper tells nobody how long a session has.
func (s *Store) Get(ctx context.Context, resource string) (lease.Observation, error) {
	seen, err := s.look(ctx, resource)
	if err != nil {
		return lease.Observation{}, told("get", resource, err)
	}
	o := lease.Observation{Resource: resource, Token: seen.token}
	if seen.held() {
		o.Holder = seen.holder
	}
	return o, nil
}

// Delete removes the lease of resource as an operator would: it is free at once.
// Tokens go on rising, since they are the ensemble's own count of changes.
func (s *Store) Delete(ctx context.Context, resource string) error {
	for {
		seen, err := s.look(ctx, resource)
		if err != nil || !seen.exists {
			return told("delete", resource, err)
		}
		ops := seen.deletePulses()
		if seen.path != "" {
			ops = append(ops, &zk.DeleteRequest{Path: seen.path, Version: -1})
		}
		err = s.conn.multi(ctx, append(ops, &zk.DeleteRequest{Path: s.record(resource), Version: -1})...)
		if err == nil || !conflict(err) {
			return told("delete", resource, err)
		}
	}
}

// acquire gives the token of holder's tenure, new or not.
func (s *Store) acquire(ctx context.Context, resource string, holder lease.Holder, timeout time.Duration) (lease.Token, error) {
	var conn *session.Conn
	defer func() {
		if conn != nil { // opened for nothing
			conn.End(ctx)
		}
	}()
	var tried sight // where a session ended under an attempt
	var unknown error
	for {
		seen, err := s.look(ctx, resource)
		if err == nil && unknown != nil && seen.set != tried.set {
			// The attempt may be what has set it, and somebody may have seen a
			// tenure that ended at once.
			return 0, unknown
		}
		unknown = nil
		switch {
		case err != nil:
			return 0, err
		case seen.held() && seen.holder != holder:
			return 0, &lease.HeldError{Resource: resource, Holder: seen.holder, Token: seen.token}
		case seen.held():
			err := s.keep(ctx, tenureKey{resource, holder, seen.token}, timeout, lease.OpAcquire)
			if errors.Is(err, lease.ErrNotHeld) {
				continue // it has just ended: a new ownership
			}
			return seen.token, err
		case seen.exists && seen.path == "":
			if err := s.conn.delete(ctx, s.record(resource), seen.version); err != nil && !conflict(err) {
				return 0, err
			}
			continue
		}
		if conn == nil {
			if conn, err = s.open(ctx, resource, timeout, lease.OpAcquire); err != nil {
				return 0, err
			}
		}
		tenure := s.record(resource) + "/" + tenurePrefix + rand.Text()
		p := newPulse(tenure, timeout, conn.Session)
		ops, at := s.takeOver(seen, resource, holder, p)
		stats, err := s.multi(ctx, conn, ops...)
		over, isOver := errors.AsType[*overError](err)
		switch {
		case err == nil:
			token := lease.Token(stats[at].Mzxid)
			s.remember(tenureKey{resource, holder, token}, p)
			conn.Close()
			conn = nil
			return token, nil
		case !seen.exists && errors.Is(err, zk.ErrNoNode):
			if err := s.conn.makeAll(ctx, s.opts.Root, s.opts.ACL); err != nil {
				return 0, err
			}
		case isOver:
			// Each attempt that takes effect sets the record: whether this one has
			// can be seen, unless an operator deletes the lease meanwhile, and
			// nothing of it is still on its way.
			tried, unknown, conn = seen, over, nil
		case errors.Is(err, zk.ErrSessionExpired):
			conn = nil // nothing was made
		case !conflict(err):
			// It may have taken effect: the session must not be ended.
			conn.Close()
			conn = nil
			return 0, err
		}
	}
}

// takeOver is the multi that begins p's tenure where seen is how things stood,
// and which of its operations tells the token: each node that it makes or sets
// bears the same zxid, and the server gives that only for what is set.
func (s *Store) takeOver(seen sight, resource string, holder lease.Holder, p *pulse) (ops []any, token int) {
	record := &zk.SetDataRequest{Path: s.record(resource), Data: encodeRecord(p.tenure, holder), Version: seen.version}
	if seen.exists {
		// No other tenure's node ever bears the name, and it is empty only if
		// nothing keeps it: to delete it proves that the tenure has ended, and
		// was the latest.
		ops = append(seen.deletePulses(), &zk.DeleteRequest{Path: seen.path, Version: seen.ended})
	} else {
		ops = append(ops, &zk.CreateRequest{Path: record.Path, Acl: s.opts.ACL})
	}
	return append(ops, record,
		&zk.CreateRequest{Path: p.tenure, Acl: s.opts.ACL},
		&zk.CreateRequest{Path: p.path, Acl: s.opts.ACL, Flags: zk.FlagEphemeral}), len(ops)
}

// sessionTimeout is ttl in the unit of sessions, rounded up.
func sessionTimeout(ttl time.Duration) (time.Duration, bool) {
	const unit = time.Millisecond
	if ttl <= 0 || ttl > math.MaxInt32*unit {
		return 0, false
	}
	return (ttl + unit - 1) / unit * unit, true
}

// told is err as the caller gets it: a refusal as it is, anything else, whose
// outcome is unknown, with what was asked.
func told(op, resource string, err error) error {
	if err == nil || lease.Refusal(err) != lease.CodeNone {
		return err
	}
	return fmt.Errorf("lease %q: zookeeper: %s: %w", resource, op, err)
}
