package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/devstack"
)

const (
	// databaseConns is each process's limit of connections. Three processes stay below Postgres's
	// 200.
	databaseConns = 24
	// retryDelays replaces 30 s, 2 min, 10 min and 1 h, so that a delivery can fail permanently
	// during a run.
	retryDelays = "1s,1s,2s,3s"
	// askTimeout bounds one request to a process that may be cut off.
	askTimeout = 2 * time.Second
)

// stack is a complete deployment: Postgres, Temporal, an API and two workers. Each process has a
// link to each server, and the harness can cut it. A stack for production has two APIs behind a
// balancer.
type stack struct {
	dir, program string
	production   bool
	report       devstack.Report

	postgres        *devstack.Postgres
	temporal        temporalServer
	postgresOptions devstack.PostgresOptions
	// startTemporal also restarts it, at the address that its clients use.
	startTemporal func(ctx context.Context) (temporalServer, error)
	// temporalLock is held during a restart of Temporal. unwatch ends watchTemporal.
	temporalLock sync.Mutex
	unwatch      func()
	// temporalProgram is the program that prints the version.
	temporalProgram string

	apis, workers []*service
	services      []*service // all of them
	balancer      *balancer
	links         []link
	// url is the clients' address of the APIs.
	url string
	env []string
	// direct is the database's address on the harness's own link, which is never cut.
	direct string
}

// temporalServer is Temporal's dev server, or temporal-server as in production.
type temporalServer interface {
	Address() string
	Done() <-chan struct{}
	Kill()
}

// link is the network between a process and a server.
type link struct {
	from, to string
	proxy    *proxy
}

// harnessLink is the process name of the harness's own link, which is never cut.
const harnessLink = "harness"

// database is the name of the service's database.
const database = "earshot"

// startStack starts everything and returns when it is ready. The program is built with failpoints.
// Postgres's data are in the directory postgres of dir.
func startStack(ctx context.Context, production bool, dir, program string, report devstack.Report) (_ *stack, err error) {
	s := &stack{dir: dir, program: program, production: production, report: report}
	defer func() {
		if err != nil {
			s.stop(false)
		}
	}()
	if err := s.startServers(ctx); err != nil {
		return nil, err
	}
	if s.direct, err = s.databaseBy(harnessLink); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.startServices(); err != nil {
		return nil, err
	}
	for _, p := range s.services {
		if err := p.awaitReady(ctx, 0); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *stack) startServers(ctx context.Context) error {
	// Without Durable, a kill of Postgres alone would lose committed data.
	s.postgresOptions = devstack.PostgresOptions{Dir: filepath.Join(s.dir, "postgres"), Durable: true, Report: s.report}
	var err error
	if s.postgres, err = devstack.StartPostgres(ctx, s.postgresOptions); err != nil {
		return err
	}
	if err := s.postgres.CreateDatabase(ctx, database); err != nil {
		return err
	}
	if s.production {
		if err := s.ownDatabase(ctx); err != nil {
			return err
		}
		err = s.chooseServer(ctx)
	} else {
		err = s.chooseDevServer(ctx)
	}
	if err != nil {
		return errors.Wrap(err, "find Temporal")
	}
	temporal, err := s.startTemporal(ctx)
	if err != nil {
		return err
	}
	s.temporal = temporal
	return nil
}

// chooseDevServer selects Temporal's development server, with its database on disk.
func (s *stack) chooseDevServer(ctx context.Context) (err error) {
	o := devstack.TemporalOptions{
		Dir: filepath.Join(s.dir, "temporal"), DatabaseFile: true, UIPort: devstack.Headless, Report: s.report,
	}
	if o.Binary, err = devstack.TemporalBinary(ctx, repository, s.report); err != nil {
		return err
	}
	if o.Port, err = devstack.FreePort(); err != nil {
		return err
	}
	s.temporalProgram = o.Binary
	s.startTemporal = func(ctx context.Context) (temporalServer, error) { return devstack.StartTemporal(ctx, o) }
	return nil
}

// hashKey is the key of the address hashes. It is also the sealing key.
var hashKey = []byte(strings.Repeat("k", 32))

// hashOf returns the hash that the service stores for an address.
func hashOf(address string) []byte {
	mac := hmac.New(sha256.New, hashKey)
	mac.Write([]byte(address))
	return mac.Sum(nil)
}

// prepare writes the schema and the search attributes.
func (s *stack) prepare(ctx context.Context) (err error) {
	s.env = append(s.settings(), "DATABASE_URL="+s.asService(s.direct), "TEMPORAL_ADDRESS="+s.temporal.Address())
	if s.production {
		if s.env, err = s.likeCompose("commands", s.env); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"migrate"}, {"temporal", "setup", "--file", filepath.Join(repository, "temporal-dev.yaml")},
	} {
		if err := s.command(ctx, nil, args...); err != nil {
			return err
		}
	}
	return nil
}

