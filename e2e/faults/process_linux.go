package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"

	"github.com/go-faster/errors"
)

// attributes puts each process into its own process group, so that Ctrl-C reaches only the harness.
// The kernel kills the processes when the harness dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// mountMemory mounts a file system in memory, of a bounded size, over the directory. Only root may
// do that.
func mountMemory(dir, size string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,size="+size)
}

func unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }

// forgetPeak resets the kernel's record of a process's peak memory.
func forgetPeak(pid int) error {
	const peak = "5" // proc_pid_clear_refs(5)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(peak), 0); err != nil {
		return errors.Wrap(err, "begin to watch the memory")
	}
	return nil
}

// memory returns the present and the peak memory of a process, in bytes.
func memory(pid int) (now, peak int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, errors.Wrap(err, "read the memory")
	}
	for name, into := range map[string]*int64{"VmRSS:": &now, "VmHWM:": &peak} {
		_, line, _ := bytes.Cut(status, []byte(name))
		if _, err := fmt.Sscan(string(line), into); err != nil {
			return 0, 0, errors.Wrapf(err, "read %s", name)
		}
		*into <<= 10 // The file has KiB.
	}
	return now, peak, nil
}
