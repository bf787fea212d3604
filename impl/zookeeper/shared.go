package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/clock"
)

// shared is the store's one lasting connection: it looks, watches and releases.
// No tenure depends on its session, so it may ping.
type shared struct {
	zk     *zk.Conn
	events <-chan zk.Event
	clock  clock.Clock
	ended  context.Context // once the store is to close: nothing new is begun
	end    context.CancelFunc
	cut    context.CancelFunc // of the connection that there is
	shown  chan struct{}      // closed once each credential was, before which nothing is asked
	gone   chan struct{}      // closed once all has ended

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

// sharedTimeout is that of its session. The library takes two thirds of it to
// notice that a server has fallen silent.
const sharedTimeout = 3 * time.Second

// farewell is how long the end of a store waits for a server to take leave, and
// then again for what has been cut off to end.
const farewell = time.Second

var errClosed = errors.New("the store is closed")

func connect(o Options) (*shared, error) {
	if !strings.HasPrefix(o.Root, "/") || strings.HasSuffix(o.Root, "/") {
		return nil, fmt.Errorf("root %q is no path of a node below the topmost", o.Root)
	}
	ended, end := context.WithCancel(context.Background())
	uncut, cut := context.WithCancel(context.Background())
	h := &hosts{clock: o.Clock, done: ended.Done()}
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		dialing, cancel := context.WithTimeout(ended, timeout)
		defer cancel()
		conn, err := o.Dial(dialing, network, address)
		if err != nil {
			return nil, err
		}
		c := &impatient{Conn: conn, logger: o.Logger}
		c.uncut = context.AfterFunc(uncut, func() { conn.Close() })
		return c, nil
	}
	conn, events, err := zk.Connect(o.Servers, sharedTimeout,
		zk.WithHostProvider(h), zk.WithDialer(dial), zk.WithLogInfo(false), zk.WithLogger(logger{o.Logger}))
	if err != nil {
		end()
		cut()
		return nil, err
	}
	c := &shared{zk: conn, events: events, clock: o.Clock, ended: ended, end: end, cut: cut, shown: make(chan struct{}), gone: make(chan struct{})}
	c.start(func() {
		defer close(c.shown)
		for _, a := range o.Auth {
			c.show(a, o.Logger)
		}
	})
	return c, nil
}

// show shows a, until a server has taken it: from then on the library does on
// each connection, but not after one that broke before the answer came.
func (c *shared) show(a Auth, log *slog.Logger) {
	for c.ended.Err() == nil {
		switch err := c.zk.AddAuth(a.Scheme, a.Secret); {
		case err == nil:
			return
		case errors.Is(err, zk.ErrAuthFailed):
			log.Error("credential refused", "scheme", a.Scheme, "err", err)
			return
		}
	}
}

// close ends all, and waits for that, twice the time of a farewell at most. What
// runs on after that waits for a Dial of the caller's, or a connection's Close,
// which has not returned, or for the library, which takes leave for three seconds
// where it has too much to send.
func (c *shared) close() {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	c.end()
	if first {
		go c.leave()
	}
	c.await()
	c.cut()
	c.await()
}

func (c *shared) leave() {
	defer close(c.gone)
	c.zk.Close() // while it has a connection to say farewell on
	c.cut()
	for range c.events { // until the library's loop ends
	}
	c.calls.Wait()
}

// await waits until all has ended, or for the time of a farewell.
func (c *shared) await() {
	t := c.clock.Timer(c.clock.Now() + farewell)
	defer t.Stop()
	select {
	case <-c.gone:
	case <-t.C():
	}
}

// start runs f on a goroutine that close waits for, unless that was before.
func (c *shared) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.calls.Go(f)
	}
	return !c.closed
}

