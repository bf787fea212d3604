// Command worker is a singleton on Kubernetes: of all that run with the same -resource,
// one at a time works. Its work is to count, in a ConfigMap, and no count of a
// worker that was deposed lands.
//
// In a pod it uses its service account, to which rbac.yaml gives what it needs;
// elsewhere, a kubeconfig:
//
//	go run ./example/worker -kubeconfig ~/.kube/config -name a &
//	go run ./example/worker -kubeconfig ~/.kube/config -name b &
//
// Kill the one that counts with SIGKILL: the other goes on once it has seen the
// lease unchanged for its duration, from where the count was. End it with an
// interrupt, and the other goes on at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` that says where the cluster is; not needed in a pod")
	namespace := flag.String("namespace", "default", "of the lease and of the count")
	name := flag.String("name", fmt.Sprintf("worker-%d", os.Getpid()), "of this worker, for people to read")
	resource := flag.String("resource", "worker", "what only one works on at a time")
	ttl := flag.Duration("ttl", 5*time.Second, "how long a worker that has died keeps the others out: whole seconds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Without a file this is the configuration of the pod.
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = run(ctx, config, *namespace, *name, *resource, *ttl)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, config *rest.Config, namespace, name, resource string, ttl time.Duration) error {
	config.QPS = -1 // a renewal must not wait its turn in this process
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := corev1.NewForConfig(config)
	if err != nil {
		return err
	}
	store, err := kubernetes.New(leases.Leases(namespace), kubernetes.Options{})
	if err != nil {
		return err
	}
	storage := kubernetes.NewConfigMap(objects.ConfigMaps(namespace), resource+"-count")
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

// count counts until ctx ends or a write is refused. The API server checks that
// nobody with a higher token has written, in the update itself: it matters to nobody how
// long the process slept since it last looked whether it leads.
func count(ctx context.Context, storage *kubernetes.ConfigMap, token lease.Token) error {
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
		fmt.Println("count:", n+1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
	}
}
