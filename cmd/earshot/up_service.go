package main

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/config"
	"earshot/internal/devstack"
)

const (
	// serviceReady is many times the usual start time of the service.
	serviceReady = 60 * time.Second
	// readyPause is the interval between readiness checks.
	readyPause = 100 * time.Millisecond
)

// service is the API and the worker in this process.
type service struct {
	cancel context.CancelFunc
	done   chan struct{} // closed after the service has ended and err is set
	err    error
}

func (s *service) stop() error {
	s.cancel()
	<-s.done
	return s.err
}

// servicePorts chooses the listen addresses of API and metrics.
func (u *up) servicePorts() error {
	for name, preferred := range map[string]*int{"the API": &u.ports.api, "metrics": &u.ports.metrics} {
		port, moved, err := devstack.FreePort(*preferred)
		if err != nil {
			return errors.Wrapf(err, "choose a port for %s", name)
		}
		if moved {
			u.report("port %d is taken; port of %s: %d", *preferred, name, port)
		}
		*preferred = port
	}
	return nil
}

// metricsAddress is on loopback, as are all listeners except the API's.
func (u *up) metricsAddress() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(u.ports.metrics))
}

// baseURL is the API's address for clients on this machine.
func (u *up) baseURL() string {
	return localURL(u.ports.host, strconv.Itoa(u.ports.api))
}

func (u *up) startService(ctx context.Context) (string, error) {
	log, err := newServiceLog(u.dir.serviceLog())
	if err != nil {
		return "", err
	}
	// Ctrl-C doesn't end the service directly. up stops it in order and prints a line.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &service{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer func() { _ = log.Close() }()
		s.err = runService(own, u.serviceEnviron(), roleAPI|roleWorker, log)
	}()
	u.service = s
	if err := s.awaitReady(ctx, u.baseURL()); err != nil {
		return "", err
	}
	return u.baseURL(), nil
}

// newServiceLog opens a new log and keeps the previous run's log beside it.
func newServiceLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".old"); err != nil && !os.IsNotExist(err) {
		return nil, errors.Wrap(err, "keep the previous log")
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Wrap(err, "open the log")
	}
	return file, nil
}

// settings returns the caller's environment, completed with defaults for a developer's machine.
func (u *up) settings() []string {
	var environ lookup
	for _, pair := range u.environ {
		name, _, _ := strings.Cut(pair, "=")
		name = strings.TrimSuffix(name, "_FILE")
		// Skip variables that point to other servers: the caller's own, or those of an earlier
		// dev.env.
		if !strings.HasPrefix(name, "TEMPORAL_") && name != config.DatabaseURL &&
			name != listenVariable && name != metricsVariable {
			environ = append(environ, pair)
		}
	}
	defaults := append([]setting{
		{"EARSHOT_WEBHOOK_ALLOW_CIDRS", "127.0.0.0/8,::1/128"},
		{"EARSHOT_WEBHOOK_ALLOW_HTTP", "true"},
		{mailDirVariable, u.dir.mail()},
		{"EARSHOT_DRAIN_DELAY", "0s"}, // no load balancer
	}, u.secrets...)
	if u.withDemo {
		defaults = append(defaults, setting{"EARSHOT_WEBHOOK_RETRY_DELAYS", demoRetryDelays})
	}
	for _, s := range defaults {
		_, said := environ.LookupEnv(s.name)
		_, fromFile := environ.LookupEnv(s.name + "_FILE")
		if !said && !fromFile {
			environ = append(environ, s.name+"="+s.value)
		}
	}
	return environ
}

// serviceEnviron returns the settings together with the addresses of this stack.
func (u *up) serviceEnviron() []string {
	return append(u.settings(),
		config.DatabaseURL+"="+u.databaseURL(),
		listenVariable+"="+net.JoinHostPort(u.ports.host, strconv.Itoa(u.ports.api)),
		metricsVariable+"="+u.metricsAddress(),
		"TEMPORAL_ADDRESS="+u.temporal.Address(),
		"TEMPORAL_NAMESPACE="+namespace,
		"TEMPORAL_CONFIG_FILE="+os.DevNull, // ignores the user's own configuration file
	)
}

// awaitReady polls until all checks pass. If the service has ended, it returns the service's error,
// otherwise the last answer.
func (s *service) awaitReady(ctx context.Context, baseURL string) error {
	ctx, cancel := context.WithTimeout(ctx, serviceReady)
	defer cancel()
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	for {
		_, answer := ask(ctx, baseURL+"/readyz")
		if answer == nil {
			return nil
		}
		select {
		case <-s.done:
			if s.err != nil {
				return s.err
			}
			return errors.New("ended before it was ready")
		case <-ctx.Done():
			return errors.Wrapf(answer, "not ready after %s", serviceReady)
		case <-tick.C:
		}
	}
}
