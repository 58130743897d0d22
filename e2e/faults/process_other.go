//go:build unix && !linux

package main

import (
	"syscall"

	"github.com/go-faster/errors"
)

// attributes puts each process into its own process group, so that Ctrl-C reaches only the harness.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func mountMemory(string, string) error { return errors.New("only Linux has tmpfs") }

func unmount(string) error { return nil }

var errNoPeak = errors.New("only Linux reports the peak memory of a process")

func forgetPeak(int) error { return errNoPeak }

func memory(int) (now, peak int64, err error) { return 0, 0, errNoPeak }
