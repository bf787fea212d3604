// Package mutant is the planted bugs that the harness must catch: subjects
// with one wrong rule each, the public failure each stands for, and the
// invariants that it may break.
//
// It must not reach into impl, and nothing in impl knows of it: a bug wraps or
// replaces the rules of a store, a client or a storage as package sim has
// them.
//
// Start at [All] for the list, the files named after client, store and storage
// for the bugs themselves, and [Mutant.Hunt] and [Mutant.Explored] for how one
// is caught.
package mutant

import (
	"fmt"
	"slices"
	"strings"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

// The families: which rules a bug is in.
const (
	FamilyClient  = "client"
	FamilyStore   = "store"
	FamilyStorage = "storage"
)

// Mutant is one planted bug.
type Mutant struct {
	Name   string // kebab-case, its own
	Family string // FamilyClient, FamilyStore or FamilyStorage
	Breaks string // what it does wrong, in one sentence
	Seen   string // the public failure that it stands for
	// May is declared in advance: the first event that breaks anything breaks
	// members of this set and nothing else.
	May model.Set
	// Actions is the most that a minimised counterexample may have.
	Actions int
	Subject sim.Subject // called "mutant:" and the name
	// Steer, where set, leads the generator to set-ups and actions without
	// which the bug does not show. They are ones that the built-in
	// implementation has to stand as well.
	Steer func(*sim.Config, *sim.Profile)
	// Explore, where set, leads to worlds, among all of which the bug shows;
	// nil: it does in those of [explore.Default]. See [Mutant.Explored].
	Explore func(*explore.Options)
}

// Judged is the set of invariants to hunt m by. Lockstep would tell of any bug
// in a store at its first odd answer, long before it does harm, and a check for
// linearizability costs time where the bug is not to show there.
func (m Mutant) Judged() model.Set {
	var s model.Set
	for v := range model.Invariants() {
		if v != model.Lockstep && (v != model.Linearizability || m.May.Has(v)) {
			s |= model.SetOf(v)
		}
	}
	return s
}

const prefix = "mutant:"

// All are the planted bugs, in a fixed order: clients, stores, storages.
func All() []Mutant {
	var all []Mutant
	builtin := sim.Builtin()
	for _, family := range []struct {
		name string
		bugs []Mutant
	}{
		{FamilyClient, slices.Concat(beliefBugs(), termBugs())},
		{FamilyStore, slices.Concat(ownershipBugs(), expiryBugs())},
		{FamilyStorage, storageBugs()},
	} {
		for _, m := range family.bugs {
			m.Family = family.name
			m.Subject.Name = prefix + m.Name
			if m.Subject.Client == nil {
				m.Subject.Client = builtin.Client
			}
			if m.Subject.Store == nil {
				m.Subject.Store = builtin.Store
			}
			if m.Subject.Storage == nil {
				m.Subject.Storage = builtin.Storage
			}
			all = append(all, m)
		}
	}
	return all
}

// Find is the planted bug called name. The error lists the names there are.
func Find(name string) (Mutant, error) {
	var names []string
	for _, m := range All() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Mutant{}, fmt.Errorf("there is no planted bug %q; there are %s", name, strings.Join(names, ", "))
}

// Subject is what the subject of a schedule file stands for: the built-in
// implementation, or "mutant:" and the name of a planted bug. The error says
// which there are.
func Subject(name string) (sim.Subject, error) {
	if name == sim.SubjectBuiltin {
		return sim.Builtin(), nil
	}
	if name == sim.SubjectExternal {
		return sim.Subject{}, fmt.Errorf("subject %q is somebody else's implementation: only the test that wrote the schedule can run it", name)
	}
	bug, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return sim.Subject{}, fmt.Errorf("subject %q is none of %q, %q, and %q with the name of a planted bug", name, sim.SubjectBuiltin, sim.SubjectExternal, prefix)
	}
	m, err := Find(bug)
	return m.Subject, err
}

// at raises the weights of the given kinds of action.
func at(p *sim.Profile, weight uint16, ks ...sim.Kind) {
	for _, k := range ks {
		p.Weights[k] = max(p.Weights[k], weight)
	}
}
