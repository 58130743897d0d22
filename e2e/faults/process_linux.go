package main

import "syscall"

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
