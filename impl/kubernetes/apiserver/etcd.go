package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd gives an etcd of one node that keeps its data in dir, and where to
// reach it. It listens on sockets in the working directory, so that it needs no
// port: etcd takes the host of a URL for the name of one.
func startEtcd(ctx context.Context, dir string) (*embed.Etcd, string, error) {
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel = dir, "error"
	client, peer := url.URL{Scheme: "unix", Host: "client:0"}, url.URL{Scheme: "unix", Host: "peer:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, client.String(), nil
	case <-ctx.Done():
		etcd.Close()
		return nil, "", fmt.Errorf("etcd is not ready: %w", context.Cause(ctx))
	case <-etcd.Server.StopNotify():
		etcd.Close()
		return nil, "", errors.New("etcd has stopped before it was ready")
	}
}
