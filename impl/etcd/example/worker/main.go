// Command worker is a singleton on etcd: of all that run with the same -resource, one at
// a time works. Its work is to count, in the same etcd, and no count of a
// worker that was deposed lands.
//
//	etcd &
//	go run ./example/worker -name a &
//	go run ./example/worker -name b &
//
// Kill the one that counts with SIGKILL: the other goes on once the lease has
// lapsed, from where the count was. End it with an interrupt, and the other
// goes on at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
)

func main() {
	endpoints := flag.String("endpoints", "127.0.0.1:2379", "of etcd, separated by commas")
	name := flag.String("name", fmt.Sprintf("worker-%d", os.Getpid()), "of this worker, for people to read")
	resource := flag.String("resource", "worker", "what only one works on at a time")
	ttl := flag.Duration("ttl", 5*time.Second, "how long a worker that has died keeps the others out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, strings.Split(*endpoints, ","), *name, *resource, *ttl)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, endpoints []string, name, resource string, ttl time.Duration) (err error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	store := etcd.New(client, etcd.Options{})
	storage := etcd.NewStorage(store, resource, "example/"+resource+"/")
	elector, err := lease.NewElector(store, lease.ElectorConfig{
		Resource: resource,
		Node:     name,
		Timing:   lease.Config{TTL: ttl, MaxDriftRate: 0.01, SafetyMargin: 100 * time.Millisecond},
		Fencers:  []lease.Fencer{storage},
		Logger:   slog.Default(),
	})
	if err != nil {
		return err
	}
	return elector.Run(ctx, func(ctx context.Context, term lease.Term) error {
		fmt.Printf("%s leads under token %d\n", name, term.Token)
		return count(ctx, storage, term.Token)
	})
}

// count counts until ctx ends or a write is refused. The condition of a write is
// checked by etcd, in the transaction that writes: it matters to nobody how
// long the process slept since it last looked whether it leads.
func count(ctx context.Context, storage *etcd.Storage, token lease.Token) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		text, ok, err := storage.Read(ctx, "count")
		if err != nil {
			return err
		}
		n := 0
		if ok {
			if n, err = strconv.Atoi(text); err != nil {
				return err
			}
		}
		if err := storage.Write(ctx, token, "count", strconv.Itoa(n+1)); err != nil {
			return err
		}
		fmt.Printf("count %d\n", n+1)
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
