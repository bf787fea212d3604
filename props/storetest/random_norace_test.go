//go:build !race

package storetest

// raced is under the race detector, where everything takes ten times as long.
const raced = false
