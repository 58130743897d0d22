package commands

import (
	"net"
	"os"
	"strconv"

	"github.com/go-faster/errors"
	"go.yaml.in/yaml/v3"

	"earshot/internal/config"
	"earshot/internal/devstack"
)

// The preferred ports are consecutive and below the range of ephemeral ports. Temporal's ports are
// in temporal-dev.yaml.
const (
	defaultAPIPort      = 4280
	defaultPostgresPort = 4281
	defaultMetricsPort  = 4282
)

const (
	apiPortVariable      = "EARSHOT_PORT"
	metricsPortVariable  = "EARSHOT_METRICS_PORT"
	postgresPortVariable = "EARSHOT_POSTGRES_PORT"
	temporalPortVariable = "EARSHOT_TEMPORAL_PORT"
	uiPortVariable       = "EARSHOT_TEMPORAL_UI_PORT"
)

// ports are the preferred ports of a stack. 0 means any free port.
type ports struct {
	host                                    string // listen address of the API
	api, postgres, metrics, temporal, webUI int
}

// wish is the choice of one port, from a default or a variable.
type wish struct {
	variable string
	number   *int
	// chosenBy is the variable that set the port, in which case no other port will do. It is "" for
	// a default.
	chosenBy string
}

// choosePorts reads the ports that the environment sets. Such a port must be free, because its user
// relies on it. A default that is taken is replaced later, when the port is needed.
func choosePorts(environ config.Environ, temporalDev string) (ports, error) {
	p := ports{host: "127.0.0.1", api: defaultAPIPort, postgres: defaultPostgresPort, metrics: defaultMetricsPort}
	var err error
	if p.temporal, p.webUI, err = temporalPorts(temporalDev); err != nil {
		return ports{}, err
	}
	wishes := []*wish{
		{variable: apiPortVariable, number: &p.api},
		{variable: postgresPortVariable, number: &p.postgres},
		{variable: metricsPortVariable, number: &p.metrics},
		{variable: temporalPortVariable, number: &p.temporal},
		{variable: uiPortVariable, number: &p.webUI},
	}
	if err := p.readListen(environ, wishes[0]); err != nil {
		return ports{}, err
	}
	for _, w := range wishes {
		if text, ok := environ.LookupEnv(w.variable); ok && text != "" {
			if err := w.read(w.variable, text); err != nil {
				return ports{}, err
			}
		}
	}
	return p, settle(wishes)
}

// readListen reads the address and port from the service's own variable, for an API that doesn't
// listen on loopback.
func (p *ports) readListen(environ config.Environ, api *wish) error {
	text, ok := environ.LookupEnv(config.Listen)
	if !ok || text == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return errors.Errorf("%s=%s: wants host:port", config.Listen, text)
	}
	p.host = host
	return api.read(config.Listen, port)
}

func (w *wish) read(variable, text string) error {
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return errors.Errorf("%s=%s: wants a port, 0 to 65535; 0 takes any free one", variable, text)
	}
	*w.number, w.chosenBy = int(number), variable
	return nil
}

// settle returns an error for a chosen port that is taken or chosen twice. A default gives way to
// the same port chosen for another part.
func settle(wishes []*wish) error {
	takenBy := map[int]*wish{}
	for _, w := range wishes {
		if w.chosenBy == "" || *w.number == 0 {
			continue
		}
		if other := takenBy[*w.number]; other != nil {
			return errors.Errorf("%s and %s are both %d: choose two ports", other.chosenBy, w.chosenBy, *w.number)
		}
		takenBy[*w.number] = w
	}
	for number, w := range takenBy {
		if !devstack.PortFree(number) {
			return errors.Errorf("port %d (%s) is taken: stop what listens there, choose another one, or 0 for any free one", number, w.chosenBy)
		}
	}
	for _, w := range wishes {
		if w.chosenBy == "" && takenBy[*w.number] != nil {
			*w.number = 0
		}
	}
	return nil
}

// temporalPorts reads the ports in the section of temporal-dev.yaml that the temporal CLI reads.
func temporalPorts(temporalDev string) (port, webUI int, err error) {
	text, err := os.ReadFile(temporalDev)
	if err != nil {
		return 0, 0, errors.Wrap(err, "read the dev server's flags")
	}
	var flags struct {
		Env struct {
			Dev struct {
				Port  uint16
				WebUI uint16 `yaml:"ui-port"`
			}
		}
	}
	if err := yaml.Unmarshal(text, &flags); err != nil {
		return 0, 0, errors.Wrapf(err, "read %s", temporalDev)
	}
	dev := flags.Env.Dev
	if dev.Port == 0 || dev.WebUI == 0 {
		return 0, 0, errors.Errorf("%s: env.dev.port and env.dev.ui-port want a port", temporalDev)
	}
	return int(dev.Port), int(dev.WebUI), nil
}
