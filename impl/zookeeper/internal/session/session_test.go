package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/zookeeper/internal/session"
)

// peer is the other end of a connection, which answers each packet with the next
// of answers.
func peer(t *testing.T, answers ...[]byte) *session.Dialer {
	t.Helper()
	return &session.Dialer{Servers: []string{"server"}, Patience: time.Minute, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer there.Close()
			for _, a := range answers {
				var size [4]byte
				if _, err := io.ReadFull(there, size[:]); err != nil {
					return
				}
				if _, err := io.CopyN(io.Discard, there, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
					return
				}
				there.Write(a)
			}
		}()
		t.Cleanup(func() { here.Close(); <-done })
		return here, nil
	}}
}

// framed is a packet of 32-bit words.
func framed(words ...int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4*len(words)))
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, uint32(w))
	}
	return b
}

// greeting grants session 7 for 1500 ms, with a password of four bytes.
var greeting = framed(0, 1500, 0, 7, 4, 0x61626364)

func TestTheServerSaysHowLongASessionLasts(t *testing.T) {
	c, err := peer(t, greeting).Open(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if c.ID != 7 || c.Timeout != 1500*time.Millisecond || string(c.Password) != "abcd" {
		t.Errorf("%+v", c.Session)
	}
}

func TestASessionThatHasEndedIsNotTakenUp(t *testing.T) {
	_, err := peer(t, framed(0, 0, 0, 0, 0)).Attach(t.Context(), session.Session{ID: 7, Timeout: time.Second})
	if !errors.Is(err, zk.ErrSessionExpired) {
		t.Error(err)
	}
}

func TestAMultiIsAllOrNothing(t *testing.T) {
	ops := []any{&zk.CheckVersionRequest{Path: "/a"}, &zk.DeleteRequest{Path: "/b"}}
	head := []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0} // to request 1, zxid 9, no error
	result := func(kind, code int32) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(kind))
		b = binary.BigEndian.AppendUint32(append(b, 0), uint32(code))
		if kind == -1 {
			b = binary.BigEndian.AppendUint32(b, uint32(code))
		}
		return b
	}
	end := []byte{255, 255, 255, 255, 1, 255, 255, 255, 255}
	packet := func(parts ...[]byte) []byte {
		var b []byte
		for _, p := range parts {
			b = append(b, p...)
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	for _, test := range []struct {
		name   string
		answer []byte
		want   error // nil: any that is no refusal
		made   bool
	}{
		{name: "made", answer: packet(head, result(13, 0), result(2, 0), end), made: true},
		{name: "the second refused", answer: packet(head, result(-1, 0), result(-1, -101), end), want: zk.ErrNoNode},
		{name: "the first refused", answer: packet(head, result(-1, -103), result(-1, -2), end), want: zk.ErrBadVersion},
		{name: "the session has ended", answer: framed(1, 0, 9, -112), want: zk.ErrSessionExpired},
		{name: "an answer too few", answer: packet(head, result(13, 0), end)},
		{name: "cut off", answer: packet(head, result(13, 0))},
		{name: "to another request", answer: framed(2, 0, 9, 0)},
		{name: "no header", answer: framed(1)},
		{name: "too large", answer: []byte{127, 0, 0, 0}},
		{name: "closed", answer: nil},
	} {
		c, err := peer(t, greeting, test.answer).Open(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Multi(t.Context(), ops...)
		_, refused := errors.AsType[*session.MultiError](err)
		switch {
		case test.made != (err == nil):
			t.Errorf("%s: %v", test.name, err)
		case test.want != nil && !errors.Is(err, test.want):
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		case test.want == nil && refused:
			t.Errorf("%s: %v is told as a refusal", test.name, err)
		}
	}
}

func TestTheEndOfAContextEndsACall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dialer := &session.Dialer{Servers: []string{"silent", "silent"}, Patience: time.Minute, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			io.ReadFull(there, make([]byte, 8)) // it has begun to send
			cancel()
		}()
		t.Cleanup(func() { there.Close() })
		return here, nil
	}}
	if _, err := dialer.Open(ctx, time.Second); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
