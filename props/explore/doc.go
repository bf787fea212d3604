// Package explore walks every interleaving of a lease's store, storage and
// candidates, running the real code of impl in a [sim.World]: all delays,
// losses, copies and reorderings, every drift within the bound from tick to
// tick, writes and resignations at any moment. Because worlds that no rule and
// no judgement can tell apart are taken for one, the walk comes to an end without
// a bound on the length of a schedule: what it does not find is not there, in
// worlds of that size ([Options.Assumed]).
//
// [Options].Subject may be rules of your own in place of any of the three: a
// store as [sim.StoreRules], a candidate, a storage.
//
// It must not know how to search, which is package model's, nor what a state
// is made of, which is package sim's. Start at [Run], [Options] and [Report].
package explore
