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
	// namespaceRetention is how long closed runs of a namespace are kept.
	namespaceRetention = 3 * 24 * time.Hour
	// systemNamespace is there as soon as the server is.
	systemNamespace = "temporal-system"
)

// TemporalServerOptions says where and how a temporal-server runs: the program of
// production, with its databases in a Postgres, not the dev server.
type TemporalServerOptions struct {
	// Dir holds the log, the configuration and the ports: made if it isn't there. Two
	// running programs can't share one.
	Dir string
	// Programs are those of TemporalServerPrograms.
	Programs TemporalPrograms
	// Database is the URL of a Postgres, with a user who may create databases. The databases
	// temporal and temporal_visibility are made in it, or brought to the version of the
	// server. The URL may name several hosts, one of which is the primary
	// (target_session_attrs=read-write), and sslmode=verify-full with sslrootcert.
	Database string
	// Port is the preferred one of the frontend; if it is 0 it is that of the last start in
	// Dir. If it is taken, a free one is chosen.
	Port int
	// Namespaces are made if they aren't there.
	Namespaces []string
	// TLS has clients show a certificate of the authority, and shows them one. Nil: plain.
	TLS    *TemporalTLS
	Report Report
}

// TemporalTLS are the files of the frontend: the certificate of an authority, and one that
// it signed for 127.0.0.1, as server and as client, with its key.
type TemporalTLS struct {
	CA, Cert, Key string
}

// TemporalDatabases are the names of the databases of a temporal-server: what has to be
// backed up of it.
func TemporalDatabases() (names []string) {
	for _, s := range stores {
		names = append(names, s.Database)
	}
	return names
}

// StartTemporalServer makes the server's databases if there are none, starts it and returns
// when workflows can be started in all namespaces. After a Kill or a Stop the same call
// starts it again, on the same ports. Ctx bounds the start only. The error quotes the end of
// the log.
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
		_ = t.Stop(ctx) // the error of the start says more
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
		// Nobody else is on loopback whom the server should keep out; with TLS, who has a
		// certificate may do everything.
		args: []string{"--root", o.Dir, "--config", "config", "--env", "production", "--allow-no-auth", "start"},
		env:  append(temporalEnv(o.Dir), "GOGC=400"), // as the dev server's, for the services beside it
		log:  filepath.Join(o.Dir, serverName+".log"),
		stop: syscall.SIGTERM,
	}, held)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// client is how a client of the frontend connects, nil without TLS.
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

// awaitNamespaces returns when workflows can be started in the namespaces, which it makes
// as soon as the server can.
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
