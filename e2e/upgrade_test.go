package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/migrations"
	"earshot/internal/devstack"
	"earshot/internal/testkit"
)

// upgradesVariable enables this file's tests (`make upgrades`). They build the program from the
// history, which takes a minute or two.
const upgradesVariable = "EARSHOT_TEST_UPGRADES"

// versionsBack is the supported age of a program: it lacks at most the last two migrations.
const versionsBack = 2

// release is the program before a certain migration.
type release struct {
	commit string
	// without are the migrations that it lacks.
	without int
	binary  string
}

// git runs a command in the repository.
func git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", repository}, args...)...).Output()
	require.NoError(t, err, "git %v", args)
	return strings.TrimSpace(string(out))
}

// needsHistory skips the test without the full git history.
func needsHistory(t *testing.T) {
	t.Helper()
	shallow, err := exec.Command("git", "-C", repository, "rev-parse", "--is-shallow-repository").Output()
	if err != nil || strings.TrimSpace(string(shallow)) != "false" {
		t.Skip("NOT TESTED: there is no history here to take the release before from; clone without --depth")
	}
}

// before finds the release before one of the last migrations, counted from the end. That is the
// main line's commit before the migration, or HEAD if the migration isn't committed yet.
func before(t *testing.T, back int) release {
	t.Helper()
	needsHistory(t)
	names, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	for ; ; back++ {
		r := release{commit: "HEAD"}
		path := "ent/migrations/" + names[len(names)-back]
		came := git(t, "log", "--first-parent", "--diff-merges=first-parent", "--diff-filter=A", "--no-patch", "--format=%H", "-1", "--", path)
		if came != "" {
			r.commit = came + "^1"
		}
		// One commit may have added several migrations. A state in which an older one was added later
		// was never released.
		had := r.files(t)
		missing := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(had, "ent/migrations/"+name) })
		last := len(names) - 1
		for last >= 0 && !slices.Contains(had, "ent/migrations/"+names[last]) {
			last--
		}
		if r.without = len(names) - missing; missing > last {
			return r
		}
	}
}

// files returns the release's migrations.
func (r release) files(t *testing.T) []string {
	t.Helper()
	return strings.Fields(git(t, "ls-tree", "--name-only", r.commit, "ent/migrations/"))
}

// named returns the release at a commit.
func named(t *testing.T, commit string) release {
	t.Helper()
	needsHistory(t)
	r := release{commit: git(t, "rev-parse", "--verify", commit+"^{commit}")}
	names, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	had := r.files(t)
	for _, name := range names {
		if !slices.Contains(had, "ent/migrations/"+name) {
			r.without++
		}
	}
	return r
}

// unpack returns a directory with the release's files at the paths, or with all files.
func (r *release) unpack(t *testing.T, paths ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	archive := exec.Command("git", append([]string{"-C", repository, "archive", r.commit}, paths...)...)
	unpack := exec.Command("tar", "-x", "-C", dir)
	var err error
	unpack.Stdin, err = archive.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, archive.Start())
	require.NoError(t, unpack.Run())
	require.NoError(t, archive.Wait())
	return dir
}

