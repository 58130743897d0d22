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

// FreePort returns a random TCP port of 127.0.0.1 without a listener, from 10000 to 32767. The port
// is not reserved, so another process may take it before the caller binds it.
func FreePort() (int, error) {
	for range portTries {
		port := LowestPort + rand.IntN(EphemeralPorts-LowestPort)
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		if PortFree(port) {
			return port, nil
		}
		handedOut.Delete(port)
	}
	return 0, errors.Errorf("no free port found between %d and %d", LowestPort, EphemeralPorts-1)
}

// ChoosePort returns the preferred port if it is not 0 and is free. Otherwise it returns a FreePort,
// and reports that a preferred one is taken.
func ChoosePort(preferred int, what string, report Report) (int, error) {
	if preferred > 0 && PortFree(preferred) {
		return preferred, nil
	}
	port, err := FreePort()
	if err != nil {
		return 0, errors.Wrapf(err, "choose a port for %s", what)
	}
	if preferred > 0 {
		report.Say("port %d is taken, %s listens on %d", preferred, what, port)
	}
	return port, nil
}

// PortFree reports whether the port of 127.0.0.1 has no listener. It dials first, because on macOS a
// bind to 127.0.0.1 succeeds despite a listener on all addresses.
func PortFree(port int) bool {
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
