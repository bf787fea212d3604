package kubernetes

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// ObjectError says why an object cannot be fenced, or not hold what it should.
// Nothing was done.
type ObjectError struct {
	Name   string
	Reason string
}

func (e *ObjectError) Error() string { return fmt.Sprintf("object %q: %s", e.Name, e.Reason) }

// VersionError says that a server gives no fencing tokens.
type VersionError struct {
	Name    string // of the object
	Version string // its resource version
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("object %q has the resource version %q, which is no number above zero: use an API server that keeps its objects in etcd, as Kubernetes does; client-go's fake clientset is none", e.Name, e.Version)
}

// outcome is what is known of a write that the server answered with err.
func outcome(err error) string {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		return "nothing done"
	}
	return "outcome unknown"
}
