package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// TestTheTypeScriptSDK builds the package, checks it against the test vectors, packs it, and uses
// it as an integrator does.
func TestTheTypeScriptSDK(t *testing.T) {
	tier.Slow(t, "installs, compiles and runs the TypeScript SDK")
	t.Parallel()
	project := newSDKProject(t, repository, packTypeScriptSDK(t, repository, "test"))

	t.Run("tells its story, and makes each thing once, over a connection that drops, doubles and cuts", func(t *testing.T) {
		t.Parallel()
		p := serveStories(t)
		typeScriptStory(t, project, p, faultyProxy(t, p.url))
		board, _ := p.first("/v1/boards")["id"].(string)
		post, _ := p.first("/v1/boards/" + board + "/posts?sort=votes")["id"].(string)
		for path, want := range map[string]int{
			"/v1/boards": 1, "/v1/webhooks": 1, "/v1/contacts": 2, "/v1/widget/secrets": 1, "/v1/events": 9,
			"/v1/boards/" + board + "/posts": 3, "/v1/boards/" + board + "/tags": 1,
			"/v1/posts/" + post + "/comments": 1, "/v1/posts/" + post + "/votes": 1,
		} {
			require.Len(t, p.page(path), want, path)
		}
	})
	t.Run("runs the examples of its README", func(t *testing.T) {
		t.Parallel()
		p := serveStories(t)
		n := project.of(t, p, p.url)
		require.FileExists(t, filepath.Join(n.dir, "node_modules", "@earshot", "sdk", "CHANGELOG.md"), "what is new comes with the package")
		runReadme(t, n)
	})
	t.Run("runs the examples of the guide", func(t *testing.T) {
		t.Parallel()
		p := serveStories(t)
		n := project.of(t, p, p.url)
		followsTheGuide(t, func(program, dir string, env []string) string {
			require.NoError(t, os.WriteFile(filepath.Join(n.dir, "guide.ts"), []byte(program), 0o600))
			n.mustRun("npx", "tsc")
			compiled := filepath.Join(n.dir, "built", "guide.js")
			n.dir, n.env = dir, append(n.env, env...)
			return n.mustRun("node", compiled)
		}, "ts", `
const headers = { "X-Service-Signature": process.env.SIGNATURE ?? "" };
for (const body of [process.env.BODY ?? "", process.env.BODY + " "]) {
  console.log("answered", await receive(Buffer.from(body), headers, process.env.WEBHOOK_SECRET ?? ""));
}
`)
	})
}

// serveStories starts a service with short retry delays.
func serveStories(t *testing.T) *program {
	t.Helper()
	p := newProgram(t, storySettings(t)...)
	p.serve()
	return p
}

func storySettings(t *testing.T) []string {
	t.Helper()
	return append(temporalSettings(t), "EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s")
}

// page returns the first page of a list.
func (p *program) page(path string) []map[string]any {
	p.t.Helper()
	var page struct{ Data []map[string]any }
	r, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	require.NoError(p.t, err)
	r.Header.Set("Authorization", "Bearer "+p.key)
	answer, err := p.client.Do(r)
	require.NoError(p.t, err)
	defer func() { _ = answer.Body.Close() }()
	require.NoError(p.t, json.NewDecoder(answer.Body).Decode(&page))
	return page.Data
}

// typeScriptStory plays the quickstart's story against a service.
func typeScriptStory(t *testing.T, project *nodeProject, p *program, url string) {
	t.Helper()
	require.Contains(t, project.of(t, p, url).mustRun("node", "built/story.js"), "The story went well.")
}

