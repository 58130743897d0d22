// Package deploy checks the files in deploy/ against the sources.
package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

var deployment = filepath.Join("..", "..", "deploy")

// setting is a line of `earshot settings --json`.
type setting struct {
	Name, Default    string
	Required, Secret bool
}

// settings returns the table of settings, which the program writes for `make deploy-check`.
func settings(t *testing.T) []setting {
	t.Helper()
	path := os.Getenv("SETTINGS")
	require.NotEmpty(t, path, "SETTINGS is missing: run make deploy-check")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var all []setting
	require.NoError(t, json.Unmarshal(text, &all))
	require.NotEmpty(t, all)
	return all
}

// loaded returns the deployment as Compose reads it with the given environment.
func loaded(t *testing.T, env ...string) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{filepath.Join(deployment, "compose.yaml")},
		cli.WithEnv(env), cli.WithProfiles([]string{"*"}), cli.WithResolvedPaths(true))
	require.NoError(t, err)
	p, err := o.LoadProject(t.Context())
	require.NoError(t, err)
	return p
}

// The settings that are fixed within the containers or useless there, with the reasons.
var notPassedThrough = map[string]string{
	"EARSHOT_LISTEN":         "the port outside is EARSHOT_PORT",
	"EARSHOT_HEALTH_LISTEN":  "only the container's own check asks there",
	"EARSHOT_METRICS_LISTEN": "prometheus.yml asks there",
	"EARSHOT_MAIL_DIR":       "for development; the container has no directory that it may write to",
}

func TestComposePassesEverySettingThroughAndEverySecretAsAFile(t *testing.T) {
	t.Parallel()
	var env []string
	known := map[string]bool{}
	for _, s := range settings(t) {
		known[s.Name] = true
		env = append(env, s.Name+"=chosen "+s.Name)
	}
	untouched, chosen := loaded(t), loaded(t, env...)
	for _, name := range []string{"api", "worker", "migrate", "temporal-setup"} {
		bare, set := untouched.Services[name], chosen.Services[name]
		for _, s := range settings(t) {
			switch value := set.Environment[s.Name]; {
			case notPassedThrough[s.Name] != "":
			case s.Secret:
				require.NotContains(t, set.Environment, s.Name, "%s: a secret is a file", name)
				secretFile(t, set, s.Name)
			default:
				require.NotNil(t, value, "%s can't set %s", name, s.Name)
				require.Equal(t, "chosen "+s.Name, *value, name)
			}
		}
		for variable := range bare.Environment {
			if strings.HasPrefix(variable, "OTEL_") {
				continue // OpenTelemetry's own (docs/operating.md, Traces)
			}
			require.True(t, known[strings.TrimSuffix(variable, "_FILE")], "%s: %s is no setting", name, variable)
		}
		require.Equal(t, ":4280", *bare.Environment["EARSHOT_LISTEN"])
		require.Equal(t, "temporal:7233", *bare.Environment["TEMPORAL_ADDRESS"])
	}
}

// secretFile checks that NAME_FILE points to a secret of the service.
func secretFile(t *testing.T, s types.ServiceConfig, name string) {
	t.Helper()
	path := s.Environment[name+"_FILE"]
	require.NotNil(t, path, "%s lacks %s_FILE", s.Name, name)
	source := strings.TrimPrefix(*path, "/run/secrets/")
	require.Equal(t, strings.ToLower(source), source)
	require.True(t, slices.ContainsFunc(s.Secrets, func(c types.ServiceSecretConfig) bool {
		return c.Source == source && (c.Target == "" || c.Target == source || c.Target == *path)
	}), "%s: %s is no secret of it", s.Name, *path)
}

func TestEveryServiceOfComposeIsLimitedPinnedAndWatched(t *testing.T) {
	t.Parallel()
	p := loaded(t)
	require.ElementsMatch(t, []string{
		"api", "worker", "migrate", "temporal-setup", "postgres", "temporal-schema", "temporal", "temporal-namespace", "temporal-ui",
		"prometheus", "grafana",
	}, p.ServiceNames())
	for name, s := range p.Services {
		once := strings.HasPrefix(s.Restart, "on-failure")
		require.NotZero(t, s.MemLimit, "%s has no limit of memory", name)
		require.NotZero(t, s.CPUS, "%s has no limit of processor time", name)
		require.Contains(t, s.SecurityOpt, "no-new-privileges:true", name)
		require.NotNil(t, s.Logging, "%s fills the disk with its log", name)
		require.False(t, s.Privileged, name)
		tag := s.Image[strings.LastIndex(s.Image, ":")+1:]
		require.NotContains(t, []string{"", "latest", s.Image}, tag, "%s isn't pinned", name)
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s is open to the network", name)
		}
		if !once {
			require.Equal(t, "unless-stopped", s.Restart, name)
			require.NotNil(t, s.HealthCheck, "nobody sees whether %s is well", name)
		}
		for other, d := range s.DependsOn {
			want := types.ServiceConditionHealthy
			if strings.HasPrefix(p.Services[other].Restart, "on-failure") {
				want = types.ServiceConditionCompletedSuccessfully
			}
			require.Equal(t, want, d.Condition, "%s waits for %s", name, other)
		}
	}
	for _, name := range []string{"api", "worker"} {
		s := p.Services[name]
		require.True(t, s.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop)
		require.Equal(t, types.HealthCheckTest{"CMD", "/usr/local/bin/earshot", "health"}, s.HealthCheck.Test)
		// docs/operating.md, Memory: 1500 MiB and a fifth more.
		require.EqualValues(t, 1500*6/5<<20, s.MemLimit, name)
	}
	require.Contains(t, p.Services["api"].DependsOn, "migrate")
	require.Contains(t, p.Services["worker"].DependsOn, "temporal-setup")
}

func TestComposeStartsObservabilityOnlyOnRequestAndMountsExistingFiles(t *testing.T) {
	t.Parallel()
	p := loaded(t)
	for name, s := range p.Services {
		require.Equal(t, name == "prometheus" || name == "grafana", slices.Contains(s.Profiles, "observability"), name)
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind || s.Profiles != nil {
				continue
			}
			_, err := os.Stat(v.Source)
			require.NoError(t, err, name)
			require.True(t, v.ReadOnly, "%s may change %s", name, v.Source)
		}
	}
	require.True(t, p.Networks["inside"].Internal)
	for _, name := range []string{"postgres", "temporal"} {
		require.Len(t, p.Services[name].Networks, 1)
		require.Empty(t, p.Services[name].Ports)
	}
}
