package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

// sample is a fenced block of the guide.
type sample struct{ language, code string }

var fenced = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// samples returns the blocks of a page, in order.
func samples(t *testing.T, page string) (all []sample) {
	t.Helper()
	source, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, block := range fenced.FindAllStringSubmatch(string(source), -1) {
		all = append(all, sample{block[1], block[2]})
	}
	return all
}

// TestEverySampleOfTheGuideRuns runs the shell blocks of a page in order, in one shell, against the
// real service. It compares the output with the output shown below a block. Blocks of other
// languages are receivers, which must tell genuine deliveries from forged ones.
func TestEverySampleOfTheGuideRuns(t *testing.T) {
	tier.Slow(t, "runs every sample of the guide")
	t.Parallel()
	tier.Needs(t, "curl", "jq")
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "api", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		if page == sdkGuide {
			continue // The SDKs' tests run its samples, which make one program for each SDK.
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			shell := &script{t: t, program: p}
			for _, s := range samples(t, page) {
				switch s.language {
				case "sh":
					shell.add(s.code)
				case "json":
					shell.shows(s.code)
				default:
					t.Run(s.language, func(t *testing.T) {
						t.Parallel()
						runReceiver(t, s)
					})
				}
			}
			shell.run()
		})
	}
}

// script is the shell blocks of a page and the output shown below them.
type script struct {
	t       *testing.T
	program *program
	blocks  []string
	shown   map[int]string // by the number of the block above
}

func (s *script) add(code string) { s.blocks = append(s.blocks, code) }

func (s *script) shows(text string) {
	s.t.Helper()
	require.NotEmpty(s.t, s.blocks, "JSON is shown below the command that says it")
	if s.shown == nil {
		s.shown = map[int]string{}
	}
	s.shown[len(s.blocks)-1] = text
}

// run runs all blocks in one shell, with a separator between their outputs.
func (s *script) run() {
	if len(s.blocks) == 0 {
		return
	}
	const mark = "=== the next block ===\n"
	cmd := exec.CommandContext(s.t.Context(), "bash", "-euo", "pipefail", "-c",
		strings.Join(s.blocks, "\nprintf '%s' '"+mark+"'\n"))
	cmd.Dir = s.t.TempDir()
	cmd.Env = append(cleanEnviron(), s.program.calls()...)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(earshot())+":"+os.Getenv("PATH"))
	var said, complained bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complained
	require.NoError(s.t, cmd.Run(), "%s\n%s", &said, &complained)
	answers := strings.Split(said.String(), mark)
	require.Len(s.t, answers, len(s.blocks))
	for i, want := range s.shown {
		require.Equal(s.t, shape(s.t, want), shape(s.t, answers[i]), "%s\nsaid %s", s.blocks[i], answers[i])
	}
}

// shape returns a JSON value without the parts that change from run to run, such as ids and times.
// Codes and single lower-case words stay, because they belong to the contract.
func shape(t *testing.T, text string) any {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return shapeOf(value)
}

func shapeOf(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = shapeOf(member)
		}
	case []any:
		for i, item := range v {
			v[i] = shapeOf(item)
		}
	case string:
		if !regexp.MustCompile(`^ERR_|^[a-z]+(\.[a-z_]+)?$`).MatchString(v) {
			return "text"
		}
	case nil:
		return "text" // Unset values, such as the time of a key's last use.
	}
	return value
}
