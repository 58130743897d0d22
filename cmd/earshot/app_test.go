package main

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/fx"

	"earshot/internal/config"
)

func TestEveryRoleIsWiredCompletely(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]role{
		"API and worker": roleAPI | roleWorker, "API only": roleAPI, "worker only": roleWorker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := slog.New(slog.DiscardHandler)
			require.NoError(t, fx.ValidateApp(application(config.Config{}, client.Options{}, log, r, func(error) {})))
		})
	}
}

// fx starts parts in the order of their invocation and stops them in reverse. It invokes fx.Module
// before a plain fx.Invoke, whatever their order in the list.
func TestPartsStartInTheOrderOfTheirList(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	c, err := config.Load([]string{
		"DATABASE_URL=postgres://nobody@127.0.0.1:1/nowhere", "EARSHOT_SECRET_KEYS=test:" + key, "EARSHOT_EMAIL_HASH_KEY=" + key,
	})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		role role
		want []string
	}{
		"API and worker": {roleAPI | roleWorker, []string{"app", "delivery", "worker", "dispatch", "api", "mcp", "web"}},
		"API only":       {roleAPI, []string{"app", "delivery", "worker", "dispatch", "api", "mcp", "web"}},
		"worker only":    {roleWorker, []string{"app", "delivery", "worker", "dispatch", "api"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			debug := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			require.NoError(t, fx.New(application(c, client.Options{}, debug, tc.role, func(error) {})).Err())
			var invoked []string
			for _, found := range regexp.MustCompile(`msg=invoking function=earshot/(?:internal/)?(\w+)`).FindAllStringSubmatch(log.String(), -1) {
				invoked = append(invoked, found[1])
			}
			require.Equal(t, tc.want, invoked)
		})
	}
}

// The table of settings repeats the variables that Temporal's envconfig package reads. This test
// fails when the package changes them.
func TestEverySettingOfTemporalsClientsCounts(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("secret\n"), 0o600))
	certificate := filepath.Join("..", "..", "nowhere.pem")
	log := slog.New(slog.DiscardHandler)
	none := []string{"TEMPORAL_CONFIG_FILE=" + os.DevNull}
	for _, s := range config.Settings() {
		if s.Temporal {
			none = append(none, s.Name+"=")
		}
	}
	plain, err := temporalOptions(none, log)
	require.NoError(t, err)
	require.Nil(t, plain.ConnectionOptions.TLS, "an empty variable turns nothing on")
	require.Nil(t, plain.Credentials)
	require.Equal(t, client.DefaultHostPort, plain.HostPort)
	require.Equal(t, client.DefaultNamespace, plain.Namespace)

	with := func(pairs ...string) (client.Options, error) { return temporalOptions(append(none, pairs...), log) }
	o, err := with("TEMPORAL_ADDRESS=temporal.example.com:7233", "TEMPORAL_NAMESPACE=feedback",
		"TEMPORAL_TLS_SERVER_NAME=temporal", "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION=true", "TEMPORAL_API_KEY_FILE="+key)
	require.NoError(t, err)
	require.Equal(t, "temporal.example.com:7233", o.HostPort)
	require.Equal(t, "feedback", o.Namespace)
	require.Equal(t, "temporal", o.ConnectionOptions.TLS.ServerName)
	require.True(t, o.ConnectionOptions.TLS.InsecureSkipVerify)
	require.NotNil(t, o.Credentials)
	o, err = with("TEMPORAL_TLS=true")
	require.NoError(t, err)
	require.NotNil(t, o.ConnectionOptions.TLS)
	for _, name := range []string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH", "TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CLIENT_KEY_PATH"} {
		_, err = with(name + "=" + certificate)
		require.ErrorContains(t, err, "TLS config", name)
	}
	_, err = with("TEMPORAL_API_KEY_FILE=/nowhere/key")
	require.ErrorContains(t, err, "TEMPORAL_API_KEY: TEMPORAL_API_KEY_FILE names a file that can't be read")
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	for _, cmd := range newRootCommand().Commands() {
		require.NotEmpty(t, cmd.Short, cmd.Name())
		for _, sub := range cmd.Commands() {
			require.NotEmpty(t, sub.Short, sub.CommandPath())
		}
	}
}
