// Package script is sequential runs against one lease store: who asks for
// what, one request after the other, time passing in between, crashes of the
// store, and an operator who deletes a lease. Each answer is judged by
// model.Contract. A script is a few lines of text that a person reads like a
// story, and the file that replays it.
//
// It must not know package testing, nor what any rule says: model.Contract
// does. All of it is deterministic as far as the store is: the same steps, or
// the same random numbers, give the same lines.
//
// Start at [Step] for what can happen, [Run] for how it is judged, [Story] for
// how it is told; [RunRandom] and [Explore] for where scripts come from,
// [Minimize] for what is left of a long one, and [File] for what is kept of it.
package script
