package e2e

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/needs"
	"earshot/internal/testkit/tier"
)

// TestThePythonSDK builds the package, checks its sources against the test vectors and with the
// type checker, and uses it as an integrator does.
func TestThePythonSDK(t *testing.T) {
	tier.Slow(t, "packs, checks and runs the Python SDK")
	t.Parallel()
	s := packPythonSDK(t, repository)

	t.Run("passes the tables of test vectors", func(t *testing.T) {
		t.Parallel()
		s.of(t, "", "").mustRun("-W", "error", "-m", "unittest", "discover", "--start-directory", filepath.Join(repository, "sdk", "python", "tests"))
	})
	t.Run("has nothing that the linter finds", func(t *testing.T) {
		t.Parallel()
		s.of(t, "", "").mustRunIn(s.source, "-m", "flake8", "src", "tests", "examples")
	})
	t.Run("has types that pass the strict type checker and refuse wrong calls", func(t *testing.T) {
		t.Parallel()
		n := newNodeProject(t, filepath.Join("..", "sdk", "python", "tests"))
		n.mustRun("npm", "run", "types", "--", "--pythonpath", s.python, "--project", filepath.Join(repository, "sdk", "python"))
	})
	t.Run("tells its story, and makes each thing once, over a connection that drops, doubles and cuts", func(t *testing.T) {
		t.Parallel()
		p := servedToPython(t)
		s.story(t, p, faultyProxy(t, p.url))
		board := onlyID(t, p, "/v1/boards")
		onlyID(t, p, "/v1/boards/"+board+"/tags")
		onlyID(t, p, "/v1/contacts")
		require.Nil(t, p.first("/v1/webhooks"), "the story removes its webhook")
		posts := idsOf(t, p, "/v1/boards/"+board+"/posts?sort=votes")
		require.Len(t, posts, 3)
		onlyID(t, p, "/v1/posts/"+posts[0]+"/comments")
		onlyID(t, p, "/v1/posts/"+posts[0]+"/votes")
		require.Len(t, idsOf(t, p, "/v1/events"), 8, "each thing has happened once")
	})
	t.Run("runs the examples of its README", func(t *testing.T) {
		t.Parallel()
		p := servedToPython(t)
		said := s.of(t, p.url, p.key).mustRun("-c", pythonReadme(t))
		require.Regexp(t, `(?m)^pst_\w+ open 20\d\d\nExport dashboards as PDF 0\nSomebody changed it: ERR_PRECONDITION_FAILED\n1 post\.created\n2 vote\.created\n`, said)
		about := s.of(t, "", "").mustRun("-c", "import importlib.metadata; print(importlib.metadata.metadata('earshot').get_payload())")
		require.Contains(t, about, "\n# Changelog\n", "what is new comes with the package")
		require.Contains(t, said, "New: Grüße\n(204, '')\n(400, 'signature')\n")
		require.Contains(t, said, `Earshot("identify", "eyJ`)
	})
	t.Run("runs the examples of the guide", func(t *testing.T) {
		t.Parallel()
		p := servedToPython(t)
		followsTheGuide(t, func(program, dir string, env []string) string {
			s := s.of(t, p.url, p.key)
			s.env = append(s.env, env...)
			return s.mustRunIn(dir, "-c", program)
		}, "python", `
import os
headers = {"X-Service-Signature": os.environ["SIGNATURE"]}
for body in (os.environ["BODY"], os.environ["BODY"] + " "):
    print("answered", receive(body.encode(), headers, os.environ["WEBHOOK_SECRET"]))
`)
	})
	t.Run("has an agent that uses the tools", func(t *testing.T) {
		t.Parallel()
		p := servedToPython(t)
		said := s.of(t, p.url, p.key).mustRun(s.example("agent.py"), "Dashboards")
		require.Contains(t, said, "18 tools\nvoted: True\nfound: [('Dashboards as PDF', 1)]\nrefused: ")
		require.Contains(t, said, "ERR_NOT_FOUND")
	})
}

// pythonSDK is a Python interpreter with the package of a directory.
type pythonSDK struct {
	t      *testing.T
	source string
	python string
	env    []string
}

