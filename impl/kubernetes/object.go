package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"fencepost/impl/lease"
)

// Annotations of the objects that this package writes.
const (
	// TokenAnnotation has a fencing token: of a Lease, the one of its latest
	// tenure, as TOKEN/LEASETRANSITIONS; of an object under [Admit], the highest
	// that wrote it.
	TokenAnnotation = "fencepost/token"
	// ResourceAnnotation has the name of the resource, on a Lease that cannot
	// have it as its own: see [ObjectName].
	ResourceAnnotation = "fencepost/resource"
)

// ObjectName is the name of the Lease for resource: resource itself where that
// can be an object's name, else "fencepost-" and its SHA-256.
func ObjectName(resource string) string {
	if len(validation.IsDNS1123Subdomain(resource)) == 0 {
		return resource
	}
	sum := sha256.Sum256([]byte(resource))
	return "fencepost-" + hex.EncodeToString(sum[:])
}

func name(l *coordination.Lease, resource string) {
	l.Name = ObjectName(resource)
	if l.Name != resource {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, ResourceAnnotation, strings.ToValidUTF8(resource, "\uFFFD"))
	}
}

// wholeSeconds is ttl in the unit of the API, rounded up, and cut to what that
// can say: 68 years.
func wholeSeconds(ttl time.Duration) int32 {
	s := ttl / time.Second
	if ttl%time.Second > 0 {
		s++
	}
	return int32(min(s, math.MaxInt32))
}

func seconds(l *coordination.Lease) int32 {
	if l.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return *l.Spec.LeaseDurationSeconds
}

func transitionsOf(l *coordination.Lease) int32 {
	if l.Spec.LeaseTransitions == nil {
		return 0
	}
	return *l.Spec.LeaseTransitions
}

// stamp writes the time of day, for people and other tools. It differs from the
// one before, whatever the clock says: an update that changes nothing is not
// stored, and gets no resource version by which others would see it.
func (r rules) stamp(l *coordination.Lease) {
	t := r.wall().Truncate(time.Microsecond)
	if before := l.Spec.RenewTime; before != nil && t.Equal(before.Time) {
		t = t.Add(time.Microsecond)
	}
	l.Spec.RenewTime = &metav1.MicroTime{Time: t}
}

// keepToken writes down the token of l's tenure. The transition says which that
// is: other tools keep annotations when they take a lease over.
func keepToken(l *coordination.Lease, token lease.Token) {
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, TokenAnnotation, fmt.Sprintf("%d/%d", token, transitionsOf(l)))
}

// keptToken is the token that l has written down for its latest tenure, if any.
func keptToken(l *coordination.Lease) (lease.Token, bool) {
	token, transition, ok := strings.Cut(l.Annotations[TokenAnnotation], "/")
	if !ok || transition != strconv.FormatInt(int64(transitionsOf(l)), 10) {
		return 0, false
	}
	n, err := strconv.ParseUint(token, 10, 64)
	return lease.Token(n), err == nil && n > 0
}

// version is the resource version as a number: see KEP-5504.
func version(o metav1.Object) (lease.Token, error) {
	n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil || n == 0 {
		return 0, &VersionError{Name: o.GetName(), Version: o.GetResourceVersion()}
	}
	return lease.Token(n), nil
}

// sameTenure reports whether no ownership began between the two: every taker
// counts a transition.
func sameTenure(a, b *coordination.Lease) bool {
	return a.UID == b.UID && transitionsOf(a) == transitionsOf(b)
}

// ours reports whether a holder of fencepost's has l.
func ours(l *coordination.Lease) bool {
	if l.Spec.HolderIdentity == nil {
		return false
	}
	h, err := lease.ParseHolder(*l.Spec.HolderIdentity)
	return err == nil && !h.IsZero()
}

// stranger stands for a holder that is none of fencepost's.
func stranger(identity string) lease.Holder {
	return lease.Holder{Node: strings.ReplaceAll(identity, "#", "_")}
}
