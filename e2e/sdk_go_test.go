package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

func TestEachWriteOfTheGoSDKTakesEffectOnceThroughABadNetwork(t *testing.T) {
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	said := goStory(t, repository, p, faultyProxy(t, p.url))
	for _, line := range []string{
		"pages of posts: 2",
		"post: Export dashboards as PDF planned 1 1", "post: Dark mode open 0 0", "post: Keyboard shortcuts open 0 0",
		"not there: 404 ERR_NOT_FOUND",
		"webhook: new post Dark mode", "webhook: Export dashboards as PDF is planned",
		"feed: vote.created",
	} {
		require.Contains(t, said, line+"\n")
	}
	require.Equal(t, 2, strings.Count(said, "feed: Export dashboards as PDF was open and is planned\n"), "the event of the crash comes again")
	require.Equal(t, 1, strings.Count(said, "feed: vote.created\n"), "and no other:\n%s", said)
	happenedOnce(t, p)
}

func TestTheAgentInGoUsesTheTools(t *testing.T) {
	tier.Slow(t, "compiles the example")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	p.board = p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	p.must(http.MethodPost, "/v1/posts/"+p.post()+"/votes", nil)
	all := samples(t, filepath.Join(repository, "docs", "mcp.md"))
	at := slices.IndexFunc(all, func(s sample) bool { return s.language == "go" })
	require.GreaterOrEqual(t, at, 0)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(all[at].code), 0o600))
	agent := exec.CommandContext(t.Context(), "go", "run", file)
	agent.Dir = repository // Its go.mod has the public SDK.
	agent.Env = append(cleanEnviron(), "EARSHOT_API_KEY="+p.key, "EARSHOT_BASE_URL="+p.url)
	said, err := agent.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Equal(t, "18 tools\nDark mode: 1 votes\n", string(said))
}

func TestTheGoSDKWorksAsTheGuideShows(t *testing.T) {
	tier.Slow(t, "compiles a program for each sample")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	followsTheGuide(t, func(program, dir string, env []string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(goGuideBegins+program+"return nil\n}\n"), 0o600))
		var said []byte
		for _, args := range [][]string{
			{"mod", "init", "guide"},
			{"mod", "edit", "-replace", "earshot/sdk/go=" + filepath.Join(repository, "sdk", "go")},
			{"get", "earshot/sdk/go"},
			{"run", "."},
		} {
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Dir = dir
			cmd.Env = append(append(cleanEnviron(), "EARSHOT_API_KEY="+p.key, "EARSHOT_BASE_URL="+p.url), env...)
			var err error
			said, err = cmd.CombinedOutput()
			require.NoError(t, err, "go %v: %s", args, said)
		}
		return string(said)
	}, "go", `
headers := http.Header{"X-Service-Signature": {os.Getenv("SIGNATURE")}}
for _, body := range []string{os.Getenv("BODY"), os.Getenv("BODY") + " "} {
	fmt.Println("answered", receive([]byte(body), headers, os.Getenv("WEBHOOK_SECRET")))
}
`)
}

// goGuideBegins is the code around the guide's samples, which are parts of a function.
const goGuideBegins = `package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	earshot "earshot/sdk/go"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
`

// goStory runs the example of the SDK from the given repository state against a service and returns
// its output.
func goStory(t *testing.T, root string, p *program, url string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "story")
	build := exec.Command("go", "build", "-C", filepath.Join(root, "sdk", "go"), "-o", program, "./examples/story")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	story := exec.CommandContext(ctx, program, filepath.Join(dir, "place"))
	story.Env = append(cleanEnviron(), "EARSHOT_API_KEY="+p.key, "EARSHOT_BASE_URL="+url)
	out, err = story.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// happenedOnce checks that each object of the story exists exactly once and that its webhook is
// gone.
func happenedOnce(t *testing.T, p *program) {
	t.Helper()
	happened := map[string]int{}
	for _, event := range listed(t, p, "/v1/events?limit=100") {
		happened[fmt.Sprint(event["type"])]++
	}
	require.Equal(t, map[string]int{
		"contact.created": 1, "post.created": 3, "comment.created": 1, "vote.created": 1, "post.status_changed": 1,
	}, happened)
	boards := listed(t, p, "/v1/boards")
	require.Len(t, boards, 1)
	require.Len(t, listed(t, p, fmt.Sprintf("/v1/boards/%s/tags", boards[0]["id"])), 1)
	require.Empty(t, listed(t, p, "/v1/webhooks"))
}

// listed returns the first page of a list.
func listed(t *testing.T, p *program, path string) []map[string]any {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+p.key)
	answer, err := p.client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	var page struct{ Data []map[string]any }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&page))
	return page.Data
}
