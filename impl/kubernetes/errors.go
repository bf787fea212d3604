package kubernetes

import (
	"errors"
	"fmt"
)

// ErrForeign matches a [ForeignError].
var ErrForeign = errors.New("lease belongs to another system")

// ForeignError refuses to touch a Lease that something else than fencepost
// manages. Nothing was done.
type ForeignError struct {
	Resource string
	Object   string // the name of the Lease
	Identity string // its holderIdentity
	Reason   string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("lease %q: the Lease object %q of %q is not fencepost's: %s; use another name, or, while candidates of client-go are being replaced, set Options.Foreign", e.Resource, e.Object, e.Identity, e.Reason)
}

// Is makes errors.Is(err, ErrForeign) hold.
func (e *ForeignError) Is(target error) bool { return target == ErrForeign }
