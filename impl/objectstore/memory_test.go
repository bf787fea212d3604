package objectstore_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"io"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// memory is a bucket for fake time. Its ETags are made of the content.
type memory struct {
	mu     sync.Mutex
	bodies map[string][]byte
}

func newMemory() *memory { return &memory{bodies: map[string][]byte{}} }

func etag(body []byte) string {
	sum := md5.Sum(body)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func refusal(status int, code string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code},
	}
}

func (m *memory) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, ok := m.bodies[*in.Key]
	if !ok {
		return nil, refusal(404, "NoSuchKey")
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(body)), ETag: aws.String(etag(body))}, ctx.Err()
}

func (m *memory) PutObject(ctx context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, ok := m.bodies[*in.Key]
	if in.IfNoneMatch != nil && ok || in.IfMatch != nil && (!ok || *in.IfMatch != etag(before)) {
		return nil, refusal(412, "PreconditionFailed")
	}
	m.bodies[*in.Key] = body
	return &s3.PutObjectOutput{ETag: aws.String(etag(body))}, nil
}

func (m *memory) keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	for k := range m.bodies {
		keys = append(keys, k)
	}
	return keys
}

func (m *memory) delete(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.bodies, key)
}
