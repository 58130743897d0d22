package contract_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// with returns the contract with another version and one more operation.
func with(version, path string) string {
	return strings.Replace(before, "1.0.0", version, 1) + "  " + path + ":\n    get:\n      responses:\n        '200': {description: Things.}\n"
}

// passes runs compare and requires that it succeeds.
func passes(t *testing.T, dir, what string) {
	t.Helper()
	out, err := compare(t, dir, what)
	require.NoError(t, err, out)
}

func told(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "api", "CHANGELOG.md"))
	require.NoError(t, err)
	return string(text)
}

func TestTheChangelogListsTheAdditionsOfEachVersion(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	write(t, dir, "openapi.yaml", with("1.1.0", "/v1/posts"))
	out, err := compare(t, dir, "current")
	require.Error(t, err)
	require.Contains(t, out, "make contract-changelog")
	passes(t, dir, "changelog")
	passes(t, dir, "current")
	const sections = "\n## 1.1.0\n\n### New\n\n- `GET /v1/posts`\n\n## 1.0.0\n\nThe first release.\n"
	require.True(t, strings.HasSuffix(told(t, dir), sections), told(t, dir))

	write(t, dir, "openapi.yaml", with("1.1.0", "/v1/tags"))
	passes(t, dir, "changelog")
	require.Contains(t, told(t, dir), "`GET /v1/tags`")
	require.NotContains(t, told(t, dir), "`GET /v1/posts`", "the section is that of what is there now")

	commit(t, dir)
	git(t, dir, "tag", "v1.1.0")
	released := told(t, dir)
	passes(t, dir, "changelog")
	require.Equal(t, released, told(t, dir), "a released section stays")
}

func TestADifferenceFromAReleaseWantsANewVersion(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	passes(t, dir, "current")
	write(t, dir, "openapi.yaml", with("1.0.0", "/v1/posts"))
	out, err := compare(t, dir, "current")
	require.Error(t, err)
	require.Contains(t, out, "raise the version in api/openapi.yaml")
}

func TestAReleaseOfTheSDKsAloneIsTold(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	write(t, dir, "openapi.yaml", strings.Replace(before, "1.0.0", "1.0.1", 1))
	passes(t, dir, "changelog")
	require.Contains(t, told(t, dir), "## 1.0.1\n\nThe API is the same.")
}

func TestBeforeAnyTagTheChangelogSaysThatThisIsTheFirstRelease(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	git(t, dir, "tag", "--delete", "v1.0.0")
	require.NoError(t, os.Remove(filepath.Join(dir, "api", "CHANGELOG.md")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "ent", "migrations"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ent", "migrations", "1_initial.sql"), nil, 0o600))
	write(t, dir, "openapi.yaml", with("1.0.0", "/v1/posts"))
	commit(t, dir)
	passes(t, dir, "changelog")
	passes(t, dir, "current")
	require.Contains(t, told(t, dir), "## 1.0.0\n\nThe first release")
	require.NotContains(t, told(t, dir), "/v1/posts")

	write(t, dir, "openapi.yaml", with("1.1.0", "/v1/posts"))
	out, err := compare(t, dir, "current")
	require.Error(t, err, "versions without a tag: it was cloned without them")
	require.Contains(t, out, "git fetch --tags")
}
