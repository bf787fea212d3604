package fence_test

import (
	"errors"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

var _ fence.Carrier = (*lease.Memory)(nil)

// TestARefusedFenceEndsTheTerm: the elector must tell a refusal from a call
// that failed, which it would repeat.
func TestARefusedFenceEndsTheTerm(t *testing.T) {
	var s fence.Storage
	if err := s.Fence(t.Context(), 34); err != nil {
		t.Fatal(err)
	}
	if err := s.Fence(t.Context(), 33); !errors.Is(err, lease.ErrStale) {
		t.Errorf("%v does not match lease.ErrStale", err)
	}
}
