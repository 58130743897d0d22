package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
	"earshot/internal/devstack"
	"earshot/internal/testkit/tier"
)

// address returns a free address on loopback.
func address(t *testing.T) string {
	t.Helper()
	port, err := devstack.FreePort()
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func TestAContainersCheckNeedsNoSettingOfItsOwn(t *testing.T) {
	t.Parallel()
	health := address(t)
	p := newProgram(t, append(temporalSettings(t), "EARSHOT_HEALTH_LISTEN="+health)...)
	_, port, _ := strings.Cut(p.url, "127.0.0.1")
	out, err := p.command("health")
	require.Error(t, err, "nothing runs")
	require.Equal(t, "earshot: nobody listens at "+p.url+" (EARSHOT_LISTEN) or http://"+health+" (EARSHOT_HEALTH_LISTEN)\n", out)

	w := p.worker()
	for _, args := range [][]string{{"health"}, {"health", "--url", "http://" + health + "/"}} {
		out, err = p.command(args...)
		require.NoError(t, err, out)
		require.JSONEq(t, `{"status":"ok"}`, out)
	}
	require.Eventually(t, func() bool {
		out, err = p.command("health", "--ready")
		return err == nil
	}, waitLimit, pollInterval)
	require.JSONEq(t, `{"status":"ready","checks":{"postgres":"ok","schema":"ok","temporal":"ok","worker":"ok"}}`, out)
	require.Zero(t, w.signal(os.Interrupt))

	api := p.serveAlone("EARSHOT_LISTEN=0.0.0.0" + port)
	p.env = append(p.env, "EARSHOT_LISTEN="+port) // An image sets it.
	out, err = p.command("health", "--ready")
	require.NoError(t, err, out)
	require.JSONEq(t, `{"status":"ready","checks":{"postgres":"ok","schema":"ok","temporal":"ok"}}`, out)
	api.kill()
	_, err = p.command("health")
	require.Error(t, err)
}

func TestAWorkerWhoseHealthCannotBeAskedDoesItsWorkUnlessItWasToldWhere(t *testing.T) {
	tier.Slow(t, "runs a service and two workers")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	// At least one of the two finds the default address taken, by the other or by another test.
	first, second := p.worker(), p.worker()
	require.Contains(t, first.log.String()+second.log.String(), "EARSHOT_HEALTH_LISTEN chooses another")
	taken := p.serveAlone()
	told := p.start([]string{"worker"}, "EARSHOT_HEALTH_LISTEN="+strings.TrimPrefix(p.url, "http://"))
	<-told.ended
	require.Equal(t, 1, told.cmd.ProcessState.ExitCode())
	require.Contains(t, told.log.String(), "listen (EARSHOT_HEALTH_LISTEN chooses the address)")
	taken.kill()
}

func TestTheServiceRunsOnSecretsInFiles(t *testing.T) {
	tier.Slow(t, "runs a service and several commands")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	secrets := t.TempDir()
	var env []string
	for _, pair := range p.env {
		name, value, _ := strings.Cut(pair, "=")
		for _, s := range config.Settings() {
			if s.Name == name && s.Secret {
				path := filepath.Join(secrets, strings.ToLower(name))
				require.NoError(t, os.WriteFile(path, []byte(value+"\n"), 0o600))
				pair = name + "_FILE=" + path
			}
		}
		env = append(env, pair)
	}
	require.NotEqual(t, p.env, env)
	p.env = env
	for _, args := range [][]string{{"migrate"}, {"org", "list"}, {"secrets", "list"}} {
		out, err := p.command(args...)
		require.NoError(t, err, out)
	}
	p.serve()
}

func TestTheProgramPrintsItsSettingsAndItsBuildInformation(t *testing.T) {
	t.Parallel()
	p := &program{t: t, env: cleanEnviron()}
	var settings []config.Setting
	p.json(&settings, "settings", "--json")
	require.Equal(t, config.Settings(), settings)
	out, err := p.command("settings")
	require.NoError(t, err, out)
	for _, s := range settings {
		require.Contains(t, out, s.Name+" ")
	}
	var built map[string]string
	p.json(&built, "version", "--json")
	out, err = p.command("version")
	require.NoError(t, err, out)
	for _, key := range []string{"version", "revision", "go", "platform"} {
		require.NotEmpty(t, built[key])
		require.Contains(t, out, built[key])
	}
}
