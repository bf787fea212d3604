package objectstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// Storage is a [fence.KV] in one object: the highest token, and all values. It is
// for a little state. Whatever is large goes into objects of its own, each
// written once under a key that nobody else uses, and its key in here: then it
// is the name that is fenced.
//
// What remembers the highest token is the object. Fence creates it where it is not
// there, and Write does not: where an operator has deleted it, a leader of the
// past writes nothing until it fences anew.
type Storage struct {
	bucket bucket
	key    string
}

var _ fence.KV = (*Storage)(nil)

// NewStorage is the storage in the object under key, in a bucket that exists.
func NewStorage(objects Objects, bucketName, key string) *Storage {
	return &Storage{bucket{objects, bucketName}, key}
}

// data is the JSON of a storage's object. Without the nonce a write could give
// back an ETag that somebody saw before, and let their write land: many stores
// make it of the content alone.
type data struct {
	Token  uint64            `json:"token"`
	Values map[string][]byte `json:"values,omitempty"`
	Nonce  string            `json:"nonce"`
}

// Fence implements [fence.KV]: once it has returned nil no write with a lower
// token lands. The refusal is a *[fence.StaleTokenError]; an *[ObjectError] says
// that nothing was done.
func (s *Storage) Fence(ctx context.Context, token lease.Token) error {
	return s.change(ctx, token, true, func(map[string][]byte) {})
}

// Write lands value under key unless a higher token was seen. Its refusals are
// those of Fence; where the object is not there it is an *[ObjectError].
func (s *Storage) Write(ctx context.Context, token lease.Token, key, value string) error {
	return s.change(ctx, token, false, func(m map[string][]byte) { m[key] = []byte(value) })
}

// Read gives the value under key. Where the object is not there, nothing is.
func (s *Storage) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	d, _, err := s.read(ctx)
	if err != nil && !errors.Is(err, errMissing) {
		return "", false, fmt.Errorf("object %q: read: %w", s.key, err)
	}
	v, ok := d.Values[key]
	return string(v), ok, nil
}

// change writes the object on the condition that token may, and that nobody else
// has written it meanwhile.
func (s *Storage) change(ctx context.Context, token lease.Token, create bool, change func(map[string][]byte)) error {
	for {
		seen, etag, err := s.read(ctx)
		missing := errors.Is(err, errMissing)
		if err != nil && !missing {
			return fmt.Errorf("object %q: nothing done: %w", s.key, err)
		}
		guard, ok := fence.Guard{Highest: lease.Token(seen.Token)}.Admit(token)
		switch {
		case !ok:
			return &fence.StaleTokenError{Token: token, Highest: lease.Token(seen.Token)}
		case missing && !create:
			return &ObjectError{Key: s.key, Reason: "it is not there, and Write does not create it: nothing done; call Fence first"}
		}
		next := data{Token: uint64(guard.Highest), Values: maps.Clone(seen.Values), Nonce: rand.Text()}
		if next.Values == nil {
			next.Values = map[string][]byte{}
		}
		change(next.Values)
		body, err := json.Marshal(next)
		if err != nil {
			return fmt.Errorf("object %q: nothing done: %w", s.key, err)
		}
		_, err = s.bucket.put(ctx, s.key, body, etag)
		if errors.Is(err, errConflict) {
			// A copy of the same request may have been what it conflicts with.
			if now, _, failed := s.read(ctx); failed != nil || now.Nonce != next.Nonce {
				continue
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("object %q: outcome unknown: %w", s.key, err)
		}
		return nil
	}
}

func (s *Storage) read(ctx context.Context) (data, string, error) {
	body, etag, err := s.bucket.get(ctx, s.key)
	if err != nil {
		return data{}, "", err
	}
	var d data
	if err := json.Unmarshal(body, &d); err != nil || d.Nonce == "" || d.Token == 0 {
		return data{}, "", &ObjectError{Key: s.key, Reason: "it is no storage of fencepost's"}
	}
	return d, etag, nil
}
