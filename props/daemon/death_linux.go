package daemon

import "syscall"

// endWithParent makes the kernel kill the server when the test is killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
