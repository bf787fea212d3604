package main

import "syscall"

// endWithParent makes the kernel kill the command where fencepost-live dies.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
