// Package storagetest checks somebody's own fenced storage: that a deposed
// leader cannot write there, whatever happens. It asks one rule at a time, plays
// random and all short scripts against the rules, lets a stale leader and its
// successor race in real goroutines, and has what these recorded explained by
// an order.
//
// It must not know package testing, so that a command can run it too, nor any
// storage: all it calls is a [fence.KV]. Users meet it through package props.
//
// Start at [Checks]; [Options] is what a storage promises where correct ones
// differ, [Funcs] a storage made of plain functions.
//
// # What it cannot see
//
// A storage that compares the token and writes in two steps is wrong, because a
// successor may act between them. The checks see it where something happens
// between the steps that lets other goroutines run: a call that takes the
// context, as every database call does, a lock, a file, or the clock of
// [kit.Env]. Where the steps are two bare lines of one process with nothing
// between them, only the processor's own timing can show it, and may not. What
// no run shows, a review must: the comparison and the write belong under one
// lock, in one statement or in one transaction.
package storagetest
