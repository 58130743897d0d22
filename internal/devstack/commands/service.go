package commands

import (
	"cmp"
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/config"
	"earshot/internal/devstack"
	"earshot/internal/devstack/demo"
	"earshot/internal/devstack/process"
	"earshot/internal/devstack/statedir"
)

// serviceReady is many times the usual start time of the service.
const serviceReady = 60 * time.Second

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
	for name, preferred := range map[string]*int{"the API": &u.ports.api, "the page of metrics": &u.ports.metrics} {
		port, err := devstack.ChoosePort(*preferred, name, u.report)
		if err != nil {
			return err
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
	return config.LocalURL(u.ports.host, strconv.Itoa(u.ports.api))
}

func (u *up) startService(ctx context.Context) (string, error) {
	log, err := process.NewLog(serviceLog(u.Dir))
	if err != nil {
		return "", err
	}
	// Ctrl-C doesn't end the service directly. up stops it in order and prints a line.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &service{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer func() { _ = log.Close() }()
		s.err = u.Serve(own, u.serviceEnviron(), log)
	}()
	u.service = s
	err = process.AwaitReady(ctx, serviceReady, s.done, func(ctx context.Context) error { return u.Ready(ctx, u.baseURL()) })
	select {
	case <-s.done:
		return "", cmp.Or(s.err, errors.New("ended before it was ready"))
	default:
		return u.baseURL(), err
	}
}

// settings returns the caller's environment, completed with defaults for a developer's machine.
func (u *up) settings() []string {
	var environ config.Environ
	for _, pair := range u.Environ {
		name, _, _ := strings.Cut(pair, "=")
		name = strings.TrimSuffix(name, "_FILE")
		// Skip variables that point to other servers: the caller's own, or those of an earlier
		// dev.env.
		if !strings.HasPrefix(name, "TEMPORAL_") && name != config.DatabaseURL &&
			name != config.Listen && name != config.MetricsListen {
			environ = append(environ, pair)
		}
	}
	defaults := append([]statedir.Setting{
		{Name: "EARSHOT_WEBHOOK_ALLOW_CIDRS", Value: "127.0.0.0/8,::1/128"},
		{Name: "EARSHOT_WEBHOOK_ALLOW_HTTP", Value: "true"},
		{Name: config.MailDir, Value: mailDir(u.Dir)},
		{Name: "EARSHOT_DRAIN_DELAY", Value: "0s"}, // no load balancer
	}, u.secrets...)
	if u.Demo {
		defaults = append(defaults, statedir.Setting{Name: "EARSHOT_WEBHOOK_RETRY_DELAYS", Value: demo.RetryDelays})
	}
	for _, s := range defaults {
		_, said := environ.LookupEnv(s.Name)
		_, fromFile := environ.LookupEnv(s.Name + "_FILE")
		if !said && !fromFile {
			environ = append(environ, s.Name+"="+s.Value)
		}
	}
	return environ
}

// serviceEnviron returns the settings together with the addresses of this stack.
func (u *up) serviceEnviron() []string {
	return append(u.settings(),
		config.DatabaseURL+"="+u.databaseURL(),
		config.Listen+"="+net.JoinHostPort(u.ports.host, strconv.Itoa(u.ports.api)),
		config.MetricsListen+"="+u.metricsAddress(),
		"TEMPORAL_ADDRESS="+u.temporal.Address(),
		"TEMPORAL_NAMESPACE="+devstack.Namespace,
		"TEMPORAL_CONFIG_FILE="+os.DevNull, // ignores the user's own configuration file
	)
}
