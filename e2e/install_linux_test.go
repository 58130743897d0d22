package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bare runs a command as on a Debian without Postgres, where apt-get only records its arguments. It
// returns the command's output and the recorded arguments.
func bare(t *testing.T, stdin string, settings []string, command string) (said, asked string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can install anything, and hide what is installed")
	}
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		t.Skip("this isn't Debian")
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("this machine permits no mount namespace, in which Postgres is hidden: %s", out)
	}
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	fake := "#!/bin/sh\necho \"$@\" >> " + calls + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "apt-get"), []byte(fake), 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	hide := `mount -t tmpfs none /usr/lib/postgresql && exec "$@"`
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "sh", "-c", hide, "sh"}, "sh", "-c", command)...)
	cmd.Dir, cmd.Stdin = repository, strings.NewReader(stdin)
	cmd.Env = append(cleanEnviron(), append([]string{
		"CI=", "PATH=" + dir + ":/usr/sbin:/usr/bin:/sbin:/bin", "EARSHOT_DIR=" + filepath.Join(dir, "state"), "EARSHOT_BIN=" + earshot(),
	}, settings...)...)
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out) // The fake apt-get doesn't install Postgres.
	text, err := os.ReadFile(calls)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return string(out), string(text)
}

func TestPostgresIsInstalledOnlyWithPermission(t *testing.T) {
	t.Parallel()
	const update, install = "update -o DPkg::Lock::Timeout=120\n",
		"install --yes --no-install-recommends postgresql -o DPkg::Lock::Timeout=120\n"
	up := `exec "$EARSHOT_BIN" up`

	said, asked := bare(t, "", nil, up)
	require.Contains(t, said, "nobody is here to agree to installing one; run\n  apt-get update\n  apt-get install --yes --no-install-recommends postgresql\n")
	require.Contains(t, said, "make up INSTALL=1")
	require.Empty(t, asked)
	said, asked = bare(t, "", nil, up+" --detach")
	require.Contains(t, said, "nobody is here to agree")
	require.Empty(t, asked)

	for _, permitted := range []struct{ setting, command string }{
		{"EARSHOT_INSTALL=1", up}, {"CI=true", up}, {"", up + " --install"}, {"", up + " --detach --install"},
	} {
		said, asked = bare(t, "", []string{permitted.setting}, permitted.command)
		require.Equal(t, update+install, asked, "%v: %s", permitted, said)
		require.Contains(t, said, "installing it with apt-get")
	}

	onTerminal := `exec script --quiet --return --command '"$EARSHOT_BIN" up' /dev/null`
	said, asked = bare(t, "no\n", nil, onTerminal)
	require.Contains(t, said, "Type yes to go on:")
	require.Contains(t, said, "nothing was installed")
	require.Empty(t, asked)
	said, asked = bare(t, "yes\n", nil, onTerminal)
	require.Equal(t, update+install, asked, said)
}
