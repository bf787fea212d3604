package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fencepost/impl/lease"
)

// CreateBucket makes a key-value bucket as [New] and [NewStorage] need it, with
// so many replicas (1, 3 or 5), or changes one that is there into it. Tools such
// as "nats kv" know it as one of theirs. What jetstream's own CreateKeyValue
// makes would not do: it lets any replica answer reads, which may be behind.
func CreateBucket(ctx context.Context, js jetstream.JetStream, name string, replicas int) error {
	_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name:              "KV_" + name,
		Subjects:          []string{"$KV." + name + ".>"},
		MaxMsgsPerSubject: 1,
		MaxBytes:          -1,
		MaxMsgs:           -1,
		MaxConsumers:      -1,
		MaxMsgSize:        -1,
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Replicas:          replicas,
		AllowRollup:       true,
		DenyDelete:        true,
	})
	if err != nil {
		return fmt.Errorf("bucket %q: create: outcome unknown: %w", name, err)
	}
	return nil
}

// bucket is the part of JetStream that is needed here: a read by the leader of
// the stream, and a write on condition.
type bucket struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	name   string
}

func openBucket(ctx context.Context, js jetstream.JetStream, name string) (bucket, error) {
	stream, err := js.Stream(ctx, "KV_"+name)
	if err != nil {
		return bucket{}, fmt.Errorf("bucket %q: %w; CreateBucket makes one", name, err)
	}
	return bucket{js, stream, name}, sound(name, stream.CachedInfo().Config)
}

// sound refuses a bucket in which a lease could end, or be read, other than by
// the rules.
func sound(name string, c jetstream.StreamConfig) error {
	reason := ""
	switch {
	case c.AllowDirect:
		reason = "lets any replica answer reads (AllowDirect), which may be behind"
	case c.MaxAge != 0:
		reason = "removes keys after a time of its own (TTL)"
	case c.Discard != jetstream.DiscardNew:
		reason = "removes old keys when it is full (Discard)"
	case c.Storage != jetstream.FileStorage:
		reason = "keeps nothing over a restart (memory storage)"
	case c.MaxMsgsPerSubject != 1:
		reason = "keeps a history, which nobody reads"
	case c.Mirror != nil || len(c.Sources) > 0:
		reason = "is a copy of another, with a clock and revisions of its own"
	default:
		return nil
	}
	return &lease.ConfigError{Field: "bucket", Reason: fmt.Sprintf("%q %s: make one with CreateBucket", name, reason)}
}

func (b bucket) subject(key string) string { return "$KV." + b.name + "." + key }

// read gives the message under key, nil where there is none, and the time that
// the stream's leader had after it had read that.
func (b bucket) read(ctx context.Context, key string) (*jetstream.RawStreamMsg, time.Duration, error) {
	m, err := b.stream.GetLastMsgForSubject(ctx, b.subject(key))
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, 0, err
	}
	info, err := b.stream.Info(ctx)
	if err != nil {
		return nil, 0, err
	}
	return m, sinceEpoch(info.TimeStamp), sound(b.name, info.Config)
}

// errConflict says that nothing was written, since the key is not as it was
// read.
var errConflict = errors.New("conflict")

// write puts data under key if its revision is still last, 0 for a key that is
// not there, and gives the new revision.
func (b bucket) write(ctx context.Context, key string, last uint64, data []byte) (uint64, error) {
	ack, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: b.subject(key), Data: data}, jetstream.WithExpectLastSequencePerSubject(last))
	if refused, ok := errors.AsType[*jetstream.APIError](err); ok && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return 0, errConflict
	}
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}
