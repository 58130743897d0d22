package postgres

import (
	"syscall"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// endAfterSilence makes the kernel end a connection whose other side doesn't acknowledge packets
// for silenceTimeout. Keep-alives alone don't suffice: none are sent while data is in flight.
func endAfterSilence(network, _ string, raw syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceTimeout.Milliseconds()))
	}); err != nil {
		return errors.Wrap(err, "reach the socket")
	}
	if failed != nil {
		return errors.Wrap(failed, "bound the silence of a connection")
	}
	return nil
}
