package devstack

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// attributes puts a child into a process group of its own, so that Ctrl-C in
// the terminal reaches only us, and has the kernel send it the signal when we
// die. The runtime sets the latter after the change of user, which would have
// cleared it.
func attributes(onDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onDeath}
}

// commandLine returns the arguments of a process, joined by spaces.
func commandLine(pid int) (string, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.ReplaceAll(string(raw), "\x00", " ")), nil
}
