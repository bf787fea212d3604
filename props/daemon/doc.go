// Package daemon runs the real servers that tests need, from the packages that
// the machine has installed, on loopback and in a directory of their own.
//
// It must not know any server: what to start, as whom and when it is ready is
// said by whoever starts it. Start at [Find], or at [Self] and [Tool] for servers in
// Go, and [Start].
package daemon
