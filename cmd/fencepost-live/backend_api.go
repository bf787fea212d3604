package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"

	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
	"fencepost/impl/nats"
	"fencepost/impl/objectstore"
)

// parameters are those of u, which may be none but names.
func parameters(u *url.URL, names ...string) (map[string]string, error) {
	values := map[string]string{}
	for name, value := range u.Query() {
		known := slices.Contains(names, name)
		switch {
		case !known:
			return nil, fmt.Errorf("parameter %q: %s takes %s", name, u.Scheme, cmp.Or(strings.Join(names, ", "), "none"))
		case len(value) != 1:
			return nil, fmt.Errorf("parameter %q is there %d times", name, len(value))
		}
		values[name] = value[0]
	}
	return values, nil
}

// openKubernetes is for kubernetes://NAMESPACE, in a pod, or with
// ?kubeconfig=FILE.
func openKubernetes(_ context.Context, u *url.URL) (lease.Store, func(), error) {
	p, err := parameters(u, "kubeconfig")
	if err != nil {
		return nil, nil, err
	}
	if u.Host == "" {
		return nil, nil, errors.New("name a namespace: kubernetes://namespace")
	}
	config, err := clientcmd.BuildConfigFromFlags("", p["kubeconfig"])
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1 // a renewal must not wait its turn in this process
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	store, err := kubernetes.New(leases.Leases(u.Host), kubernetes.Options{})
	return store, func() {}, err
}

// openNATS is for nats://host:port,host:port/BUCKET; the bucket is made with
// ?create=1.
func openNATS(ctx context.Context, u *url.URL) (lease.Store, func(), error) {
	p, err := parameters(u, "create")
	if err != nil {
		return nil, nil, err
	}
	bucket := strings.TrimPrefix(u.Path, "/")
	if u.Host == "" || bucket == "" {
		return nil, nil, errors.New("name the servers and a bucket: nats://host:port/bucket")
	}
	servers := (&url.URL{Scheme: "nats", User: u.User, Host: u.Host}).String()
	conn, err := natsgo.Connect(servers)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(conn)
	if err == nil && p["create"] == "1" {
		err = nats.CreateBucket(ctx, js, bucket, 1)
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	store, err := nats.New(ctx, js, bucket, nats.Options{})
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return store, conn.Close, nil
}

// openS3 is for s3://BUCKET/PREFIX, with the credentials and the region of the
// environment; ?endpoint=https://host is for those that are not Amazon's.
func openS3(ctx context.Context, u *url.URL) (lease.Store, func(), error) {
	p, err := parameters(u, "endpoint", "region")
	if err != nil {
		return nil, nil, err
	}
	if u.Host == "" {
		return nil, nil, errors.New("name a bucket: s3://bucket/prefix/")
	}
	config, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, nil, err
	}
	client := s3.NewFromConfig(config, func(o *s3.Options) {
		if p["region"] != "" {
			o.Region = p["region"]
		}
		if p["endpoint"] != "" {
			o.BaseEndpoint, o.UsePathStyle = aws.String(p["endpoint"]), true
		}
	})
	store, err := objectstore.New(client, u.Host, objectstore.Options{Prefix: strings.TrimPrefix(u.Path, "/")})
	return store, func() {}, err
}
