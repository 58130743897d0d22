package production

import (
	"context"
	_ "embed"
	"encoding/json"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgconn"

	"earshot/internal/devstack"
	"earshot/internal/devstack/process"
)

// stores are the databases of a server, with the number of connections of each of its four
// services. Together they leave two thirds of a devstack.Postgres's connections to other clients.
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

// serverSettings are the values for the configuration's template.
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

// servicePorts are the ports of one of the four services.
type servicePorts struct {
	GRPC, Membership int
}

func (o TemporalOptions) settings(database *url.URL) (s serverSettings, err error) {
	password, _ := database.User.Password()
	s = serverSettings{
		Stores: stores, Hosts: database.Host, User: database.User.Username(), Password: password, TLS: o.TLS,
		Attributes:    map[string]string{},
		DynamicConfig: filepath.Join(o.Dir, "config", "dynamic.yaml"),
	}
	for name, values := range database.Query() {
		switch name {
		case "sslmode":
			s.VerifyDatabase = values[0] == "verify-full"
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

// ports returns the ports of the last start if they are free. For a while, the other services try
// the old port of a killed service.
func (o TemporalOptions) ports() (map[string]servicePorts, error) {
	file := filepath.Join(o.Dir, "ports.json")
	wanted := map[string]servicePorts{}
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &wanted); err != nil {
			return nil, errors.Wrapf(err, "read %s", file)
		}
	}
	for _, name := range []string{"frontend", "history", "matching", "worker"} {
		p := wanted[name]
		for _, port := range []*int{&p.GRPC, &p.Membership} {
			var err error
			if *port, err = devstack.ChoosePort(*port, "Temporal's "+name, o.Report); err != nil {
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

// setUp creates the databases with the schema of the server's version, or migrates existing ones to
// it.
func (o TemporalOptions) setUp(ctx context.Context, settings serverSettings) error {
	// The tool accepts only one host: the one that satisfies the URL's target_session_attrs.
	conn, err := pgconn.Connect(ctx, o.Database)
	if err != nil {
		return errors.Wrap(err, "connect to Temporal's Postgres")
	}
	host, port, err := net.SplitHostPort(conn.Conn().RemoteAddr().String())
	_ = conn.Close(ctx)
	if err != nil {
		return errors.Wrap(err, "find Temporal's Postgres")
	}
	env := append(devstack.TemporalEnv(o.Dir), "SQL_PLUGIN=postgres12_pgx", "SQL_HOST="+host, "SQL_PORT="+port,
		"SQL_USER="+settings.User, "SQL_PASSWORD="+settings.Password)
	if settings.VerifyDatabase {
		env = append(env, "SQL_TLS=true", "SQL_TLS_CA_FILE="+settings.DatabaseCA)
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
				return errors.Wrapf(err, "temporal-sql-tool %s for %s: %s", args[0], s.Database, process.LastLines(string(out)))
			}
		}
	}
	return nil
}
