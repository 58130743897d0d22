package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

// sdkStory is the quickstart's story in a language.
type sdkStory struct {
	// sources are the files of the story's program, which uses the SDK of the directory.
	sources, directory string
	// tell plays the story of a repository state against a service.
	tell func(t *testing.T, root string, p *program)
}

var sdkStories = map[string]sdkStory{
	"go": {"sdk/go/examples/story/*.go", "sdk/go", func(t *testing.T, root string, p *program) {
		goStory(t, root, p, p.url)
	}},
	"python": {"sdk/python/examples/quickstart.py", "sdk/python", func(t *testing.T, root string, p *program) {
		packPythonSDK(t, root).story(t, p, p.url)
	}},
	"typescript": {"e2e/sdk_typescript/*.ts", "sdk/typescript", func(t *testing.T, root string, p *program) {
		typeScriptStory(t, newSDKProject(t, root, packTypeScriptSDK(t, root, "build")), p, p.url)
	}},
}

// lastRelease returns the last tag v*. Without tags it returns the program before the last
// migration, as for .ci/contract. BASE=commit selects another release.
func lastRelease(t *testing.T) release {
	t.Helper()
	needsHistory(t)
	if base := os.Getenv("BASE"); base != "" {
		return named(t, base)
	}
	tag, err := exec.Command("git", "-C", repository, "describe", "--tags", "--abbrev=0", "--match", "v*").Output()
	if err == nil {
		return release{commit: strings.TrimSpace(string(tag))}
	}
	return before(t, 1)
}

func TestTheReleaseBeforeServesTheSDKsOfToday(t *testing.T) {
	if os.Getenv(upgradesVariable) == "" {
		t.Skip("`make upgrades` runs it")
	}
	t.Parallel()
	old := lastRelease(t)
	contract := git(t, "show", old.commit+":api/openapi.yaml")
	old.build(t)
	for language, s := range sdkStories {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			for _, id := range operations(t, filepath.Join(repository, s.sources)) {
				if !strings.Contains(contract, "operationId: "+id+"\n") {
					t.Skipf("NOT TESTED: the story needs the operation %s, which the release before (%s) doesn't have", id, old.commit)
				}
			}
			s.tell(t, repository, old.serve(t))
		})
	}
}

func TestTheReleaseBeforeHasSDKsThatTodaysServiceServes(t *testing.T) {
	if os.Getenv(upgradesVariable) == "" {
		t.Skip("`make upgrades` runs it")
	}
	t.Parallel()
	old := lastRelease(t)
	for language, s := range sdkStories {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if git(t, "ls-tree", old.commit, s.directory) == "" {
				t.Skipf("NOT TESTED: the release before (%s) has no %s; BASE=commit names another one", old.commit, s.directory)
			}
			s.tell(t, old.unpack(t, "sdk", "e2e"), serveStories(t))
		})
	}
}

// serve runs the release for a story.
func (r release) serve(t *testing.T) *program {
	t.Helper()
	f := &fleet{program: *configured(t, testkit.EmptyDatabase(t), storySettings(t)...)}
	r.prepare(f)
	f.run(exec.Command(r.binary, "serve"))
	f.awaitStatus("/readyz", http.StatusOK)
	return &f.program
}

var namedOperation = regexp.MustCompile(`"(\w+)": +\{"(\w+)", "(\w+)"\}`)

// operations returns the contract's operations that the sources call. The generator has their names
// in the SDKs.
func operations(t *testing.T, sources string) (ids []string) {
	t.Helper()
	files, err := filepath.Glob(sources)
	require.NoError(t, err)
	var program strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		program.Write(text)
	}
	// Languages write names differently, and the code that follows the feed lists its events.
	code := strings.NewReplacer("_", "", "follow(", "list(").Replace(strings.ToLower(program.String()))
	names, err := os.ReadFile(filepath.Join(repository, "sdk", "generate", "names.go"))
	require.NoError(t, err)
	for _, name := range namedOperation.FindAllStringSubmatch(string(names), -1) {
		if strings.Contains(code, strings.ToLower("."+name[2]+"."+name[3]+"(")) {
			ids = append(ids, name[1])
		}
	}
	require.Subset(t, ids, []string{"createBoard", "createPost", "castVote", "listEvents", "createWebhook"}, "the operations of a story are found")
	return ids
}
