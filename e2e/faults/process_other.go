//go:build unix && !linux

package main

import (
	"syscall"

	"github.com/go-faster/errors"
)

// attributes keep Ctrl-C, which is for the harness, from its processes.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func mountMemory(string, string) error { return errors.New("only Linux has tmpfs") }

func unmount(string) error { return nil }
