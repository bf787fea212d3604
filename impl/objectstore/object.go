package objectstore

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"fencepost/impl/lease"
)

// state is a lease as its object has it: all but the instant of the lapse.
type state struct {
	lease.Durable
	seq   uint64 // of the write, from 1
	nonce string // of the write
}

// object is the JSON of a state.
type object struct {
	Token  uint64 `json:"token"`
	Holder string `json:"holder,omitempty"`
	TTL    string `json:"ttl,omitempty"`
	Status string `json:"status"`
	Seq    uint64 `json:"seq"`
	Nonce  string `json:"nonce"`
}

// next is what to write after s so that d holds. No two writes have the same
// content, whatever they say about the lease.
func (s state) next(d lease.Durable) state {
	return state{Durable: d, seq: s.seq + 1, nonce: rand.Text()}
}

func (s state) encode() ([]byte, error) {
	o := object{Token: uint64(s.Token), Holder: s.Holder.String(), Status: s.Status.String(), Seq: s.seq, Nonce: s.nonce}
	if s.TTL > 0 {
		o.TTL = s.TTL.String()
	}
	return json.Marshal(o)
}

func decode(key string, body []byte) (state, error) {
	bad := func(why string, err error) (state, error) {
		return state{}, &ObjectError{Key: key, Reason: fmt.Sprintf("it is no lease of fencepost's: %s: %v", why, err)}
	}
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return bad("JSON", err)
	}
	s := state{Durable: lease.Durable{Token: lease.Token(o.Token)}, seq: o.Seq, nonce: o.Nonce}
	var err error
	if s.Holder, err = lease.ParseHolder(o.Holder); err != nil {
		return bad("holder", err)
	}
	if o.TTL != "" {
		if s.TTL, err = time.ParseDuration(o.TTL); err != nil {
			return bad("ttl", err)
		}
	}
	for _, s.Status = range []lease.Status{lease.Free, lease.Running, lease.Lapsed} {
		if s.Status.String() == o.Status {
			break
		}
	}
	held := s.Status != lease.Free
	if s.Status.String() != o.Status || o.Nonce == "" || o.Seq == 0 || held && (s.Holder.IsZero() || s.TTL <= 0 || s.Token == 0) {
		return bad("fields", fmt.Errorf("%+v makes no sense", o))
	}
	return s, nil
}
