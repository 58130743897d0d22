package main

import (
	"bytes"
	"encoding/base64"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"earshot/internal/config"
)

// podOf has the fields of a Deployment or a Job that the test reads.
type podOf struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args []string
					Env  []struct{ Name, Value string }
				}
				Volumes []struct {
					Name      string
					Projected struct {
						Sources []struct {
							Secret struct{ Items []struct{ Key, Path string } }
						}
					}
				}
			}
		}
	}
}

// The test reads the chart's default output from the golden file of tools/helm.
func TestEachCommandOfTheChartHasSufficientSettings(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile(filepath.Join("..", "..", "tools", "helm", "testdata", "defaults.yaml"))
	require.NoError(t, err)
	var started []string
	for documents := yaml.NewDecoder(bytes.NewReader(golden)); ; {
		var o podOf
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if o.Kind != "Deployment" && o.Kind != "Job" {
			continue
		}
		c := o.Spec.Template.Spec.Containers[0]
		started = append(started, strings.Join(c.Args, " "))
		cmd, rest, err := newRootCommand().Find(c.Args)
		require.NoError(t, err, o.Metadata.Name)
		require.True(t, cmd.Runnable(), o.Metadata.Name)
		require.NoError(t, cmd.ParseFlags(rest), o.Metadata.Name)

		environ := mounted(t, o)
		_, err = config.Load(environ)
		require.NoError(t, err, o.Metadata.Name)
		_, err = temporalOptions(environ, slog.New(slog.DiscardHandler))
		require.NoError(t, err, o.Metadata.Name)
	}
	require.ElementsMatch(t, []string{"serve --no-worker", "worker", "migrate", "temporal setup"}, started)
}

// mounted returns the environment of a pod, with its mounted files written to a directory of the
// test.
func mounted(t *testing.T, o podOf) (environ []string) {
	t.Helper()
	const mount = "/run/secrets/earshot"
	pod, dir := o.Spec.Template.Spec, t.TempDir()
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	secrets := map[string]string{
		"DATABASE_URL": "postgres://db.example.com/earshot", "EARSHOT_SECRET_KEYS": "k1:" + key, "EARSHOT_EMAIL_HASH_KEY": key,
	}
	for _, source := range pod.Volumes[0].Projected.Sources {
		for _, item := range source.Secret.Items {
			require.Contains(t, secrets, item.Key)
			require.NoError(t, os.WriteFile(filepath.Join(dir, item.Path), []byte(secrets[item.Key]), 0o600))
		}
	}
	known := map[string]bool{}
	for _, s := range config.Settings() {
		known[s.Name], known[s.Name+"_FILE"] = true, true
	}
	for _, variable := range pod.Containers[0].Env {
		require.True(t, known[variable.Name], "%s sets %s, which nobody reads", o.Metadata.Name, variable.Name)
		environ = append(environ, variable.Name+"="+strings.Replace(variable.Value, mount, dir, 1))
	}
	return environ
}
