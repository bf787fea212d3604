package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/nats-io/nats.go/jetstream"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// Storage is a [fence.KV] in one key of a bucket: the highest token it has seen,
// and the data, in one JSON value. So each change is one update by revision, and
// no write of a lower token lands beside the comparison. With a key for each
// datum there would be no such thing: JetStream compares the revision of the key
// that is written, and of no other.
//
// It is for a little state, as much as one message may carry (1 MiB by default,
// a third more than the values, which it keeps as base64). Whoever deletes the
// key deletes the highest token too, and lets leaders of the past write.
//
// All methods are safe for concurrent use.
type Storage struct {
	bucket bucket
	key    string
}

var _ fence.KV = (*Storage)(nil)

// NewStorage is the storage under the key for name (see [Key]) in a bucket as
// [CreateBucket] makes it, best not the one with the leases. The error is that
// of [New].
func NewStorage(ctx context.Context, js jetstream.JetStream, bucket, name string) (*Storage, error) {
	b, err := openBucket(ctx, js, bucket)
	if err != nil {
		return nil, err
	}
	return &Storage{bucket: b, key: Key(name)}, nil
}

// content is what the key of a storage holds.
type content struct {
	Highest lease.Token       `json:"token"`
	Data    map[string][]byte `json:"data"`
}

// Fence implements [fence.KV]. The refusal is a *[fence.StaleTokenError].
func (s *Storage) Fence(ctx context.Context, token lease.Token) error {
	return s.change(ctx, "fence", token, func(map[string][]byte) {})
}

// Write lands value under key, which must be UTF-8, unless a higher token was
// seen. The refusal is a *[fence.StaleTokenError].
func (s *Storage) Write(ctx context.Context, token lease.Token, key, value string) error {
	if !utf8.ValidString(key) {
		return fmt.Errorf("storage %q: write: nothing done: the key %q is not UTF-8", s.key, key)
	}
	return s.change(ctx, "write", token, func(data map[string][]byte) { data[key] = []byte(value) })
}

// Read gives the value that landed last under key.
func (s *Storage) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	c, _, err := s.read(ctx)
	if err != nil {
		return "", false, fmt.Errorf("storage %q: read: %w", s.key, err)
	}
	data, ok := c.Data[key]
	return string(data), ok, nil
}

// change updates the key, on the condition that token may and that nobody else
// does meanwhile. Each conflict is somebody else's write, so that all together
// get on; ctx bounds how often.
func (s *Storage) change(ctx context.Context, what string, token lease.Token, do func(map[string][]byte)) error {
	for {
		c, revision, err := s.read(ctx)
		if err != nil {
			return fmt.Errorf("storage %q: %s: nothing done: %w", s.key, what, err)
		}
		guard, ok := fence.Guard{Highest: c.Highest}.Admit(token)
		if !ok {
			return &fence.StaleTokenError{Token: token, Highest: c.Highest}
		}
		c.Highest = guard.Highest
		do(c.Data)
		data, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("storage %q: %s: nothing done: %w", s.key, what, err)
		}
		_, err = s.bucket.write(ctx, s.key, revision, data)
		switch {
		case errors.Is(err, errConflict):
		case err != nil:
			return fmt.Errorf("storage %q: %s: outcome unknown: %w", s.key, what, err)
		default:
			return nil
		}
	}
}

func (s *Storage) read(ctx context.Context) (content, uint64, error) {
	m, _, err := s.bucket.read(ctx, s.key)
	c := content{Data: map[string][]byte{}}
	if err != nil || m == nil {
		return c, 0, err
	}
	if deleted(m) {
		return c, m.Sequence, nil
	}
	if err := json.Unmarshal(m.Data, &c); err != nil {
		return c, 0, fmt.Errorf("the key holds something else: %w", err)
	}
	if c.Data == nil {
		c.Data = map[string][]byte{}
	}
	return c, m.Sequence, nil
}
