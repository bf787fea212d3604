package kit

import "context"

// Deleter is offered by a store whose leases an operator can delete. What is
// deleted is free at once, without lock delay; its tokens go on where they
// were.
type Deleter interface {
	Delete(ctx context.Context, resource string) error
}
