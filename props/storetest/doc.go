// Package storetest checks somebody's own lease store: each rule by itself, in
// scripts of a few steps ([Rules]), requests that make no sense ([Malformed]),
// hints at changes ([Watch]), and random scripts beside the model ([Lockstep]);
// every short script, many goroutines at once, and candidates in a simulated
// world are beside them. [Checks] are all of it.
//
// It must not know package testing, so that a command can run the checks too,
// nor how the store works: it asks, and judges the answers. What a store must
// answer is model.Contract's; the generous readings of odd requests are here.
//
// Start at [Rules]: a table of scripts that is also the list of what a lease
// store has to do.
package storetest
