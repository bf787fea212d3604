package zookeeper

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// long is more than anything here takes, on the busiest machine.
const long = 10 * time.Second

// greeting grants session 7 for three seconds, with a password of 16 bytes.
var greeting = append([]byte{0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0x0b, 0xb8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 16}, make([]byte, 16)...)

// mute takes what is written, and answers a first packet at most.
type mute struct {
	net.Conn // one end of a pipe
	writes   atomic.Int32
	fails    int32 // which write fails, and all after it; none if 0
	written  chan struct{}
}

func newMute(t *testing.T, greets bool, fails int32) *mute {
	here, there := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if greets {
			if _, err := io.ReadFull(there, make([]byte, 48)); err != nil {
				return
			}
			there.Write(greeting)
		}
		io.Copy(io.Discard, there)
	}()
	t.Cleanup(func() { here.Close(); there.Close(); <-done })
	return &mute{Conn: here, fails: fails, written: make(chan struct{}, 100)}
}

func (m *mute) Write(b []byte) (int, error) {
	if n := m.writes.Add(1); m.fails > 0 && n >= m.fails {
		return 0, errors.New("broken")
	}
	n, err := m.Conn.Write(b)
	m.written <- struct{}{}
	return n, err
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(long):
		t.Errorf("%s: still waiting after %v", what, long)
	}
}

// A call that is on its way while the store is closed, on a connection that
// breaks, has brought the library's loop to a halt for ever: it had three answers
// to give where there was room for two. Which answers come is drawn by lot, so
// that it takes a few stores to see it.
func TestTheLibrarysLoopEndsWhenAWriteFailsDuringClose(t *testing.T) {
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			server := newMute(t, true, 3) // the greeting and the farewell pass
			c, err := connect(Options{Servers: []string{"server:1"}, Dial: func(context.Context, string, string) (net.Conn, error) {
				return server, nil
			}}.withDefaults())
			if err != nil {
				t.Error(err)
				return
			}
			await(t, "the greeting", server.written)
			for c.zk.SessionID() == 0 {
				time.Sleep(time.Millisecond)
			}
			closed := make(chan struct{})
			go func() { defer close(closed); c.close() }()
			await(t, "the farewell", server.written)
			for range 20 { // as a call would that has just begun
				c.zk.Get("/x")
			}
			await(t, "close", closed)
			await(t, "the library's loop", c.gone)
		})
	}
	all.Wait()
}

func TestCloseIsBoundedWhateverTheServerDoes(t *testing.T) {
	released, release := context.WithCancel(context.Background())
	t.Cleanup(release)
	for _, test := range []struct {
		name string
		dial func(*testing.T, context.Context) (net.Conn, error)
		gone bool // nothing runs on after Close
	}{
		{"refuses", func(*testing.T, context.Context) (net.Conn, error) { return nil, errors.New("refused") }, true},
		{"is not reached", func(_ *testing.T, ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, true},
		{"never greets", func(t *testing.T, _ context.Context) (net.Conn, error) { return newMute(t, false, 0), nil }, true},
		{"never answers", func(t *testing.T, _ context.Context) (net.Conn, error) { return newMute(t, true, 0), nil }, true},
		{"breaks", func(t *testing.T, _ context.Context) (net.Conn, error) { return newMute(t, true, 2), nil }, true},
		{"is dialed by what heeds no context", func(*testing.T, context.Context) (net.Conn, error) {
			<-released.Done()
			return nil, released.Err()
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 1)
			s, err := Open(Options{Servers: []string{"server:1"}, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				select {
				case asked <- struct{}{}:
				default:
				}
				return test.dial(t, ctx)
			}})
			if err != nil {
				t.Fatal(err)
			}
			await(t, "the first dial", asked)
			calls := sync.WaitGroup{}
			for range 40 { // more than the library has room for
				calls.Go(func() { s.Get(released, "x") })
			}
			closed, start := make(chan struct{}), time.Now()
			go func() { defer close(closed); s.Close() }()
			await(t, "Close", closed)
			t.Logf("Close took %v", time.Since(start))
			if test.gone {
				await(t, "the rest", s.conn.gone)
				calls.Wait()
			}
		})
	}
}
