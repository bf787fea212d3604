package nats

import (
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