// call runs f, which knows no context, until ctx ends; f itself may go on until
// the connection answers or breaks.
func call[T any](ctx context.Context, c *shared, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	select {
	case <-c.shown:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	answers := make(chan answer, 1)
	if !c.start(func() {
		v, err := f()
		answers <- answer{v, err}
	}) {
		return none, errClosed
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

type node struct {
	data  []byte
	names []string
	stat  zk.Stat
}

func (c *shared) sync(ctx context.Context, path string) error {
	_, err := call(ctx, c, func() (string, error) { return c.zk.Sync(path) })
	return err
}

func (c *shared) get(ctx context.Context, path string) (node, error) {
	return call(ctx, c, func() (node, error) {
		data, stat, err := c.zk.Get(path)
		if err != nil {
			return node{}, err
		}
		return node{data: data, stat: *stat}, nil
	})
}

func (c *shared) children(ctx context.Context, path string) (node, error) {
	return call(ctx, c, func() (node, error) {
		names, stat, err := c.zk.Children(path)
		if err != nil {
			return node{}, err
		}
		return node{names: names, stat: *stat}, nil
	})
}

func (c *shared) delete(ctx context.Context, path string, version int32) error {
	_, err := call(ctx, c, func() (struct{}, error) { return struct{}{}, c.zk.Delete(path, version) })
	return err
}

func (c *shared) multi(ctx context.Context, ops ...any) error {
	_, err := call(ctx, c, func() (struct{}, error) { return struct{}{}, multi(c.zk, ops...) })
	return err
}

// makeAll makes path and what is above it.
func (c *shared) makeAll(ctx context.Context, path string, acl []zk.ACL) error {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		_, err := call(ctx, c, func() (string, error) { return c.zk.Create(path[:i], nil, 0, acl) })
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("making node %s: %w", path[:i], err)
		}
	}
	return nil
}

func parent(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// multi makes all of ops or none. The error is that of the operation which was
// refused, where one was.
func multi(conn *zk.Conn, ops ...any) error {
	answers, err := conn.Multi(ops...)
	for i, a := range answers {
		// What was undone for the sake of another says so in an error of its own.
		if conflict(a.Error) {
			return fmt.Errorf("operation %d: %w", i, a.Error)
		}
	}
	return err
}

// hosts gives the servers in turn. Where none of them answers it waits between
// the rounds a little, not a second as the library does: that is a whole TTL.
type hosts struct {
	clock clock.Clock
	done  <-chan struct{}

	mu      sync.Mutex
	servers []string
	next    int
	tried   int // since the last connection
}

const betweenRounds = 50 * time.Millisecond

func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

func (h *hosts) Len() int { return len(h.servers) }

func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tried >= len(h.servers) {
		h.tried = 0
		t := h.clock.Timer(h.clock.Now() + betweenRounds)
		defer t.Stop()
		select {
		case <-t.C():
		case <-h.done:
		}
	}
	h.tried++
	server = h.servers[h.next%len(h.servers)]
	h.next++
	select {
	case <-h.done:
		return server, true // only then does the library look whether it is closed
	default:
		return server, false
	}
}

func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}

// impatient is a connection on which nobody waits for longer than for a server
// that has fallen silent. The library waits ten times as long for the first
// answer, which a server that is just starting may never give.
type impatient struct {
	net.Conn
	logger *slog.Logger
	uncut  func() bool // it is cut when the store is closed, unless this comes first
}

// Write breaks the connection where it fails, and leaves it to whoever reads to
// find out. Told of it, the library (v1.0.4) answers the request that was sent,
// and answers it again when the connection has ended; one that came while it was
// being closed has an answer already, and there is room for two: its loop hangs
// for ever.
func (c *impatient) Write(b []byte) (int, error) {
	if _, err := c.Conn.Write(b); err != nil {
		c.logger.Debug("connection broken", "err", err)
		c.Conn.Close()
	}
	return len(b), nil
}

func (c *impatient) SetReadDeadline(t time.Time) error {
	if latest := time.Now().Add(sharedTimeout * 2 / 3); t.After(latest) {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *impatient) Close() error {
	c.uncut()
	return c.Conn.Close()
}

type logger struct{ l *slog.Logger }

func (l logger) Printf(format string, args ...any) { l.l.Debug(fmt.Sprintf(format, args...)) }
