package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The program that `make build` builds, and the time limit for its start.
const (
	program      = ".earshot/bin/earshot"
	serviceReady = time.Minute
)

// startService starts the program on a new database, with the Postgres and Temporal servers of
// withstack.
func startService(ctx context.Context) (at addresses, stop func(), err error) {
	at.temporal = os.Getenv("TEMPORAL_ADDRESS")
	server := os.Getenv("EARSHOT_TEST_POSTGRES_URL")
	if server == "" || at.temporal == "" {
		return at, nil, errors.New("this measures a service of its own: run make bench-guard or make bench-new")
	}
	if at.database, err = createDatabase(ctx, server); err != nil {
		return at, nil, err
	}
	listen, err := freeAddress()
	if err != nil {
		return at, nil, err
	}
	at.api = "http://" + listen
	env := append(os.Environ(), "DATABASE_URL="+at.database, "EARSHOT_LISTEN="+listen, "EARSHOT_LOG_LEVEL=error",
		"EARSHOT_SECRET_KEYS=guard:"+secret(), "EARSHOT_EMAIL_HASH_KEY="+secret(), "EARSHOT_DRAIN_DELAY=0s",
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", "EARSHOT_WEBHOOK_ALLOW_HTTP=true", "TEMPORAL_CONFIG_FILE="+os.DevNull)
	for _, args := range [][]string{{"migrate"}, {"temporal", "setup"}} {
		c := exec.CommandContext(ctx, filepath.FromSlash(program), args...) //nolint:gosec // our own program and words
		c.Env = env
		if said, err := c.CombinedOutput(); err != nil {
			return at, nil, errors.Wrapf(err, "earshot %s: %s", strings.Join(args, " "), said)
		}
	}
	c := exec.CommandContext(ctx, filepath.FromSlash(program), "serve") //nolint:gosec // see above
	c.Env, c.Stdout, c.Stderr = env, os.Stderr, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	if err := c.Start(); err != nil {
		return at, nil, errors.Wrap(err, "start the service")
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	stop = func() {
		_ = c.Process.Signal(syscall.SIGTERM) // fails only if the process has already ended
		<-ended                               //nolint:errcheck // that it was signaled is all that it could say
	}
	if err := ready(ctx, at.api, ended); err != nil {
		stop()
		return at, nil, err
	}
	return at, stop, nil
}

func createDatabase(ctx context.Context, server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.Wrap(err, "read EARSHOT_TEST_POSTGRES_URL")
	}
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", errors.Wrap(err, "reach Postgres")
	}
	defer func() { _ = c.Close(ctx) }()
	name := "guard_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := c.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", errors.Wrap(err, "make a database")
	}
	u.Path = "/" + name
	return u.String(), nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", errors.Wrap(err, "find a free port")
	}
	return l.Addr().String(), l.Close()
}

func secret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the program if the system has no randomness
	return base64.StdEncoding.EncodeToString(key)
}

func ready(ctx context.Context, api string, ended chan error) error {
	ctx, cancel := context.WithTimeout(ctx, serviceReady)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, api+"/readyz", nil)
		if err != nil {
			return errors.Wrap(err, "make a request")
		}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-ended:
			ended <- err
			return errors.Wrap(err, "the service ended before it was ready")
		case <-ctx.Done():
			return errors.Errorf("the service wasn't ready after %s", serviceReady)
		case <-tick.C:
		}
	}
}
