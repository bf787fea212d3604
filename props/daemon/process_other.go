//go:build unix && !linux

package daemon

import "syscall"

// endWithParent cannot: here a server outlives a test that is killed.
func endWithParent(*syscall.SysProcAttr) {}

// standsStill cannot tell.
func standsStill(int) bool { return true }
