package kubernetes_test

import (
	"context"
	"testing"
	"time"

	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props"
)

// inMemory is a store and its operator, in fake time.
type inMemory struct {
	lease.Store
	server *memory
}

func (s inMemory) Delete(_ context.Context, resource string) error {
	s.server.delete(kubernetes.ObjectName(resource))
	return nil
}

// TestRules holds the rules against the specification, in fake time. All
// candidates share what one process has seen, so that a tenure lapses on time
// but for the allowance for drift, and that a renewal for less starts the longest
// of the tenure's durations anew.
func TestRules(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		server := props.Durable(e, "etcd", newMemory)
		s, err := kubernetes.New(server, kubernetes.Options{
			Clock:        e.Clock,
			MaxDriftRate: 1e-12,
			Wall:         func() time.Time { return time.Unix(1_800_000_000, 0) },
		})
		if err != nil {
			e.Fatal(err)
		}
		// A process counts from when it first sees a lease: here, from its start.
		for _, name := range server.names() {
			if _, err := s.Get(e.Context, name); err != nil {
				e.Fatal(err)
			}
		}
		return inMemory{s, server}
	}, props.Options{
		Tokens:          model.TokensRising,
		Granularity:     time.Second,
		MinTTL:          kubernetes.MinTTL,
		Late:            30 * time.Second,
		RenewAfterLapse: true,
	})
}