// build builds a release from the history.
func (r *release) build(t *testing.T) {
	t.Helper()
	dir := r.unpack(t)
	r.binary = filepath.Join(dir, "earshot-before")
	// -trimpath keeps the directory's name out of the build, so the compiler's cache works across
	// directories.
	build := exec.Command("go", "build", "-trimpath", "-o", r.binary, "./cmd/earshot")
	build.Dir = dir
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// prepare creates the release's schema, and an organization with a key.
func (r release) prepare(f *fleet) {
	f.t.Helper()
	r.command(f, "migrate")
	r.command(f, "org", "create", "Acme")
	var made struct{ Key string }
	require.NoError(f.t, json.Unmarshal(r.command(f, "key", "create", "--json"), &made))
	f.key = made.Key
}

// command runs a command of the release and returns its output.
func (r release) command(f *fleet, args ...string) []byte {
	f.t.Helper()
	cmd := exec.Command(r.binary, args...)
	cmd.Env = f.env
	out, err := cmd.Output()
	require.NoError(f.t, err, "%v: %s", args, out)
	return out
}

// fleet is the set of APIs behind a balancer.
type fleet struct {
	program

	mu   sync.RWMutex // held for reading during a request
	urls []string
}

// api starts an API on its own port and waits until it is ready.
func (f *fleet) api(binary string) (*process, string) {
	f.t.Helper()
	port, err := devstack.FreePort()
	require.NoError(f.t, err)
	p := f.run(exec.Command(binary, "serve", "--no-worker"), fmt.Sprintf("EARSHOT_LISTEN=127.0.0.1:%d", port))
	at := f.program
	at.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	at.awaitStatus("/readyz", http.StatusOK)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.urls = append(f.urls, at.url)
	return p, at.url
}

// retire removes the first API, as a balancer does before a stop, and stops it.
func (f *fleet) retire(p *process) {
	f.t.Helper()
	f.mu.Lock()
	f.urls = f.urls[1:]
	f.mu.Unlock()
	require.Zero(f.t, p.signal(syscall.SIGTERM))
}

// through makes requests to one of the APIs.
func (f *fleet) through(i int, requests func(p *program)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	at := f.program
	at.url = f.urls[i%len(f.urls)]
	requests(&at)
}

// worker starts a worker of a program and waits until it accepts work.
func (f *fleet) worker(binary string) *process {
	f.t.Helper()
	p := f.run(exec.Command(binary, "worker"))
	require.Eventually(f.t, func() bool { return strings.Contains(p.log.String(), `"worker runs"`) }, waitLimit, pollInterval)
	return p
}

// traffic is the customers' activity during the upgrade.
type traffic struct {
	f    *fleet
	stop chan struct{}
	all  sync.WaitGroup

	mu     sync.Mutex
	posts  map[string]int // how often each has to arrive
	failed []string
}

// twice is the beginning of the title of a post whose first attempt fails.
const twice = "Twice "

func (f *fleet) traffic() *traffic {
	t := &traffic{f: f, stop: make(chan struct{}), posts: map[string]int{}}
	for customer := range 3 {
		t.all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-t.stop:
					return
				default:
				}
				f.through(i+customer, func(p *program) { t.visit(p, customer, i) })
			}
		})
	}
	f.t.Cleanup(t.end)
	return t
}

// visit makes a round of requests, which must all succeed.
func (t *traffic) visit(p *program, customer, i int) {
	title, arrives := fmt.Sprintf("Idea %d of %d", i, customer), 1
	if i%5 == 0 {
		title, arrives = twice+title, 2
	}
	ask := func(method, path string, body any) map[string]any {
		status, data := p.send(method, path, body)
		if status < 200 || status > 299 {
			t.mu.Lock()
			t.failed = append(t.failed, fmt.Sprintf("%s %s%s: %d", method, p.url, path, status))
			t.mu.Unlock()
		}
		return data
	}
	id := fmt.Sprint(ask(http.MethodPost, "/v1/boards/"+p.board+"/posts", map[string]any{"title": title})["id"])
	t.mu.Lock()
	t.posts[id] = arrives
	t.mu.Unlock()
	ask(http.MethodPost, "/v1/posts/"+id+"/votes", nil)
	ask(http.MethodPost, "/v1/posts/"+id+"/comments", map[string]any{"body": map[string]any{"text": "And in the app"}})
	contact := map[string]any{"externalUserId": fmt.Sprint("acct-", i%7), "email": "ada@example.com", "name": fmt.Sprint("Ada ", i)}
	ask(http.MethodPost, "/v1/contacts/identify", contact)
	for _, list := range []string{"/v1/boards/" + p.board + "/posts?q=idea", "/v1/contacts?q=ada", "/v1/posts/" + id + "/votes", "/v1/webhooks"} {
		ask(http.MethodGet, list, nil)
	}
}

// await waits for n more posts.
func (t *traffic) await(n int) {
	t.f.t.Helper()
	count := func() int { t.mu.Lock(); defer t.mu.Unlock(); return len(t.posts) }
	before := count()
	require.Eventually(t.f.t, func() bool { return count() >= before+n }, afterKill, pollInterval)
}

