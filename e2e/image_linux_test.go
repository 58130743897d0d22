package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
	"earshot/internal/testkit/tier"
)

// container is an unpacked image. Its processes see only its files, which are read-only. They run
// as the image's user and can't become another user.
type container struct {
	t       *testing.T
	root    string
	user    string
	command []string // entry point
	env     []string
}

// imageConfig is the part of an image's configuration that the test needs.
type imageConfig struct {
	Config struct {
		User        string
		Env         []string
		Entrypoint  []string
		Healthcheck struct{ Test []string }
	} `json:"config"`
}

// newContainer builds the image from these sources and unpacks it.
func newContainer(t *testing.T) *container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program as another user on files of its own")
	}
	out := t.TempDir()
	build := exec.Command("go", "run", "-C", filepath.Join(repository, "tools", "deploy"), "./image", "--out", out)
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	t.Logf("%s", text)

	layout := t.TempDir()
	unpack(t, filepath.Join(out, "earshot.tar"), layout)
	var saved []struct {
		Config string
		Layers []string
	}
	read(t, filepath.Join(layout, "manifest.json"), &saved)
	var c imageConfig
	read(t, filepath.Join(layout, saved[0].Config), &c)
	root := t.TempDir()
	for dir := root; dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // The image's user needs access.
	}
	for _, layer := range saved[0].Layers {
		unpack(t, filepath.Join(layout, layer), root)
	}
	// The mounts of a container engine.
	for _, dir := range []string{"proc", "run/secrets"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	require.Equal(t, append([]string{"CMD"}, append(c.Config.Entrypoint, "health")...), c.Config.Healthcheck.Test)
	return &container{t: t, root: root, user: c.Config.User, command: c.Config.Entrypoint, env: c.Config.Env}
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	out, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into))
}

// run returns a command in the container, as an engine starts it with --read-only, --security-opt
// no-new-privileges and the network of the host.
func (c *container) run(args ...string) *exec.Cmd {
	const enter = `PATH=/usr/sbin:/usr/bin:/sbin:/bin; mount --bind "$0" "$0" && mount --bind /proc "$0/proc" && mount -o remount,bind,ro "$0" && cd / &&
		exec setpriv --no-new-privs chroot --userspec="$1" --groups= "$0" "${@:2}"`
	return exec.Command("unshare", append([]string{"--mount", "/bin/bash", "-c", enter, c.root, c.user}, append(c.command, args...)...)...)
}

// secret writes a value to the place at which an engine mounts secrets.
func (c *container) secret(name, value string) (path string) {
	c.t.Helper()
	path = "/run/secrets/" + name
	require.NoError(c.t, os.WriteFile(c.root+path, []byte(value+"\n"), 0o444))
	return path
}

func TestTheImageRunsAsItsUserOnReadOnlyFiles(t *testing.T) {
	tier.Slow(t, "builds the image")
	t.Parallel()
	c := newContainer(t)
	version := c.run("version", "--json")
	version.Env = c.env
	out, err := version.CombinedOutput()
	require.NoError(t, err, "%s", out)
	head, err := exec.Command("git", "-C", repository, "rev-parse", "HEAD").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), strings.TrimSpace(string(head)))

	p := newProgram(t, temporalSettings(t)...)
	env := append([]string{}, c.env...)
	for _, pair := range p.env {
		name, value, _ := strings.Cut(pair, "=")
		for _, s := range config.Settings() {
			switch {
			case s.Name == name && s.Secret:
				env = append(env, name+"_FILE="+c.secret(strings.ToLower(name), value))
			case s.Name == name:
				env = append(env, pair)
			}
		}
	}
	p.env = append(env, "EARSHOT_METRICS_LISTEN=127.0.0.1:0")
	s := p.run(c.run("serve"))
	p.awaitStatus("/readyz", 200)
	proc := fmt.Sprintf("/proc/%d", s.cmd.Process.Pid) // Each wrapper replaces itself with the next program, so the pid stays the same.
	process, err := os.ReadFile(proc + "/status")
	require.NoError(t, err)
	for _, line := range []string{`Uid:\t65532\t65532\t65532\t65532`, `Gid:\t65532\t65532\t65532\t65532`, `Groups:\t\s*\n`,
		`CapEff:\t0+\n`, `NoNewPrivs:\t1`} {
		require.Regexp(t, line, string(process))
	}
	require.Error(t, os.WriteFile(proc+"/root/usr/local/bin/new", nil, 0o600), "root can't either")
	check := c.run("health")
	check.Env = p.env
	out, err = check.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.JSONEq(t, `{"status":"ok"}`, string(out))
	require.Zero(t, s.signal(os.Interrupt))
}
