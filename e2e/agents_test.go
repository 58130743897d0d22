package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

// TestTheOfficialClientsListAndCallTheTools tries the running program with official clients: the
// Inspector's command line and the TypeScript SDK, which validates answers against the schemas.
//
// `@modelcontextprotocol/inspector --cli` starts the same Inspector, but it also installs 120 MB of
// web UI, and later versions need Node 22. The Inspector looks for a package.json above its working
// directory, so it works in node_modules.
func TestTheOfficialClientsListAndCallTheTools(t *testing.T) {
	tier.Slow(t, "installs and runs the official clients")
	tier.Needs(t, "node", "npm", "python3")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	n := newNodeProject(t, "agents", "EARSHOT_BASE_URL="+p.url, "EARSHOT_API_KEY="+p.key, "EARSHOT_BIN="+earshot())

	said := n.mustRun("npm", "run", "--silent", "tools")
	require.Contains(t, said, "over HTTP: 18 tools")
	require.Contains(t, said, "over stdio: 18 tools")
	require.Contains(t, said, "A wrong key is refused.")

	guide, err := os.ReadFile(filepath.Join(repository, "docs", "mcp.md"))
	require.NoError(t, err)
	_, sample, _ := strings.Cut(string(guide), "```js\n")
	sample, _, _ = strings.Cut(sample, "```")
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "agent.mjs"), []byte(sample), 0o600))
	said = n.mustRun("node", "agent.mjs")
	require.Contains(t, said, "18 tools")
	require.Contains(t, said, "Export as PDF: 1 votes")

	var listed struct {
		Tools []struct {
			Name         string
			OutputSchema map[string]any
		}
	}
	n.inspect(p, &listed, "--method", "tools/list")
	require.Len(t, listed.Tools, 18)
	for _, tool := range listed.Tools {
		require.NotEmpty(t, tool.OutputSchema, tool.Name)
	}
	var called struct {
		StructuredContent struct {
			Data    map[string]any
			Created bool
		}
	}
	n.inspect(p, &called, "--method", "tools/call", "--tool-name", "identify_contact",
		"--tool-arg", "external_user_id=u-1", "mrr_cents=4900", "currency=EUR")
	require.True(t, called.StructuredContent.Created)
	require.InDelta(t, 4900, called.StructuredContent.Data["mrr_cents"], 0)
	var resources struct{ Resources []any }
	n.inspect(p, &resources, "--method", "resources/list")
	require.Len(t, resources.Resources, 2)
}

// inspect runs the Inspector and decodes its output.
func (n *nodeProject) inspect(p *program, into any, args ...string) {
	n.t.Helper()
	said := n.mustRun("npm", append([]string{
		"run", "--silent", "inspector", "--", p.url + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + p.key,
	}, args...)...)
	_, printed, _ := strings.Cut(said, "{") // A notice about versions comes before it.
	require.NoError(n.t, json.Unmarshal([]byte("{"+printed), into), said)
}
