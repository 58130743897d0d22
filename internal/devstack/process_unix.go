//go:build unix && !linux

package devstack

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes puts a child into a process group of its own, so that Ctrl-C in
// the terminal reaches only us. There is no death signal here: a server that
// outlives us is stopped by the next start in its directory.
func attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// commandLine returns the arguments of a process, joined by spaces.
func commandLine(pid int) (string, error) {
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}
