//go:build !linux

package store

import "syscall"

// endAfterSilence leaves the system's own time, some minutes.
func endAfterSilence(string, string, syscall.RawConn) error { return nil }
