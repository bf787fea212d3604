// Package session speaks just enough of ZooKeeper's protocol to keep a session
// by nothing but what is asked on it: open it, attach to it, make a multi, end it.
//
// It must not know leases, nor ever send a ping: the connection of a client
// library pings by itself, and so keeps a session for as long as its process
// lives, whatever the holder in it does. Nor does it keep a connection or start
// a goroutine: a [Session] is a value, good on any server of the ensemble.
//
// Start at [Dialer.Open] and [Dialer.Attach].
package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// Session is what the servers know a session by. Its clock starts anew each
// time that it is attached to, and at each request.
type Session struct {
	ID       int64
	Password []byte
	Timeout  time.Duration // as the server granted it: whole milliseconds
}

// Auth is a credential for access control lists, such as "digest" and "user:secret".
type Auth struct {
	Scheme string
	Secret []byte
}

// Dialer says how the servers are reached.
type Dialer struct {
	Servers []string // host:port
	// Dial connects, as net.Dialer's DialContext does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Patience is how long one server may take to take up a session, before the
	// next is tried. One that is just starting may never answer.
	Patience time.Duration
	Auth     []Auth
}

// Conn is a connection on which a session is attached, for one goroutine.
type Conn struct {
	Session
	net net.Conn
	xid int32
}

// Open makes a new session. The server may grant another timeout than is asked
// for: see [Session].
func (d *Dialer) Open(ctx context.Context, timeout time.Duration) (*Conn, error) {
	return d.Attach(ctx, Session{Password: make([]byte, 16), Timeout: timeout})
}

// Attach goes on with s. In an ensemble it is the leader, whose clock decides
// when a session ends, that answers for it (REVALIDATE): a request or a ping
// that a follower has received is told to the leader only later, and never if
// the follower dies first. The error matches zk.ErrSessionExpired once the
// session has ended.
func (d *Dialer) Attach(ctx context.Context, s Session) (*Conn, error) {
	var errs []error
	for _, server := range d.Servers {
		c, err := d.attach(ctx, server, s)
		if err == nil || errors.Is(err, zk.ErrSessionExpired) || ctx.Err() != nil {
			return c, err
		}
		errs = append(errs, fmt.Errorf("%s: %w", server, err))
	}
	return nil, errors.Join(errs...)
}

func (d *Dialer) attach(ctx context.Context, server string, s Session) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	conn, err := d.Dial(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	c := &Conn{Session: s, net: conn}
	if err := c.greet(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	for _, a := range d.Auth {
		if err := c.auth(ctx, a); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return c, nil
}

// Close drops the connection. The session goes on until its timeout.
func (c *Conn) Close() { c.net.Close() }

// End ends the session, with all that is ephemeral in it, and drops the
// connection.
func (c *Conn) End(ctx context.Context) error {
	defer c.Close()
	_, err := c.call(ctx, c.next(), opClose, nil)
	return err
}

// Multi makes all of ops (*zk.CreateRequest, *zk.DeleteRequest,
// *zk.SetDataRequest, *zk.CheckVersionRequest) or none, and gives what each node
// is then whose data was set: the server says it of no other. A *[MultiError], or one
// that matches zk.ErrSessionExpired, says that none was made; after any other
// error the outcome is unknown, and the connection of no more use.
func (c *Conn) Multi(ctx context.Context, ops ...any) ([]zk.Stat, error) {
	var e encoder
	for _, op := range ops {
		if err := e.op(op); err != nil {
			return nil, err
		}
	}
	e.int(-1)
	e.bool(true)
	e.int(-1)
	body, err := c.call(ctx, c.next(), opMulti, e)
	if err != nil {
		return nil, err
	}
	return (&decoder{b: body}).results(len(ops))
}

func (c *Conn) next() int32 {
	c.xid++
	return c.xid
}

func (c *Conn) greet(ctx context.Context) error {
	var e encoder
	e.int(0)  // protocol version
	e.long(0) // the last zxid seen: any server will do, since nothing is read on it
	e.int(int32(c.Timeout / time.Millisecond))
	e.long(c.ID)
	e.bytes(c.Password)
	answer, err := c.exchange(ctx, e)
	if err != nil {
		return err
	}
	d := decoder{b: answer}
	d.int()
	timeout, id, password := d.int(), d.long(), d.bytes()
	switch {
	case d.err != nil:
		return d.err
	case id == 0 || timeout <= 0:
		return zk.ErrSessionExpired
	}
	c.Session = Session{ID: id, Password: append([]byte(nil), password...), Timeout: time.Duration(timeout) * time.Millisecond}
	return nil
}

func (c *Conn) auth(ctx context.Context, a Auth) error {
	var e encoder
	e.int(0)
	e.text(a.Scheme)
	e.bytes(a.Secret)
	_, err := c.call(ctx, xidAuth, opAuth, e)
	return err
}

// call sends a request and gives the body of its answer.
func (c *Conn) call(ctx context.Context, xid, op int32, body []byte) ([]byte, error) {
	var e encoder
	e.int(xid)
	e.int(op)
	answer, err := c.exchange(ctx, append(e, body...))
	if err != nil {
		return nil, err
	}
	d := decoder{b: answer}
	got, _, code := d.int(), d.long(), d.int()
	switch {
	case d.err != nil:
		return nil, d.err
	case got != xid:
		return nil, fmt.Errorf("answer to request %d instead of %d", got, xid)
	case code != 0:
		return nil, codeError(code)
	}
	return d.b, nil
}

// largest bounds what an answer may claim to be: those to the requests here are
// some hundred bytes.
const largest = 1 << 20

// exchange sends one packet and reads one. When ctx ends the connection is of no
// more use, since an answer may still be on its way.
func (c *Conn) exchange(ctx context.Context, packet []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { c.net.Close() })
	defer stop()
	answer, err := c.roundTrip(packet)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer, err
}

func (c *Conn) roundTrip(packet []byte) ([]byte, error) {
	framed := encoder(make([]byte, 0, 4+len(packet)))
	framed.bytes(packet)
	if _, err := c.net.Write(framed); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(c.net, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > largest {
		return nil, fmt.Errorf("answer of %d bytes", n)
	}
	answer := make([]byte, n)
	_, err := io.ReadFull(c.net, answer)
	return answer, err
}
