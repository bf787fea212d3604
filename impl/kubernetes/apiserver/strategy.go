package main

import (
	"context"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
)

// resource is a kind of object that is served: what a cluster asks of it, as in
// kube-apiserver's pkg/registry.
type resource struct {
	runtime.ObjectTyper
	names.NameGenerator
	plural, singular schema.GroupResource
	newObject        func() runtime.Object
	newList          func() runtime.Object
	validate         func(runtime.Object) field.ErrorList
	// An update of what is not there creates it.
	createOnUpdate bool
	// An update may name no resource version.
	unconditional bool
}

var (
	_ rest.RESTCreateStrategy = resource{}
	_ rest.RESTUpdateStrategy = resource{}
	_ rest.RESTDeleteStrategy = resource{}
)

func leases(scheme *runtime.Scheme) resource {
	return resource{
		ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator,
		plural: coordination.Resource("leases"), singular: coordination.Resource("lease"),
		newObject:      func() runtime.Object { return &coordination.Lease{} },
		newList:        func() runtime.Object { return &coordination.LeaseList{} },
		validate:       func(o runtime.Object) field.ErrorList { return validateLease(o.(*coordination.Lease)) },
		createOnUpdate: true,
	}
}

func configMaps(scheme *runtime.Scheme) resource {
	return resource{
		ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator,
		plural: core.Resource("configmaps"), singular: core.Resource("configmap"),
		newObject:     func() runtime.Object { return &core.ConfigMap{} },
		newList:       func() runtime.Object { return &core.ConfigMapList{} },
		validate:      func(runtime.Object) field.ErrorList { return nil },
		unconditional: true,
	}
}

// validateLease is what kube-apiserver asks of a lease that names no strategy.
func validateLease(l *coordination.Lease) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return errs
}

func (r resource) AllowCreateOnUpdate(context.Context) bool      { return r.createOnUpdate }
func (r resource) AllowUnconditionalUpdate(context.Context) bool { return r.unconditional }

func (r resource) Validate(_ context.Context, o runtime.Object) field.ErrorList {
	return r.validate(o)
}

func (r resource) ValidateUpdate(_ context.Context, o, _ runtime.Object) field.ErrorList {
	return r.validate(o)
}

func (resource) NamespaceScoped() bool                                            { return true }
func (resource) Canonicalize(runtime.Object)                                      {}
func (resource) PrepareForCreate(context.Context, runtime.Object)                 {}
func (resource) PrepareForUpdate(_ context.Context, _, _ runtime.Object)          {}
func (resource) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (resource) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string { return nil }
