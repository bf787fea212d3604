package objectstore_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3bolt"

	"fencepost/impl/objectstore"
)

const bucket = "fencepost"

// server is an S3 server in this process, with its objects in a file.
type server struct {
	t       testing.TB
	file    string
	addr    string
	closeIt func() error
	http    *http.Server
	done    chan struct{}
	calls   sync.Mutex // held by each request, and by who closes the file
}

func startServer(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, file: filepath.Join(t.TempDir(), "objects"), addr: "127.0.0.1:0"}
	if err := s.start(true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *server) start(fresh bool) error {
	db, err := openBolt(s.file)
	if err != nil {
		return err
	}
	backend := s3bolt.New(db)
	if fresh {
		if err := backend.CreateBucket(bucket); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	s.addr, s.closeIt, s.done = l.Addr().String(), db.Close, make(chan struct{})
	handler := gofakes3.New(backend).Server()
	s.http = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// One at a time: s3bolt answers from the mapped file after its transaction
		// has ended, when the next writer may move or overwrite that.
		s.calls.Lock()
		defer s.calls.Unlock()
		handler.ServeHTTP(w, r)
	})}
	go func() {
		defer close(s.done)
		s.http.Serve(l) // until stop closes it
	}()
	return nil
}

// stop cuts every connection, in the middle of whatever it is about.
func (s *server) stop() {
	s.http.Close()
	<-s.done
	s.calls.Lock()
	defer s.calls.Unlock()
	s.closeIt()
}

func (s *server) restart(context.Context) error {
	s.stop()
	return s.start(false)
}

func (s *server) client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + s.addr),
		Region:       "us-east-1",
		UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

func mustStore(t testing.TB, o objectstore.Objects, opts objectstore.Options) *objectstore.Store {
	t.Helper()
	s, err := objectstore.New(o, bucket, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
