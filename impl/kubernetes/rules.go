package kubernetes

import (
	"time"

	coordination "k8s.io/api/coordination/v1"

	"fencepost/impl/lease"
)

// rules decide what is to be written to a Lease, as pure functions of what was
// seen of it. Each gives the object to write, on the condition that the one that
// was seen is still there, or the refusal.
type rules struct {
	driftRate float64
	foreign   bool
	wall      func() time.Time
}

// sight is a lease object as one process knows it.
type sight struct {
	lease.Sight
	object *coordination.Lease // nil: there is none
	token  lease.Token         // of the latest tenure; 0: not known
}

// remaining is how long the tenure that was seen is still to be taken for held;
// not positive: it has lapsed, as far as this process can tell.
func (r rules) remaining(s sight, now time.Duration) time.Duration {
	return s.Lapse(time.Duration(seconds(s.object))*time.Second, r.driftRate) - now
}

// acquire makes holder's tenure of ttl in seconds, or extends the one it has.
func (r rules) acquire(s sight, now time.Duration, resource string, holder lease.Holder, ttl int32) (*coordination.Lease, error) {
	current, err := r.holder(s, resource)
	if err != nil {
		return nil, err
	}
	held := time.Duration(0)
	if !current.IsZero() {
		held = r.remaining(s, now)
	}
	switch {
	case held <= 0:
		return r.begin(s.object, resource, holder, ttl), nil
	case current == holder:
		return r.extend(s, ttl), nil
	}
	return nil, &lease.HeldError{Resource: resource, Holder: current, Token: s.token, Remaining: held}
}

// renew extends holder's tenure under token. It may have lapsed: while nobody
// has taken it over, the update proves that nobody will on the strength of what
// was there before.
func (r rules) renew(s sight, now time.Duration, resource string, holder lease.Holder, token lease.Token, ttl int32) (*coordination.Lease, error) {
	if err := r.owns(s, now, resource, holder, token); err != nil {
		return nil, err
	}
	return r.extend(s, ttl), nil
}

// release ends holder's tenure under token. Where that has lapsed it is given up
// all the same, since others may not know, but was is what to answer.
func (r rules) release(s sight, now time.Duration, resource string, holder lease.Holder, token lease.Token) (l *coordination.Lease, was, refused error) {
	if err := r.owns(s, now, resource, holder, token); err != nil {
		return nil, nil, err
	}
	if r.remaining(s, now) <= 0 {
		was = &lease.LapsedError{Resource: resource, Holder: holder, Token: token}
	}
	return r.free(s), was, nil
}

// get says who holds what was seen. Where that has lapsed nobody does once free
// is written: others may not have seen for as long, and whoever was told of a
// lapse must not hear of a holder again that has not asked anew.
func (r rules) get(s sight, now time.Duration, resource string) (o lease.Observation, free *coordination.Lease, err error) {
	o = lease.Observation{Resource: resource, Token: s.token}
	o.Holder, err = r.holder(s, resource)
	if err != nil || o.Holder.IsZero() {
		return o, nil, err
	}
	if o.Remaining = max(r.remaining(s, now), 0); o.Remaining == 0 {
		free = r.free(s)
	}
	return o, free, nil
}

// owns is nil where the object is holder's under token.
func (r rules) owns(s sight, now time.Duration, resource string, holder lease.Holder, token lease.Token) error {
	lost := &lease.LostError{Resource: resource, Holder: holder, Token: token, Latest: s.token}
	if s.object == nil {
		return lost
	}
	current, err := r.holder(s, resource)
	switch {
	case err == nil && current == holder && s.token == token:
		return nil
	case err == nil && !current.IsZero() && r.remaining(s, now) > 0:
		lost.Current = current
	}
	return lost
}

// begin is the first object of a tenure, after before, or nil.
func (r rules) begin(before *coordination.Lease, resource string, holder lease.Holder, ttl int32) *coordination.Lease {
	l := &coordination.Lease{}
	var transitions int32
	if before == nil {
		name(l, resource)
	} else {
		l = before.DeepCopy()
		delete(l.Annotations, TokenAnnotation)
		transitions = transitionsOf(before) + 1
	}
	identity := holder.String()
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.LeaseTransitions = &identity, &ttl, &transitions
	r.stamp(l)
	l.Spec.AcquireTime = l.Spec.RenewTime
	return l
}

// extend is the tenure renewed. Its duration never gets shorter: whoever
// challenges it goes by the last object, and an earlier one promised more.
func (r rules) extend(s sight, ttl int32) *coordination.Lease {
	l := s.object.DeepCopy()
	keepToken(l, s.token)
	ttl = max(ttl, seconds(l))
	l.Spec.LeaseDurationSeconds = &ttl
	r.stamp(l)
	return l
}

// free is the tenure given up.
func (r rules) free(s sight) *coordination.Lease {
	l := s.object.DeepCopy()
	keepToken(l, s.token)
	nobody := ""
	l.Spec.HolderIdentity = &nobody
	r.stamp(l)
	return l
}

// holder is who holds what was seen, lapsed or not: nobody where it was
// released or is not there.
func (r rules) holder(s sight, resource string) (lease.Holder, error) {
	if s.object == nil {
		return lease.Holder{}, nil
	}
	spec := s.object.Spec
	identity := ""
	if spec.HolderIdentity != nil {
		identity = *spec.HolderIdentity
	}
	refused := &ForeignError{Resource: resource, Object: s.object.Name, Identity: identity}
	switch {
	case spec.Strategy != nil:
		refused.Reason = "the server coordinates it, by its strategy"
		return lease.Holder{}, refused
	case identity == "":
		return lease.Holder{}, nil
	case seconds(s.object) <= 0:
		refused.Reason = "it names no leaseDurationSeconds, so it never lapses"
		return lease.Holder{}, refused
	}
	h, err := lease.ParseHolder(identity)
	switch {
	case err == nil:
		return h, nil
	case !r.foreign:
		refused.Reason = "its holder has no fencing token"
		return lease.Holder{}, refused
	}
	return stranger(identity), nil
}
