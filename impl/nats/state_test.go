package nats

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fencepost/impl/lease"
)

func message(t *testing.T, data string) state {
	t.Helper()
	h := lease.Holder{Node: "a", Seq: 1, Nonce: 0xaa}
	s, err := stateOf(&jetstream.RawStreamMsg{Sequence: 9, Time: time.Unix(100, 0), Data: []byte(`{"holder":"` + h.String() + `",` + data + `}`)}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The server stamped 100 s, and clocks may be a second apart.
func TestATenureEndsATTLAfterTheStampAndNeverEarlierThanItDid(t *testing.T) {
	for data, want := range map[string]time.Duration{
		`"ttl":5000000000`:                                       106 * time.Second,
		`"ttl":5000000000,"until":104000000000`:                  106 * time.Second,
		`"ttl":5000000000,"until":130000000000`:                  131 * time.Second,
		`"ttl":5000000000,"until":107000000000,"ended":"lapsed"`: 107 * time.Second,
		`"ttl":5000000000,"ended":"released"`:                    0,
		`"ttl":9223372036854775807`:                              1<<63 - 1,
	} {
		if s := message(t, data); s.Expires != want {
			t.Errorf("%s ends at %v, want %v", data, s.Expires, want)
		}
	}
}

func TestTheTokenIsTheRevisionUnlessTheValueHasOne(t *testing.T) {
	for data, want := range map[string]lease.Token{`"ttl":1`: 9, `"ttl":1,"token":4`: 4} {
		if s := message(t, data); s.Token != want {
			t.Errorf("%s has token %d, want %d", data, s.Token, want)
		}
	}
}

// The end goes along without the clocks' offset, which each reader adds again.
func TestARenewalCarriesTheEndThatItMustNotPrecede(t *testing.T) {
	s := message(t, `"ttl":5000000000`)
	next, rep := s.Renew(101*time.Second, lease.Request{Op: lease.OpRenew, Holder: s.Holder, Token: 9, TTL: time.Second})
	if rep.Code != lease.CodeGranted {
		t.Fatal(rep)
	}
	v := s.after(next, false, time.Second, time.Second)
	if v.Until != 105*time.Second || v.TTL != time.Second || v.Token != 9 || v.Ended != "" {
		t.Errorf("%+v", v)
	}
}

// A shorter TTL on what is only remembered, whose end is known at least and not
// at most, is looked up first.
func TestOnlyARenewalThatShortensNothingGoesWithoutALook(t *testing.T) {
	st := message(t, `"ttl":5000000000`)
	var s Store
	s.known.set("r", st)
	for _, c := range []struct {
		req  lease.Request
		want bool
	}{
		{lease.Request{Op: lease.OpRenew, Holder: st.Holder, Token: 9, TTL: 5 * time.Second}, true},
		{lease.Request{Op: lease.OpRenew, Holder: st.Holder, Token: 9, TTL: 4 * time.Second}, false},
		{lease.Request{Op: lease.OpRenew, Holder: st.Holder, Token: 8, TTL: 5 * time.Second}, false},
		{lease.Request{Op: lease.OpRenew, Holder: lease.Holder{Node: "b", Seq: 1}, Token: 9, TTL: 5 * time.Second}, false},
		{lease.Request{Op: lease.OpAcquire, Holder: st.Holder, TTL: 5 * time.Second}, false},
	} {
		if _, _, got := s.remembered(lease.Call{Resource: "r", Request: c.req}); got != c.want {
			t.Errorf("%+v: %t, want %t", c.req, got, c.want)
		}
	}
}

// Each setting that a bucket must have is missed where it is not so, and said to be.
func TestABucketThatIsNotSoundIsRefused(t *testing.T) {
	right := jetstream.StreamConfig{Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, MaxMsgsPerSubject: 1}
	if err := sound("leases", right); err != nil {
		t.Fatalf("one that is: %v", err)
	}
	for _, wrong := range []struct {
		said string
		set  func(*jetstream.StreamConfig)
	}{
		{"AllowDirect", func(c *jetstream.StreamConfig) { c.AllowDirect = true }},
		{"TTL", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"Discard", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{"memory storage", func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }},
		{"a history", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 2 }},
		{"a history", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 }}, // no bound
		{"a copy of another", func(c *jetstream.StreamConfig) { c.Mirror = &jetstream.StreamSource{Name: "KV_other"} }},
		{"a copy of another", func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "KV_other"}} }},
	} {
		c := right
		wrong.set(&c)
		err := sound("leases", c)
		refused, ok := errors.AsType[*lease.ConfigError](err)
		if !ok || refused.Field != "bucket" || !strings.Contains(refused.Reason, wrong.said) || !strings.Contains(refused.Reason, "CreateBucket") {
			t.Errorf("want %q: %v", wrong.said, err)
		}
	}
}
