package deploy

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSecretsOfComposeAreMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "secrets")
	run := func() string {
		out, err := exec.Command(filepath.Join(deployment, "secrets.sh"), dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Equal(t, 10, strings.Count(run(), "made "))
	values := map[string]string{}
	for _, s := range loaded(t).Secrets {
		name := filepath.Base(s.File)
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.EqualValues(t, 0o644, info.Mode().Perm(), "the container's user must read it")
		values[name] = strings.TrimSuffix(string(text), "\n")
	}
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.EqualValues(t, 0o700, info.Mode().Perm(), "nobody else of this machine may")
	require.Len(t, values, 10)
	require.Equal(t, "postgres://earshot:"+values["earshot_password"]+"@postgres:5432/earshot?sslmode=disable", values["database_url"])
	for _, key := range []string{values["email_hash_key"], strings.TrimPrefix(values["secret_keys"], "k1:")} {
		raw, err := base64.StdEncoding.DecodeString(key)
		require.NoError(t, err)
		require.Len(t, raw, 32)
	}
	require.Empty(t, values["smtp_url"])

	require.NoError(t, os.Remove(filepath.Join(dir, "grafana_password")))
	require.Equal(t, "made "+filepath.Join(dir, "grafana_password")+"\n", run(), "the others stay")
	for name, value := range values {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, name != "grafana_password", string(text) == value+"\n", name)
	}
}
