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
// successor may act between them. The checks see it where the storage looks at
// its context between the two, as every database call does, or at the clock of
// [kit.Env]: both let other goroutines run at that moment. Measured, every second
// round of a race then convicts, and the quick mode has some hundreds of rounds.
// A storage that does neither, such as one of two locked sections in one
// process, one to compare and one to write, was convicted in 8 of 16,000 rounds:
// it may pass. Nor are two processes of a storage ever run at once: one that
// keeps the highest token in its own memory, in front of a database that it
// shares, passes if it finds it again after a restart, and a second process
// would admit what the first one bars. What no run shows, a review must: the
// comparison and the write belong under one lock, in one statement or in one
// transaction.
package storagetest
