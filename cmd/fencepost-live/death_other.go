//go:build unix && !linux

package main

import "syscall"

// endWithParent cannot: here a command outlives a fencepost-live that is killed.
func endWithParent(*syscall.SysProcAttr) {}
