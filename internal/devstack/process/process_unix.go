//go:build unix && !linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Attributes puts a child into its own process group, so that Ctrl-C in the terminal reaches only
// this program. There is no death signal here. The next start in the directory stops a server that
// outlives this program.
func Attributes(syscall.Signal) *syscall.SysProcAttr {
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
