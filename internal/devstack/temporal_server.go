package devstack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	serverName = "temporal-server"
	// namespaceRetention is the time for which closed workflows are kept.
	namespaceRetention = 3 * 24 * time.Hour
	// systemNamespace exists as soon as the server runs.
	systemNamespace = "temporal-system"
)

// TemporalServerOptions configures a temporal-server, the production program, with its databases in
// a Postgres.
type TemporalServerOptions struct {
	// Dir contains the log, the configuration and the ports. It is created if necessary. Two
	// running programs can't share one.
	Dir string
	// Programs are those of TemporalServerPrograms.
	Programs TemporalPrograms
	// Database is the URL of a Postgres, with a user that may create databases. The databases
	// temporal and temporal_visibility are created, or migrated to the server's version. The URL
	// may name several hosts, one of which is the primary (target_session_attrs=read-write), and
	// use sslmode=verify-full with sslrootcert.
	Database string
	// Port is the preferred port of the frontend. 0 prefers the port of the last start in Dir. If
	// the port is taken, a free one is chosen.
	Port int
	// Namespaces are created if they don't exist.
	Namespaces []string
	// TLS enables mutual TLS: clients and server present certificates of the authority. Nil
	// disables TLS.
	TLS    *TemporalTLS
	Report Report
}

// TemporalTLS has the certificate files of the frontend: the authority's certificate, and a
// certificate and key signed for 127.0.0.1. Server and clients use the same certificate.
type TemporalTLS struct {
	CA, Cert, Key string
}

// TemporalDatabases returns the names of the databases of a temporal-server. A backup has to
// contain them.
func TemporalDatabases() (names []string) {
	for _, s := range stores {
		names = append(names, s.Database)
	}
	return names
}

// StartTemporalServer creates the server's databases if there are none and starts the server. It
// returns when all namespaces accept workflows. After a Kill or a Stop, the same call starts it
// again on the same ports. Ctx bounds only the start. The error quotes the end of the log.
func StartTemporalServer(ctx context.Context, o TemporalServerOptions) (*Temporal, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, errors.Wrap(err, "find the directory")
	}
	o.Dir = dir
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		return nil, errors.Wrap(err, "make the directory")
	}
	for try := 1; ; try++ {
		t, err := startTemporalServer(ctx, o)
		switch {
		case err == nil:
			return t, nil
		case ctx.Err() != nil:
			return nil, errors.Wrap(ctx.Err(), "start temporal-server")
		case t == nil:
			return nil, errors.Wrap(err, "start temporal-server")
		case try == startTries || !t.process.logSays("address already in use"):
			return nil, errors.Wrapf(err, "start temporal-server (end of %s follows)\n%s", t.Log(), Tail(t.Log(), failureLines))
		}
	}
}

func startTemporalServer(ctx context.Context, o TemporalServerOptions) (*Temporal, error) {
	held, err := takeClaim(ctx, o.Dir, serverName, syscall.SIGTERM, o.Report)
	if err != nil {
		return nil, err
	}
	t, err := launchTemporalServer(ctx, o, held)
	if err != nil {
		held.release()
		return nil, err
	}
	if err := t.awaitNamespaces(ctx, o.Namespaces); err != nil {
		_ = t.Stop(ctx) // the error of the start is more useful
		return t, err
	}
	return t, nil
}

func launchTemporalServer(ctx context.Context, o TemporalServerOptions, held *claim) (*Temporal, error) {
	settings, err := o.settings()
	if err != nil {
		return nil, err
	}
	if err := o.setUp(ctx); err != nil {
		return nil, err
	}
	if err := settings.write(filepath.Join(o.Dir, "config", "production.yaml")); err != nil {
		return nil, err
	}
	t := &Temporal{durable: true, uiPort: Headless, port: settings.Ports["frontend"].GRPC}
	if t.tls, err = o.TLS.client(); err != nil {
		return nil, err
	}
	t.process, err = startChild(spec{
		name: serverName,
		path: o.Programs.Server,
		// On loopback there is no other client to keep out. With TLS, every client with a
		// certificate may do everything.
		args: []string{"--root", o.Dir, "--config", "config", "--env", "production", "--allow-no-auth", "start"},
		env:  append(temporalEnv(o.Dir), "GOGC=400"), // as for the dev server
		log:  filepath.Join(o.Dir, serverName+".log"),
		stop: syscall.SIGTERM,
	}, held)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// client returns the TLS configuration of a client, or nil without TLS.
func (t *TemporalTLS) client() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, errors.Wrap(err, "load Temporal's certificate")
	}
	ca, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, errors.Wrap(err, "load the certificate of Temporal's authority")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.Errorf("there is no certificate in %s", t.CA)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// awaitNamespaces creates the namespaces as soon as the server accepts them. It returns when all of
// them accept workflows.
func (t *Temporal) awaitNamespaces(ctx context.Context, namespaces []string) error {
	if err := t.awaitReady(ctx, temporalReady, []string{systemNamespace}); err != nil {
		return err
	}
	c, err := t.client()
	if err != nil {
		return err
	}
	defer c.Close()
	for _, name := range namespaces {
		if err := registerNamespace(ctx, c, name); err != nil {
			return err
		}
	}
	return t.awaitReady(ctx, temporalReady, namespaces)
}

func registerNamespace(ctx context.Context, c client.Client, name string) error {
	_, err := c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(namespaceRetention),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return errors.Wrapf(err, "register namespace %s", name)
	}
	return nil
}
