package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"

	"github.com/go-faster/errors"
)

// attributes keep Ctrl-C, which is for the harness, from its processes, and end them
// when it dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// mountMemory puts a file system of its own, in memory and of a bounded size, over
// the directory. Only root may.
func mountMemory(dir, size string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,size="+size)
}

func unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }

// forgetPeak has the kernel measure from now on what a process takes at most.
func forgetPeak(pid int) error {
	const peak = "5" // proc_pid_clear_refs(5)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(peak), 0); err != nil {
		return errors.Wrap(err, "begin to watch the memory")
	}
	return nil
}

// memory is what a process takes and took at most, in bytes.
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
		*into <<= 10 // they are in KiB
	}
	return now, peak, nil
}