// packTypeScriptSDK builds the package of a repository state in a copy, by the given script, and
// returns the archive that would be published.
func packTypeScriptSDK(t *testing.T, root, script string) string {
	t.Helper()
	tier.Needs(t, "node", "npm")
	dir := t.TempDir()
	copySources(t, filepath.Join(root, "sdk", "vectors"), filepath.Join(dir, "vectors"))
	n := &nodeProject{t: t, dir: filepath.Join(dir, "typescript"), env: cleanEnviron()}
	copySources(t, filepath.Join(root, "sdk", "typescript"), n.dir)
	n.install()
	t.Log(regexp.MustCompile(`(?m)^(# (tests|fail)|dist:).*`).FindAllString(n.mustRun("npm", "run", script), -1))

	var packed []struct {
		Filename string
		Files    []struct{ Path string }
	}
	cmd := exec.CommandContext(t.Context(), "npm", "pack", "--json", "--ignore-scripts")
	cmd.Dir, cmd.Env = n.dir, n.env
	printed, err := cmd.Output()
	require.NoError(t, err, "%s", printed)
	require.NoError(t, json.Unmarshal(printed, &packed), "%s", printed)
	for _, file := range packed[0].Files {
		require.Regexp(t, `^(README\.md|CHANGELOG\.md|package\.json|dist/.*\.(js|d\.ts))$`, file.Path, "what is published")
	}
	return filepath.Join(n.dir, packed[0].Filename)
}

// copySources copies a folder without the files of npm and the compiler.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); name == "node_modules" || name == "dist" {
			return filepath.SkipDir
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, inside), 0o750)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, inside), text, 0o600)
	}))
}

// newSDKProject returns a compiled integrator's project with the packed SDK and the README's
// program. The cases share it, and each one works on a copy.
func newSDKProject(t *testing.T, root, archive string) *nodeProject {
	t.Helper()
	n := newNodeProject(t, filepath.Join(root, "e2e", "sdk_typescript"))
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "readme.ts"), []byte(readmeProgram(t, root)), 0o600))
	n.mustRun("npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", archive)
	n.mustRun("npx", "tsc")
	return n
}

// of returns a copy of the project for a service at a URL.
func (n *nodeProject) of(t *testing.T, p *program, url string) *nodeProject {
	t.Helper()
	return n.copied(t, "EARSHOT_BASE_URL="+url, "EARSHOT_API_KEY="+p.key, "SERVICE_URL="+p.url)
}

// readmeProgram returns the README's samples in order, which form one program.
func readmeProgram(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "sdk", "typescript", "README.md"))
	require.NoError(t, err)
	var program strings.Builder
	for _, block := range regexp.MustCompile("(?s)```ts\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		program.WriteString(block[1])
	}
	require.NotEmpty(t, program.String())
	return program.String()
}

// runReadme runs the program while it follows the feed and receives webhooks.
func runReadme(t *testing.T, n *nodeProject) {
	t.Helper()
	port, err := devstack.FreePort()
	require.NoError(t, err)
	cmd := exec.Command("node", "built/readme.js")
	said := testkit.NewLogs()
	cmd.Dir, cmd.Env = n.dir, append(n.env, "WEBHOOK_SECRET="+guideSecret, fmt.Sprintf("PORT=%d", port))
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for _, line := range []string{
		"Export dashboards as PDF: 1\n", "Somebody changed it: ", `Earshot("identify", "eyJ`, " post.created\n", " vote.created\n",
	} {
		require.Eventually(t, func() bool { return strings.Contains(said.String(), line) }, waitLimit, pollInterval, "%s: %s", line, said)
	}
	// The loop asks for the next event first and then waits for it.
	require.Eventually(t, func() bool {
		saved, err := os.ReadFile(filepath.Join(n.dir, "checkpoint"))
		return err == nil && strings.HasSuffix(strings.TrimSpace(said.String()), string(saved)+" vote.created")
	}, waitLimit, pollInterval, "%s", said)

	url, now := fmt.Sprintf("http://127.0.0.1:%d/hook", port), time.Now()
	body := []byte(`{"event":"post.created","post":{"title":"Grüße"}}`)
	require.Equal(t, http.StatusNoContent, attempt(url, now, body, body, guideSecret))
	require.Equal(t, http.StatusBadRequest, attempt(url, now, body, body, newerSecret))
	require.Contains(t, said.String(), "New: Grüße")
}
