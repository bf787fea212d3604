package nats

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fencepost/impl/lease"
)

// value is a lease as its key keeps it. What it leaves out is what the server
// adds to each message: the revision, and the time at which it was stored.
type value struct {
	Holder string `json:"holder"`
	// Token is 0 in the write that began the tenure, whose revision it is.
	Token lease.Token `json:"token,omitempty"`
	// TTL, in nanoseconds, counts from when the server stored the message.
	TTL time.Duration `json:"ttl"`
	// Until is an instant of the server's, in nanoseconds since 1970, before
	// which the tenure does not end either: where an earlier write had put its
	// end.
	Until time.Duration `json:"until,omitempty"`
	// Ended is "released" or "lapsed".
	Ended string `json:"ended,omitempty"`
}

const (
	released = "released"
	lapsed   = "lapsed"
)

// state is a lease as it was read, and what a write on top of it must expect.
type state struct {
	lease.Record
	revision uint64        // 0: the key is not there
	stored   time.Duration // by the server's clock, since 1970
}

// Key is the key of resource in the bucket: resource itself where that can be a
// key, else "fencepost-" and its SHA-256.
func Key(resource string) string {
	if keys.MatchString(resource) && !strings.Contains(resource, "..") && !strings.HasPrefix(resource, ".") && !strings.HasSuffix(resource, ".") {
		return resource
	}
	sum := sha256.Sum256([]byte(resource))
	return "fencepost-" + hex.EncodeToString(sum[:])
}

var keys = regexp.MustCompile(`^[-/_=.a-zA-Z0-9]+$`)

// stateOf reads what message m says of a lease. A deleted one is a lease that
// nobody ever held: which token was the last is not known then.
func stateOf(m *jetstream.RawStreamMsg, offset time.Duration) (state, error) {
	s := state{revision: m.Sequence, stored: sinceEpoch(m.Time)}
	if deleted(m) {
		return s, nil
	}
	v, err := parse(m.Data)
	if err != nil {
		return state{}, err
	}
	if s.Holder, err = lease.ParseHolder(v.Holder); err != nil {
		return state{}, err
	}
	if s.Token = v.Token; s.Token == 0 {
		s.Token = lease.Token(m.Sequence)
	}
	s.TTL = v.TTL
	switch v.Ended {
	case released:
		s.Status = lease.Free
	case lapsed:
		s.Status, s.Expires = lease.Lapsed, v.Until
	default:
		s.Status, s.Expires = lease.Running, later(max(v.Until, later(s.stored, v.TTL)), offset)
	}
	return s, nil
}

func parse(data []byte) (value, error) {
	var v value
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("the key holds no lease: %w; use a bucket for leases alone", err)
	}
	return v, nil
}

func deleted(m *jetstream.RawStreamMsg) bool {
	return m.Header.Get("KV-Operation") != "" || m.Header.Get(jetstream.MarkerReasonHeader) != ""
}

// after is the value that makes next of s, by a write for ttl. Where a tenure
// goes on, the end that it had goes along.
func (s state) after(next lease.Record, fresh bool, ttl, offset time.Duration) value {
	v := value{Holder: next.Holder.String(), Token: next.Token, TTL: ttl}
	switch {
	case fresh:
		v.Token = 0
	case next.Status == lease.Free:
		v.Ended = released
	case next.Status == lease.Lapsed:
		v.Ended, v.Until = lapsed, s.Expires
	default:
		v.Until = s.Expires - offset
	}
	return v
}

func sinceEpoch(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }

// later saturates: a TTL of centuries is for ever.
func later(t, d time.Duration) time.Duration {
	if sum := t + d; sum >= t {
		return sum
	}
	return 1<<63 - 1
}
