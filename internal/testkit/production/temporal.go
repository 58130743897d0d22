// Package production starts servers as in production, for tests and the fault harness: temporal-server
// with its databases in a Postgres, and a Postgres that follows another one.
package production

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/contrib/envconfig"
	"google.golang.org/protobuf/types/known/durationpb"

	"earshot/internal/devstack"
	"earshot/internal/devstack/process"
)

const (
	serverName = "temporal-server"
	// serverReady is many times the duration of a start and of the creation of the namespace.
	serverReady = 2 * time.Minute
	// serverGrace allows for an orderly stop, which takes about 3 s.
	serverGrace = 15 * time.Second
	// namespaceRetention is the time for which closed workflows are kept.
	namespaceRetention = 3 * 24 * time.Hour
	// systemNamespace exists as soon as the server runs.
	systemNamespace = "temporal-system"
)

var (
	// These two share most of their packages with the CLI, so they take only seconds after it.
	serverProgram = devstack.TemporalProgram{
		Name: serverName, Title: serverName, Package: devstack.TemporalServer + "/cmd/server",
		Modules: []string{devstack.TemporalServer},
		Takes:   "some seconds, or minutes where the Temporal CLI wasn't built from here",
	}
	sqlToolProgram = devstack.TemporalProgram{
		Name: "temporal-sql-tool", Title: "temporal-sql-tool", Package: devstack.TemporalServer + "/cmd/tools/sql",
		Modules: serverProgram.Modules, Takes: serverProgram.Takes,
	}
)

// Programs are the paths of the programs of a temporal-server.
type Programs struct {
	Server, SQLTool string
}

// BuildPrograms returns temporal-server and temporal-sql-tool of the version in tools/go.mod of the
// repository at root. It first builds those that are missing in the user's cache directory. It
// ignores programs on the PATH, because their schema version is unknown.
func BuildPrograms(ctx context.Context, root string, report devstack.Report) (p Programs, err error) {
	if p.Server, err = serverProgram.Built(ctx, root, report); err != nil {
		return p, err
	}
	p.SQLTool, err = sqlToolProgram.Built(ctx, root, report)
	return p, err
}

// TemporalOptions configures a temporal-server, the production program, with its databases in
// a Postgres.
type TemporalOptions struct {
	// Dir contains the log, the configuration and the ports. It is created if necessary. Two
	// running programs can't share one.
	Dir string
	// Programs are those of BuildPrograms.
	Programs Programs
	// Database is the URL of a Postgres, with a user that may create databases. The databases
	// temporal and temporal_visibility are created, or migrated to the server's version. The URL
	// may name several hosts, one of which is the primary (target_session_attrs=read-write), and
	// use sslmode=verify-full with sslrootcert.
	Database string
	// TLS enables mutual TLS: clients and server present certificates of the authority. Nil
	// disables TLS.
	TLS    *TemporalTLS
	Report devstack.Report
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

// Temporal is a running temporal-server. It ends with this program. Stop gives it 15 s to end.
type Temporal struct {
	*process.Process

	port int
	tls  *tls.Config // nil without TLS
	// registered is set after the creation of the namespace.
	registered bool
}

// StartTemporal creates the server's databases if there are none and starts the server. It returns
// when the namespace "default" accepts workflows. After a Kill or a Stop, the same call starts it again on the
// same ports. Ctx bounds only the start. The error quotes the end of the log.
func StartTemporal(ctx context.Context, o TemporalOptions) (*Temporal, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, errors.Wrap(err, "find the directory")
	}
	o.Dir = dir
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		return nil, errors.Wrap(err, "make the directory")
	}
	t := &Temporal{}
	if t.tls, err = o.TLS.client(); err != nil {
		return nil, err
	}
	t.Process, err = process.Start(ctx, process.Server{
		Name: serverName, Dir: dir,
		Prepare: func(ctx context.Context) (*exec.Cmd, error) { return t.prepare(ctx, o) },
		Ready:   t.ready, ReadyWithin: serverReady,
		Signals: []syscall.Signal{syscall.SIGTERM}, Grace: serverGrace,
		Report: o.Report,
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Temporal) prepare(ctx context.Context, o TemporalOptions) (*exec.Cmd, error) {
	// The parser's error would quote the password.
	database, err := url.Parse(o.Database)
	if err != nil {
		return nil, errors.New("read the address of Temporal's Postgres: it isn't a URL")
	}
	settings, err := o.settings(database)
	if err != nil {
		return nil, err
	}
	if err := o.setUp(ctx, settings); err != nil {
		return nil, err
	}
	if err := settings.write(filepath.Join(o.Dir, "config", "production.yaml")); err != nil {
		return nil, err
	}
	t.port = settings.Ports["frontend"].GRPC
	// On loopback there is no other client to keep out. With TLS, every client with a certificate may
	// do everything.
	cmd := exec.Command(o.Programs.Server, "--root", o.Dir, "--config", "config", "--env", "production", "--allow-no-auth", "start")
	cmd.Env = append(devstack.TemporalEnv(o.Dir), "GOGC=400") // as for the dev server
	return cmd, nil
}

// Address returns host and port of the gRPC frontend, for client.Options.
func (t *Temporal) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(t.port)) }

// client returns the TLS configuration of a client, or nil without TLS.
func (t *TemporalTLS) client() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	profile := envconfig.ClientConfigProfile{TLS: &envconfig.ClientConfigTLS{
		ClientCertPath: t.Cert, ClientKeyPath: t.Key, ServerCACertPath: t.CA,
	}}
	o, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return nil, errors.Wrap(err, "load Temporal's certificates")
	}
	return o.ConnectionOptions.TLS, nil
}

// ready creates the namespace as soon as the server accepts it. It returns nil when the namespace
// accepts workflows.
func (t *Temporal) ready(ctx context.Context) error {
	if err := devstack.TemporalReady(ctx, t.Address(), t.tls, systemNamespace); err != nil {
		return err
	}
	if !t.registered {
		if err := t.register(ctx); err != nil {
			return err
		}
		t.registered = true
	}
	return devstack.TemporalReady(ctx, t.Address(), t.tls, devstack.Namespace)
}

// register creates the namespace if it doesn't exist.
func (t *Temporal) register(ctx context.Context) error {
	c, err := devstack.TemporalClient(t.Address(), t.tls)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: devstack.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(namespaceRetention),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return errors.Wrapf(err, "register namespace %s", devstack.Namespace)
	}
	return nil
}
