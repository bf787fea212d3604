// Package wrong is lease stores as people have written them, each with one
// fault, and a client that knows no deadline. They are here to be convicted:
// WRONG=1 go test shows what that looks like.
//
// None of them knows of fencepost: they are plain functions on names and
// numbers.
//
// Start at any file; each is a store of its own.
package wrong