func (t *traffic) end() {
	select {
	case <-t.stop:
	default:
		close(t.stop)
	}
	t.all.Wait()
}

// failFirst makes the receiver refuse the first attempt of posts marked by their title.
func failFirst(r *testkit.Receiver) {
	var mu sync.Mutex
	seen := map[string]bool{}
	r.Answer(func(_ int, got testkit.Received) int {
		var payload struct{ Post struct{ ID, Title string } }
		if json.Unmarshal(got.Body, &payload) != nil || !strings.HasPrefix(payload.Post.Title, twice) {
			return http.StatusOK
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[payload.Post.ID] {
			return http.StatusOK
		}
		seen[payload.Post.ID] = true
		return http.StatusServiceUnavailable
	})
}

// TestTheReleaseBeforeRunsOnTheNewSchemaBesideTheNewOne upgrades as docs/upgrading.md describes and
// goes back, with programs that are built from the history.
func TestTheReleaseBeforeRunsOnTheNewSchemaBesideTheNewOne(t *testing.T) {
	if os.Getenv(upgradesVariable) == "" {
		t.Skip("`make upgrades` runs it")
	}
	if base := os.Getenv("BASE"); base != "" {
		t.Run("the release "+base, func(t *testing.T) {
			r := named(t, base)
			r.build(t)
			upgrade(t, r)
		})
		return
	}
	for back := 1; back <= versionsBack; back++ {
		t.Run(fmt.Sprintf("%d versions of the schema ago", back), func(t *testing.T) {
			r := before(t, back)
			r.build(t)
			upgrade(t, r)
		})
	}
}

func upgrade(t *testing.T, old release) {
	receiver, namespace := testkit.NewReceiver(t), testkit.NewNamespace(t)
	failFirst(receiver)
	f := &fleet{program: *configured(t, testkit.EmptyDatabase(t),
		append(settingsOf(namespace), "EARSHOT_WEBHOOK_RETRY_DELAYS=2s,2s,2s,2s")...)}
	old.prepare(f)
	require.EqualValues(t, old.without, f.schema().Pending, "the old program leaves the schema where it was")
	oldAPI, url := f.api(old.binary)
	f.url = url
	oldWorker := f.worker(old.binary)
	f.subscribe(receiver)
	entry := f.must(http.MethodPost, "/v1/boards/"+f.board+"/changelog", map[string]any{"title": "v2", "publishedAt": "2040-01-01T09:00:00Z"})
	load := f.traffic()
	load.await(20)

	out, err := f.command("migrate", "up")
	require.NoError(t, err, out)
	load.await(20)
	_, url = f.api(earshot())
	load.await(20)
	newWorker := f.worker(earshot())
	load.await(20)
	f.retire(oldAPI)
	f.url = url
	require.Zero(t, oldWorker.signal(syscall.SIGTERM))
	load.await(20)
	// A run that the old worker began continues.
	f.must(http.MethodPatch, "/v1/changelog/"+entry, map[string]any{"publishedAt": "2020-01-01T09:00:00Z"})
	load.end()
	require.Empty(t, load.failed)

	// One worker begins a delivery with a failed attempt, and the other ends it. The old worker ends
	// the new one's delivery, as after going back, and the reverse.
	back := func(from *process, to string) *process {
		arrived := len(receiver.All())
		id := f.postOf(twice + "and in between other workers")
		require.NotEmpty(t, id)
		load.posts[id] = 2
		receiver.Await(t, arrived+1)
		require.Zero(t, from.signal(syscall.SIGTERM))
		next := f.worker(to)
		receiver.Await(t, arrived+2)
		return next
	}
	c := dial(t, namespace)
	awaitDeliveryRuns(t, c) // So nothing else arrives meanwhile.
	oldWorker = back(newWorker, old.binary)
	back(oldWorker, earshot())
	requireNoFailedTask(t, c, awaitDeliveryRuns(t, c))
	require.Equal(t, load.posts, arrived(t, receiver))
}
