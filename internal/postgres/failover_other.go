//go:build !linux

package postgres

import "syscall"

// endAfterSilence does nothing: the system's own timeout of some minutes applies.
func endAfterSilence(string, string, syscall.RawConn) error { return nil }
