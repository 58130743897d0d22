package statedir

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// awkward has characters that are special to a shell or to a careless parser.
const awkward = `a'b "c" $HOME \n # x=1 ;&|` + "`date`"

func TestSettingsComeBackAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dev.env")
	require.NoError(t, WriteEnv(path, "a comment", []Setting{
		{"EARSHOT_API_KEY", "esk_1"}, {"AWKWARD", awkward}, {"EMPTY", ""},
	}))
	values, err := ReadEnv(path)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"EARSHOT_API_KEY": "esk_1", "AWKWARD": awkward, "EMPTY": ""}, values)
}

func TestAShellSourcesTheSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dev.env")
	require.NoError(t, WriteEnv(path, "a comment", []Setting{{"AWKWARD", awkward}}))
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `set -a; . "$0"; printenv AWKWARD`, path).Output()
	require.NoError(t, err)
	require.Equal(t, awkward+"\n", string(out))
}

func TestSettingsAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "dev.env")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	require.NoError(t, WriteEnv(path, "", []Setting{{"A", "1"}}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left of the way there")
}

func TestSettingsThatAPersonEditedAreUnderstood(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dev.env")
	require.NoError(t, os.WriteFile(path, []byte("\n  # A=0\nexport A=1\nB=\"two words\"\n C=a\\ b\nnonsense\n"), 0o600))
	values, err := ReadEnv(path)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "1", "B": "two words", "C": "a b"}, values)
}

func TestSettingsThatAreNotThereAreEmpty(t *testing.T) {
	t.Parallel()
	values, err := ReadEnv(filepath.Join(t.TempDir(), "dev.env"))
	require.NoError(t, err)
	require.Empty(t, values)
}

func TestAWordForTheShellIsQuotedWhereItMustBe(t *testing.T) {
	t.Parallel()
	require.Equal(t, "/tmp/a-b_c.1", ShellWord("/tmp/a-b_c.1"))
	require.Equal(t, "'two words'", ShellWord("two words"))
	require.Equal(t, "''", ShellWord(""))
	require.Equal(t, "'"+strings.ReplaceAll("it's", "'", `'\''`)+"'", ShellWord("it's"))
}
