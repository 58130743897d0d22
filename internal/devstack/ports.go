package devstack

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/go-faster/errors"
)

const (
	// loopback is the only address that these servers listen on.
	loopback = "127.0.0.1"
	// LowestPort is the lowest port that is chosen. Ports below 10000 are left to programs that
	// people start by hand (5432, 7233, 8080, 8233, 9090, …).
	LowestPort = 10000
	// EphemeralPorts is the first port above the range. From here on Linux assigns ports to
	// outgoing connections, so any of them may be in use.
	EphemeralPorts = 32768
	// portTries is far more than necessary. On a busy machine a few hundred of the 22,768 ports are
	// taken.
	portTries = 200
	// portDialTimeout bounds the check for a listener. On the loopback interface the answer comes
	// in microseconds.
	portDialTimeout = 200 * time.Millisecond
)

// handedOut records the random ports of this process, so that two servers that start at the same
// time never get the same one.
var handedOut sync.Map

// FreePort returns a TCP port of 127.0.0.1 without a listener. It returns preferred if that is
// free, and otherwise a random port from 10000 to 32767. Moved reports that preferred was not zero
// and was taken. The port is not reserved, so another process may take it before the caller binds
// it.
//
// The error means that no free port was found.
func FreePort(preferred int) (port int, moved bool, err error) {
	if preferred > 0 && portFree(preferred) {
		return preferred, false, nil
	}
	for range portTries {
		port := LowestPort + rand.IntN(EphemeralPorts-LowestPort)
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		if portFree(port) {
			return port, preferred > 0, nil
		}
		handedOut.Delete(port)
	}
	return 0, false, errors.Errorf("no free port found between %d and %d", LowestPort, EphemeralPorts-1)
}

// ChoosePort is FreePort with a report when the port moved.
func ChoosePort(preferred int, what string, report Report) (int, error) {
	port, moved, err := FreePort(preferred)
	if err != nil {
		return 0, errors.Wrapf(err, "choose a port for %s", what)
	}
	if moved {
		report.Say("port %d is taken, %s listens on %d", preferred, what, port)
	}
	return port, nil
}

// portFree dials first, because on macOS a bind to 127.0.0.1 succeeds despite a listener on all
// addresses.
func portFree(port int) bool {
	address := hostPort(port)
	if conn, err := net.DialTimeout("tcp", address, portDialTimeout); err == nil {
		conn.Close()
		return false
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func hostPort(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
