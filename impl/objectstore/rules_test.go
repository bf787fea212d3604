package objectstore_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/impl/objectstore"
	"fencepost/props"
)

// TestRules holds the store against the specification, in fake time. All
// candidates share what one process has seen, so that a tenure lapses on time
// but for the allowance for drift, and that a renewal for less starts the longest
// of the tenure's durations anew.
func TestRules(t *testing.T) {
	for name, delay := range map[string]time.Duration{"no delay": 0, "lock delay": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			props.TestStore(t, func(e props.Env) lease.Store {
				server := props.Durable(e, "bucket", newMemory)
				s, err := objectstore.New(server, bucket, objectstore.Options{Clock: e.Clock, MaxDriftRate: 1e-12, LockDelay: delay})
				if err != nil {
					e.Fatal(err)
				}
				// A process counts from when it first sees a lease: here, from its start.
				for _, key := range server.keys() {
					name, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(key, "leases/"), ".json"))
					if err != nil {
						e.Fatal(err)
					}
					if _, err := s.Get(e.Context, name); err != nil {
						e.Fatal(err)
					}
				}
				return s
			}, props.Options{Late: 30 * time.Second, LockDelay: delay})
		})
	}
}
