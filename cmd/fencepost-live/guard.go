//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// guardVar makes this program the guard of the process group that it names.
const guardVar = "FENCEPOST_LIVE_GUARD"

// startGuard starts a process that kills the group of pid if this one dies: the
// kernel's death signal reaches the command alone, and not what that has started.
// dismiss ends the guard and touches nothing.
func startGuard(pid int) (dismiss func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	guard := exec.Command(exe)
	guard.Env = append(os.Environ(), fmt.Sprintf("%s=%d", guardVar, pid))
	guard.Stdin = r
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what kills this group leaves it alive
	if err := guard.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return func() {
		w.Write([]byte{1})
		w.Close()
		guard.Wait()
	}, nil
}

// isGuard reports whether this process is one, and does its work if so: it waits
// for a byte, which says that all is well, or for the end of the pipe, which
// comes with the end of whoever holds its other side.
func isGuard() bool {
	pid, err := strconv.Atoi(os.Getenv(guardVar))
	if err != nil || pid <= 1 {
		return false
	}
	if n, _ := os.Stdin.Read(make([]byte, 1)); n == 0 {
		signalGroup(pid, syscall.SIGKILL)
	}
	return true
}
