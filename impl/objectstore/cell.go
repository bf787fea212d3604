package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Objects is what is needed of a *[s3.Client]. Its reads must be strongly
// consistent, and its server must judge a condition and write in one step.
type Objects interface {
	GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// bucket reads and writes whole objects on condition.
type bucket struct {
	objects Objects
	name    string
}

var (
	// errConflict says that nothing was written, since the object is not as it was
	// seen; or that it was, by an earlier copy of the same request.
	errConflict = errors.New("conflict")
	errMissing  = errors.New("no such object")
)

// maxBody bounds what is read: no object of this package is larger, and one that
// is was not written by it.
const maxBody = 64 << 20

// get gives the body of an object and its ETag, or errMissing.
func (b bucket) get(ctx context.Context, key string) (body []byte, etag string, err error) {
	out, err := b.objects.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		if status(err) == http.StatusNotFound && code(err) != "NoSuchBucket" {
			return nil, "", errMissing
		}
		return nil, "", err
	}
	defer out.Body.Close()
	body, err = io.ReadAll(io.LimitReader(out.Body, maxBody))
	if err != nil {
		return nil, "", err
	}
	if etag = aws.ToString(out.ETag); etag == "" {
		return nil, "", errors.New("the server sent no ETag: use one with conditional writes")
	}
	return body, etag, nil
}

// put writes body where the object is still the one of etag, or, with none, where
// there is no object, and gives the new ETag. Any error but errConflict leaves
// the outcome unknown.
//
// The request is sent once: a copy sent by the SDK on its own account would be
// refused because of the first, and deny a write that took effect. Proxies may
// copy it all the same, so a conflict is to be looked into.
func (b bucket) put(ctx context.Context, key string, body []byte, etag string) (string, error) {
	in := &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(body), ContentType: aws.String("application/json")}
	if etag == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &etag
	}
	out, err := b.objects.PutObject(ctx, in, func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
	switch {
	case err == nil && aws.ToString(out.ETag) == "":
		return "", errors.New("the server sent no ETag: use one with conditional writes")
	case err == nil:
		return *out.ETag, nil
	case status(err) == http.StatusPreconditionFailed, code(err) == "ConditionalRequestConflict", code(err) == "NoSuchKey":
		return "", errConflict
	}
	return "", err
}

// status is the HTTP status of the answer that err is, or 0.
func status(err error) int {
	if e, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok {
		return e.HTTPStatusCode()
	}
	return 0
}

// code is the error code of S3 in the answer that err is, or "".
func code(err error) string {
	if e, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// ObjectError says that an object cannot be used as it is. Nothing was done.
type ObjectError struct {
	Key    string
	Reason string
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("object %q: %s; give the package a prefix and keys of its own", e.Key, e.Reason)
}

// ErrRegressed matches a [RegressedError].
var ErrRegressed = errors.New("lease object was deleted or set back")

// RegressedError refuses to touch a lease whose object is gone, or is older than
// what this process has seen: tokens would be issued twice. Nothing was done.
type RegressedError struct {
	Resource string
	Key      string
	Seen     uint64 // the highest token this process has seen
	Found    uint64 // what the object has now; 0 where it is gone
}

func (e *RegressedError) Error() string {
	return fmt.Sprintf("lease %q: its object %q was deleted or set back: its last token is %d, and %d was seen here; call Store.Raise with a token that is at least the highest any storage has seen", e.Resource, e.Key, e.Found, e.Seen)
}

// Is makes errors.Is(err, ErrRegressed) hold.
func (e *RegressedError) Is(target error) bool { return target == ErrRegressed }
