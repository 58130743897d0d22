package config

import (
	"net"
	"strings"
)

// Environ has KEY=value pairs as os.Environ returns them. If a name occurs more than once, the last pair counts, as in a
// process.
type Environ []string

// Environ returns all pairs.
func (e Environ) Environ() []string { return e }

// LookupEnv returns the value of a name.
func (e Environ) LookupEnv(name string) (string, bool) {
	for i := len(e) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(e[i], "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// LocalURL returns the URL of a listener for a client on the same machine.
func LocalURL(host, port string) string {
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
