// Package mylease is what a repository looks like whose author checks their own
// lease stores and clients with fencepost: three stores that are right, a
// client that is, and, in package wrong, what it looks like when they are not.
//
// It must not know how fencepost checks anything: all it has is props.TestStore
// and its kin, called from the tests.
//
// Start at [Table], and at mylease_test.go for how it is checked.
package mylease
