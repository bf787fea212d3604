// Command apiserver is a Kubernetes API server for tests, with two resources,
// leases and config maps, and etcd within: the generic API server and registry
// that kube-apiserver is built on, so that what it says of resource versions,
// conflicts and watches is what a cluster says.
//
// It must not know fencepost, and anybody may do anything on it: it asks nobody
// who they are, and listens on loopback.
//
// Start at [serve]; what is the resources' own is in strategy.go.
//
//	apiserver --dir DIRECTORY --port PORT
//
// What it serves is in the directory, and survives a SIGKILL. Clients
// find its certificate there, in the file apiserver.crt.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	dir := flag.String("dir", "", "`directory` of the data and the certificate; made if it is not there")
	port := flag.Int("port", 0, "`port` to listen on, on 127.0.0.1")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *dir, *port); err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
}
