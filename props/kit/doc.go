// Package kit is what every conformance check of somebody's own lease store,
// fenced storage or client stands on: the environment that the code under test
// lives in ([Env]), the processes of it that start, crash and come back
// ([Lab]), what it promises where correct ones differ ([Options]), and what a
// check comes to ([Check], [Failure]).
//
// It must not know package testing, so that a command can run a check too, nor
// any rule: what a store must answer is model's, and the checks are those of
// storetest, storagetest and electortest. Users meet it through package props,
// which has its types under names of its own.
//
// Start at [Env].
package kit
