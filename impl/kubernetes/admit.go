package kubernetes

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// Admit puts token into an object that was read from the server, on the rule of
// [fence.Guard]: an update of that object then lands only if nobody wrote to it since, and so
// only if no higher token did. After a conflict, read it again and admit again:
//
//	o, err := client.Get(ctx, name, metav1.GetOptions{})
//	...
//	if err := kubernetes.Admit(o, term.Token); err != nil {
//		return err // a successor has written: stop
//	}
//	o.Spec = ...
//	_, err = client.Update(ctx, o, metav1.UpdateOptions{})
//
// An update of the object with no other change is the barrier for it. What else
// writes to it must keep the annotation.
//
// A refusal is a *[fence.StaleTokenError], which matches [lease.ErrStale]. An
// *[ObjectError] says that the object cannot be fenced. In both cases the object
// is as it was.
func Admit(o metav1.Object, token lease.Token) error {
	if o.GetResourceVersion() == "" {
		return &ObjectError{Name: o.GetName(), Reason: "it has no resource version, so that an update would land whatever is there: read it from the server first"}
	}
	guard, err := guardOf(o)
	if err != nil {
		return err
	}
	after, ok := guard.Admit(token)
	if !ok {
		return &fence.StaleTokenError{Token: token, Highest: guard.Highest}
	}
	mark(o, after)
	return nil
}

// guardOf is what o remembers of tokens.
func guardOf(o metav1.Object) (fence.Guard, error) {
	text, ok := o.GetAnnotations()[TokenAnnotation]
	if !ok {
		return fence.Guard{}, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fence.Guard{}, &ObjectError{Name: o.GetName(), Reason: fmt.Sprintf("its annotation %s is %q, which is no token: somebody else has written it", TokenAnnotation, text)}
	}
	return fence.Guard{Highest: lease.Token(n)}, nil
}

func mark(o metav1.Object, g fence.Guard) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[TokenAnnotation] = strconv.FormatUint(uint64(g.Highest), 10)
	o.SetAnnotations(annotations)
}