// settings returns the environment of every process.
func (s *stack) settings() []string {
	key := base64.StdEncoding.EncodeToString(hashKey)
	return append(cleanEnviron(),
		"EARSHOT_SECRET_KEYS=test:"+key, "EARSHOT_EMAIL_HASH_KEY="+key,
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", "EARSHOT_WEBHOOK_ALLOW_HTTP=true",
		"EARSHOT_WEBHOOK_RETRY_DELAYS="+retryDelays, "EARSHOT_RATE_LIMIT=100000000",
		"EARSHOT_MAIL_DIR="+filepath.Join(s.dir, "mail"),
		// Each visitor has its own network: the harness plays a trusted proxy.
		"EARSHOT_PUBLIC_ORIGIN="+publicOrigin, "EARSHOT_TRUSTED_PROXIES=127.0.0.0/8",
		fmt.Sprintf("EARSHOT_DATABASE_MAX_CONNS=%d", databaseConns),
	)
}

// command runs a command of the program. If into isn't nil, it decodes the printed JSON.
func (s *stack) command(ctx context.Context, into any, args ...string) error {
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Env = s.env
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = errors.Errorf("%s: %s", err, exit.Stderr)
		}
		return errors.Wrapf(err, "run earshot %s", args[0])
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(out, into); err != nil {
		return errors.Wrapf(err, "read what earshot %s says", args[0])
	}
	return nil
}

func (s *stack) startServices() error {
	names := []string{"api"}
	if s.production {
		names = []string{"api-1", "api-2"}
	}
	for _, name := range names {
		port, err := devstack.FreePort()
		if err != nil {
			return errors.Wrap(err, "choose an API's port")
		}
		listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		p := &service{name: name, args: []string{"serve", "--no-worker"}, listen: listen}
		p.ready = func(string) bool { return answers(p.url() + "/healthz") }
		s.apis = append(s.apis, p)
	}
	for _, name := range []string{"worker-1", "worker-2"} {
		s.workers = append(s.workers, &service{name: name, args: []string{"worker"}, ready: says})
	}
	for _, p := range append(append([]*service{}, s.apis...), s.workers...) {
		if err := s.startService(p); err != nil {
			return err
		}
		s.services = append(s.services, p)
	}
	s.url = s.apis[0].url()
	if !s.production {
		return nil
	}
	var err error
	if s.balancer, err = newBalancer(s.apis[0].listen, s.apis[1].listen); err != nil {
		return err
	}
	s.url = "http://" + s.balancer.address()
	return nil
}

// startService starts a process with its own links.
func (s *stack) startService(p *service) error {
	toDatabase, err := s.databaseBy(p.name)
	if err != nil {
		return err
	}
	toTemporal, err := s.link(p.name, "temporal", s.temporal.Address())
	if err != nil {
		return err
	}
	p.path, p.log = s.program, filepath.Join(s.dir, p.name+".log")
	p.env = append(s.settings(),
		"DATABASE_URL="+s.asService(toDatabase), "TEMPORAL_ADDRESS="+toTemporal, "EARSHOT_LISTEN="+p.listen)
	if s.production {
		if p.env, err = s.likeCompose(p.name, p.env); err != nil {
			return err
		}
	}
	p.run()
	return nil
}

// databaseBy makes a link for a process and returns the database's address on it.
func (s *stack) databaseBy(process string) (string, error) {
	u, err := url.Parse(s.postgres.URL(database))
	if err != nil {
		return "", errors.Wrap(err, "read Postgres's address")
	}
	u.Host, err = s.link(process, "postgres", u.Host)
	return u.String(), err
}

func (s *stack) link(from, to, target string) (address string, err error) {
	p, err := newProxy(target)
	if err != nil {
		return "", err
	}
	s.links = append(s.links, link{from: from, to: to, proxy: p})
	return p.address(), nil
}

// answers reports whether the URL answers with 200.
func answers(url string) bool {
	ask := http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := ask.Get(url)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// tellAddresses reports the addresses of a stack that keeps running.
func (s *stack) tellAddresses() {
	s.report("the API is at %s, Temporal at %s, the database at %s; logs and all else in %s. Ctrl-C ends it.",
		s.url, s.temporal.Address(), s.postgres.URL(database), s.dir)
}

// stop ends every process. It removes the databases unless keep is set.
func (s *stack) stop(keep bool) {
	if s.unwatch != nil {
		s.unwatch()
	}
	for _, p := range s.services {
		p.stop()
	}
	if s.balancer != nil {
		s.balancer.close()
	}
	for _, l := range s.links {
		l.proxy.close()
	}
	if s.temporal != nil {
		s.temporal.Kill()
	}
	if s.postgres != nil {
		// An orderly stop: a killed Postgres would leave its shared memory behind.
		if err := s.postgres.Stop(context.Background()); err != nil && s.report != nil {
			s.report("%v", err)
		}
	}
	if keep {
		return
	}
	if err := devstack.Remove(s.postgresOptions.Dir); err != nil && s.report != nil {
		s.report("%v", err)
	}
}

// cleanEnviron returns the harness's environment without settings of the service, Temporal or the
// database.
func cleanEnviron() (env []string) {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "EARSHOT_") && !strings.HasPrefix(name, "TEMPORAL_") &&
			!strings.HasPrefix(name, "DATABASE_URL") {
			env = append(env, pair)
		}
	}
	return env
}
