// Package script is sequential runs against one lease store: who asks for
// what, one request after the other, time passing in between, crashes of the
// store, and an operator who deletes a lease. Each answer is judged by
// model.Contract. A script is a few lines of text that a person reads like a
// story, and the file that replays it.
//
// It must not know package testing, nor what any rule says: model.Contract
// does. Start at [Step] for what can happen, [Run] for how it is judged,
// [Generate], [Minimize] and [Explore] for where scripts come from.
package script
