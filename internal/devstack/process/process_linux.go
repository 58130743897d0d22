package process

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Attributes puts a child into its own process group, so that Ctrl-C in the terminal reaches only
// this program. The kernel sends the child the signal when this program dies. The runtime sets that
// signal after the change of user, which would have cleared it.
func Attributes(onDeath syscall.Signal) *syscall.SysProcAttr {
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