// packPythonSDK builds the package of a repository state in a copy of its sources, and checks its
// content.
func packPythonSDK(t *testing.T, root string) pythonSDK {
	t.Helper()
	tier.Needs(t, "python:httpx", "python:build", "python:setuptools", "python:wheel", "python:flake8")
	s := pythonSDK{t: t, source: filepath.Join(root, "sdk", "python"), python: needs.Python(t.Context()), env: cleanEnviron()}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(s.source, "src"))))
	texts, err := filepath.Glob(filepath.Join(s.source, "*.md"))
	require.NoError(t, err)
	for _, file := range append(texts, filepath.Join(s.source, "pyproject.toml")) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600))
	}
	s.mustRunIn(dir, "-m", "build", "--no-isolation") // This makes the source archive, and the wheel from it.
	wheels, err := filepath.Glob(filepath.Join(dir, "dist", "earshot-*-py3-none-any.whl"))
	require.NoError(t, err)
	require.Len(t, wheels, 1)
	installed := filepath.Join(dir, "installed")
	s.mustRunIn(dir, "-m", "zipfile", "-e", wheels[0], installed)
	require.FileExists(t, filepath.Join(installed, "earshot", "py.typed"))
	require.NoError(t, fs.WalkDir(os.DirFS(installed), ".", func(path string, _ fs.DirEntry, err error) error {
		require.Regexp(t, `^(\.|earshot(/(\w+\.py|py\.typed))?|earshot-[\d.]+\.dist-info(/\w+(\.txt)?)?)$`, path, "what is published")
		return err
	}))
	s.env = append(s.env, "PYTHONPATH="+installed, "PYTHONDONTWRITEBYTECODE=1")
	return s
}

// of returns the same SDK for another test and a service.
func (s pythonSDK) of(t *testing.T, url, key string) pythonSDK {
	t.Helper()
	s.t, s.env = t, append(slices.Clone(s.env), "EARSHOT_BASE_URL="+url, "EARSHOT_API_KEY="+key)
	return s
}

// mustRun runs a program to its end, in a temporary directory, and returns its output.
func (s pythonSDK) mustRun(args ...string) string {
	s.t.Helper()
	return s.mustRunIn(s.t.TempDir(), args...)
}

func (s pythonSDK) mustRunIn(dir string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.python, args...)
	cmd.Dir, cmd.Env = dir, s.env
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s %s:\n%s", s.python, strings.Join(args, " "), out)
	return string(out)
}

// idsOf returns the ids on the first page of a list.
func idsOf(t *testing.T, p *program, path string) (ids []string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+p.key)
	answer, err := p.client.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var page struct{ Data []struct{ ID string } }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&page))
	for _, one := range page.Data {
		ids = append(ids, one.ID)
	}
	return ids
}

// onlyID returns the id of a list's only object.
func onlyID(t *testing.T, p *program, path string) string {
	t.Helper()
	ids := idsOf(t, p, path)
	require.Len(t, ids, 1, path)
	return ids[0]
}

func (s pythonSDK) example(name string) string { return filepath.Join(s.source, "examples", name) }

// story plays the quickstart's story against a service.
func (s pythonSDK) story(t *testing.T, p *program, url string) {
	t.Helper()
	require.Contains(t, s.of(t, url, p.key).mustRun(s.example("quickstart.py")), "The story went well.")
}

// servedToPython starts a service with short retry delays.
func servedToPython(t *testing.T) *program {
	t.Helper()
	p := newProgram(t, append(temporalSettings(t), "EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s")...)
	p.serve()
	return p
}

// pythonReadme returns the README's samples in order, which form one program, and the code that
// calls its receiver.
func pythonReadme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "sdk", "python", "README.md"))
	require.NoError(t, err)
	var lines strings.Builder
	for _, block := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		lines.WriteString(block[1])
	}
	require.NotEmpty(t, lines.String())
	return lines.String() + `
import hashlib, hmac, time
body = '{"event":"post.created","post":{"title":"Grüße"}}'.encode()
t = str(int(time.time()))
v1 = hmac.new(b"whsec_1", t.encode() + b"." + body, hashlib.sha256).hexdigest()
print(receive(body, {"x-service-signature": f"t={t},v1={v1}"}, "whsec_1"))
print(receive(body + b" ", {"x-service-signature": f"t={t},v1={v1}"}, "whsec_1"))
`
}
