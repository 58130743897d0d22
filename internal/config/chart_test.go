package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
)

// ofTheChart lists the settings that don't occur in values.yaml under their own names. Each has its
// replacement, or the reason for its absence.
var ofTheChart = map[string]string{
	"EARSHOT_LISTEN":                   "the container's port, behind service.port",
	"EARSHOT_HEALTH_LISTEN":            "the container's port",
	"EARSHOT_METRICS_LISTEN":           "the container's port",
	"EARSHOT_MAIL_DIR":                 "nothing: it is for development, and a pod has no place to write",
	"EARSHOT_WORKER_DEPLOYMENT":        "worker.deployment",
	"EARSHOT_WORKER_BUILD_ID":          "worker.versions[].buildId",
	"TEMPORAL_ADDRESS":                 "temporal.address",
	"TEMPORAL_NAMESPACE":               "temporal.namespace",
	"TEMPORAL_TLS":                     "temporal.tls.enabled",
	"TEMPORAL_TLS_SERVER_NAME":         "temporal.tls.serverName",
	"TEMPORAL_TLS_CLIENT_CERT_PATH":    "temporal.tls.clientSecret",
	"TEMPORAL_TLS_CLIENT_KEY_PATH":     "temporal.tls.clientSecret",
	"TEMPORAL_TLS_SERVER_CA_CERT_PATH": "authorities, which serve Postgres and the mail server too",
}

var aNumber = regexp.MustCompile(`^[0-9]+$`)

func TestEverySettingCanBeSetInTheChart(t *testing.T) {
	t.Parallel()
	chart := filepath.Join("..", "..", "deploy", "helm", "earshot")
	text, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	require.NoError(t, err)
	type value struct {
		Type        string
		Description string
	}
	type values struct {
		Properties map[string]value
		Required   []string
	}
	var schema struct {
		Properties struct{ Settings, Secrets values }
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	var templates strings.Builder
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		templates.Write(text)
	}

	settings, secrets, required := schema.Properties.Settings.Properties, schema.Properties.Secrets.Properties, []string{}
	for _, s := range config.Settings() {
		place, elsewhere := ofTheChart[s.Name]
		switch {
		case elsewhere:
			require.NotContains(t, settings, s.Name)
			require.Equal(t, !strings.HasPrefix(place, "nothing:") && s.Name != "TEMPORAL_TLS_SERVER_CA_CERT_PATH",
				strings.Contains(templates.String(), s.Name), "%s: %s", s.Name, place)
			continue
		case s.Secret:
			require.Contains(t, secrets, s.Name)
			require.Equal(t, s.Help, secrets[s.Name].Description, s.Name)
			delete(secrets, s.Name)
		default:
			require.Contains(t, settings, s.Name)
			require.Equal(t, value{Type: typeOf(s), Description: s.Help}, settings[s.Name], s.Name)
			delete(settings, s.Name)
		}
		if s.Required {
			require.True(t, s.Secret, "%s: values.yaml has no place for what is required and isn't secret", s.Name)
			required = append(required, s.Name)
		}
	}
	require.Empty(t, settings, "the chart has settings that there aren't")
	require.Empty(t, secrets, "the chart has settings that there aren't")
	require.ElementsMatch(t, required, schema.Properties.Secrets.Required)
}

// typeOf returns the type of a setting in the chart's values, derived from its default.
func typeOf(s config.Setting) string {
	switch {
	case aNumber.MatchString(s.Default):
		return "integer"
	case s.Default == "true" || s.Default == "false":
		return "boolean"
	default:
		return "string"
	}
}
