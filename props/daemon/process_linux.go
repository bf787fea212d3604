package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// endWithParent makes the kernel kill the server when the test is killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// standsStill reports whether a process that was sent SIGSTOP has stopped: each
// of its threads does when it next runs, which on a busy machine takes a while.
func standsStill(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		// "pid (name) state ...". A thread that has ended meanwhile runs no more.
		text, err := os.ReadFile(thread)
		if _, state, _ := bytes.Cut(text, []byte(") ")); err == nil && !bytes.HasPrefix(state, []byte("T")) {
			return false
		}
	}
	return true
}
