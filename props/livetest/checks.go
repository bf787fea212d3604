package livetest

import (
	"maps"
	"slices"
	"time"

	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/kit"
)

// StoreChecks are all checks of the store that open makes, once for each
// process. They run one after the other, but for those that mostly wait: the
// first of these that runs has all of them wait at once.
func StoreChecks(open func(Env) lease.Store, o Options) []kit.Check {
	o = o.withDefaults()
	w := newWorld(open)
	nothing := func() {}
	checks := gathered(waiting(w, o), nothing, w.close)
	checks = append(checks, gathered(append(stormChecks(w, o), believerChecks(w, o)...), nothing, w.close)...)
	return append(checks, restartChecks(w, o)...)
}

// waiting are the checks that may run at once, each on leases of its own.
func waiting(w *world[lease.Store], o Options) []task {
	var tasks []task
	add := func(name string, more time.Duration, of model.Rule, f func(*trial)) {
		tasks = append(tasks, task{name, func() kit.Outcome { return try(w, o, more, of, f) }})
	}
	for _, r := range rules {
		add("rules/"+r.name, 0, r.of, r.try)
	}
	spans := o.spans()
	for _, name := range slices.Sorted(maps.Keys(spans)) {
		add("ttl/"+name, 0, model.RuleNotEarly, lasts(spans[name]))
	}
	add("ttl/below-the-minimum", o.MinTTL, model.RuleGrantTTL, (*trial).belowMinimum)
	add("tokens/after-a-lapse", 0, model.RuleTokenNext, (*trial).afterALapse)
	add("tokens/after-a-deletion", 0, model.RuleDeleteCounter, (*trial).afterDeletions)
	add("watch/a-release-is-hinted", 0, model.RuleReleaseFrees, (*trial).hintOfRelease)
	add("watch/a-change-of-holder-is-hinted", 0, model.RuleOnTime, (*trial).hintOfHolder)
	add("watch/a-deletion-is-hinted", 0, model.RuleDeleteFrees, (*trial).hintOfDeletion)
	add("watch/the-end-of-the-context-ends-the-watch", 0, model.RuleAnswers, (*trial).watchEnds)
	tasks = append(tasks, task{"batch/as-single-calls", func() kit.Outcome { return batched(w, o) }})
	return tasks
}

func keyField(resource string) linearizability.Field {
	return linearizability.Field{Name: "key", Value: linearizability.String(resource)}
}
