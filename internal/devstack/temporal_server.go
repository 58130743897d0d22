package devstack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgconn"
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
	// verifyFull is the sslmode that checks who the database is.
	verifyFull = "verify-full"
)

// The databases of a server and how many connections each of its four services may have to
// them. Together they leave two thirds of a Postgres of maxConnections to others.
var stores = []store{
	{Name: "default", Database: "temporal", Connections: 12, schema: "postgresql/v12/temporal"},
	{Name: "visibility", Database: "temporal_visibility", Connections: 4, schema: "postgresql/v12/visibility"},
}

type store struct {
	Name, Database string
	Connections    int
	schema         string
}

var (
	//go:embed temporal-server.yaml
	serverConfig string
	//go:embed temporal-server-dynamic.yaml
	serverDynamicConfig []byte

	serverTemplate = template.Must(template.New(serverName).Parse(serverConfig))
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

// serverSettings fill in the configuration.
type serverSettings struct {
	Stores                []store
	Hosts, User, Password string
	Attributes            map[string]string
	VerifyDatabase        bool
	DatabaseCA            string
	TLS                   *TemporalTLS
	Ports                 map[string]servicePorts
	DynamicConfig         string
}

// servicePorts are those of one of the four services.
type servicePorts struct {
	GRPC, Membership int
}

func (o TemporalServerOptions) settings() (serverSettings, error) {
	u, err := o.database()
	if err != nil {
		return serverSettings{}, err
	}
	password, _ := u.User.Password()
	s := serverSettings{
		Stores: stores, Hosts: u.Host, User: u.User.Username(), Password: password, TLS: o.TLS,
		Attributes:    map[string]string{},
		DynamicConfig: filepath.Join(o.Dir, "config", "dynamic.yaml"),
	}
	for name, values := range u.Query() {
		switch name {
		case "sslmode":
			s.VerifyDatabase = values[0] == verifyFull
		case "sslrootcert":
			s.DatabaseCA = values[0]
		default:
			s.Attributes[name] = values[0]
		}
	}
	if s.Ports, err = o.ports(); err != nil {
		return s, err
	}
	if err := os.WriteFile(s.DynamicConfig, serverDynamicConfig, 0o600); err != nil {
		return s, errors.Wrap(err, "write the dynamic configuration")
	}
	return s, nil
}

// ports are those of the last start where they are free: the other services look for a
// service that was killed at its old port for a while.
func (o TemporalServerOptions) ports() (map[string]servicePorts, error) {
	file := filepath.Join(o.Dir, "ports.json")
	wanted := map[string]servicePorts{}
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &wanted); err != nil {
			return nil, errors.Wrapf(err, "read %s", file)
		}
	}
	if o.Port != 0 {
		wanted["frontend"] = servicePorts{GRPC: o.Port, Membership: wanted["frontend"].Membership}
	}
	for _, name := range []string{"frontend", "history", "matching", "worker"} {
		p := wanted[name]
		for _, port := range []*int{&p.GRPC, &p.Membership} {
			var err error
			if *port, err = choosePort(*port, "Temporal's "+name, o.Report); err != nil {
				return nil, err
			}
		}
		wanted[name] = p
	}
	text, err := json.Marshal(wanted)
	if err != nil {
		return nil, errors.Wrap(err, "encode the ports")
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, errors.Wrap(err, "keep the ports")
	}
	return wanted, nil
}

func (s serverSettings) write(path string) error {
	var text strings.Builder
	if err := serverTemplate.Execute(&text, s); err != nil {
		return errors.Wrap(err, "fill in the configuration")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return errors.Wrap(err, "write the configuration")
	}
	return nil
}

// setUp makes the databases with the schema of the server's version, or brings those that
// are there to it.
func (o TemporalServerOptions) setUp(ctx context.Context) error {
	// Of several hosts the tool takes one: the one that answers as the URL wants it.
	conn, err := pgconn.Connect(ctx, o.Database)
	if err != nil {
		return errors.Wrap(err, "connect to Temporal's Postgres")
	}
	host, port, err := net.SplitHostPort(conn.Conn().RemoteAddr().String())
	_ = conn.Close(ctx)
	if err != nil {
		return errors.Wrap(err, "find Temporal's Postgres")
	}
	u, err := o.database()
	if err != nil {
		return err
	}
	password, _ := u.User.Password()
	env := append(temporalEnv(o.Dir), "SQL_PLUGIN=postgres12_pgx", "SQL_HOST="+host, "SQL_PORT="+port,
		"SQL_USER="+u.User.Username(), "SQL_PASSWORD="+password)
	if u.Query().Get("sslmode") == verifyFull {
		env = append(env, "SQL_TLS=true", "SQL_TLS_CA_FILE="+u.Query().Get("sslrootcert"))
	}
	for _, s := range stores {
		for _, args := range [][]string{
			{"create-database", "--defaultdb", "postgres"},
			{"setup-schema", "--version", "0.0"},
			{"update-schema", "--schema-name", s.schema},
		} {
			cmd := exec.CommandContext(ctx, o.Programs.SQLTool, args...)
			cmd.Dir, cmd.Env = o.Dir, append(env, "SQL_DATABASE="+s.Database)
			if out, err := cmd.CombinedOutput(); err != nil {
				return errors.Wrapf(err, "temporal-sql-tool %s for %s: %s", args[0], s.Database, lastLines(string(out), failureLines))
			}
		}
	}
	return nil
}

// database is the address of the Postgres; the error of reading it would quote the password.
func (o TemporalServerOptions) database() (*url.URL, error) {
	u, err := url.Parse(o.Database)
	if err != nil {
		return nil, errors.New("read the address of Temporal's Postgres: it isn't a URL")
	}
	return u, nil
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
