package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestARequestIsJudgedInOnePass(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{}), map[string]func(*testing.T, *apptest.App){
		"that tells all that is wrong with its query and its form": failuresAtOnce,
		"that refuses parameters that the operation hasn't got":    unknownParameters,
		"that says required of every member that is missing":       missingMembers,
		"that says each failure once":                              saidOnce,
		"that takes an integer in any notation of JSON":            integers,
		"that takes a moment in any notation of RFC 3339":          moments,
		"that takes a colour in any case and leaves old rows":      colours,
	})
}

// The first answer has all violations of the contract, and the next one has those of the domain.
func failuresAtOnce(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	webhook, posts := n.ids["webhookId"], "/v1/boards/"+n.ids["boardId"]+"/posts"
	for name, c := range map[string]struct {
		method, path string
		body         any
		want         []string
	}{
		"several parameters": {
			http.MethodGet, "/v1/webhooks/" + webhook + "/deliveries?limit=x&since=y&status=z&cursor=", nil,
			[]string{"cursor", "limit", "since", "status"},
		},
		"query and body":             {http.MethodPost, posts + "?draft=true", object{"title": "", "contactId": 7}, []string{"contactId", "draft", "title"}},
		"query and a malformed body": {http.MethodPost, posts + "?draft=true", `{`, []string{"", "draft"}},
		"a type, a limit and a pair": {
			http.MethodPost, "/v1/contacts/identify", object{"externalUserId": 1, "name": strings.Repeat("x", 201), "currency": "EUR"},
			[]string{"externalUserId", "mrrCents", "name"},
		},
		"members of members": {http.MethodPost, posts, object{"title": "x", "body": object{"text": 1}, "tagIds": []any{"x", "", 1}}, []string{"body.text", "tagIds[1]", "tagIds[2]"}},
		"rules that only the domain checks": {
			http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "a\x00", "email": "nonsense", "currency": nil, "mrrCents": 1},
			[]string{"email", "externalUserId", "mrrCents"},
		},
		"an id that is none doesn't come before": {http.MethodPost, "/v1/boards/nonsense/posts?x=1", object{"title": 1}, []string{"title", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := n.Do(t, c.method, c.path, c.body)
			require.Equal(t, "ERR_VALIDATION", a.Code(), "%s", a.Raw)
			require.Equal(t, c.want, slices.Sorted(slices.Values(a.Fields())), "%s", a.Raw)
			require.False(t, strings.HasPrefix(a.Body["error"].(object)["message"].(string), ": "), "%s", a.Raw)
		})
	}
	unchanged(t)
}

func unknownParameters(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	everyOperation(t, nil, func(t *testing.T, o operation) {
		a := n.Do(t, o.method, o.filled(t, n.ids)+"?unheard=1&unheard=2", o.request(t))
		require.Equal(t, [][2]string{{"unheard", "unknown"}, {"unheard", "unknown"}}, rules(a), "%s", a.Raw)
	})
	unchanged(t)
	board := "/v1/boards/" + n.ids["boardId"]
	for path, hint := range map[string]string{
		board + "/posts?Limit=1":            "the nearest is limit",
		board + "/posts?stauts=open":        "the nearest is status",
		board + "/posts?tag_ids=x":          "the nearest is tagIds",
		"/v1/contacts?updated_since=x":      "the nearest is updatedSince",
		board + "/changelog?publishedAt=":   "the nearest is ",
		board + "?limit=1":                  "takes none",
		"/v1/me?=":                          "takes none",
		"/v1/me?%zz=1":                      "takes none",
		"/v1/me?%FF":                        "takes none",
		"/v1/me?" + strings.Repeat("é", 99): "takes none",
	} {
		a := n.Do(t, http.MethodGet, path, nil)
		require.Len(t, rules(a), 1, "%s: %s", path, a.Raw)
		require.Equal(t, "unknown", rules(a)[0][1], path)
		require.Contains(t, string(a.Raw), hint, path)
	}
	for query, want := range map[string][2]string{
		"limit=%zz": {"limit", "encoding"}, "limit=5;cursor=x": {"limit", "type"}, "limit=1&limit=1": {"limit", "type"},
	} {
		require.Equal(t, [][2]string{want}, rules(n.Do(t, http.MethodGet, "/v1/boards?"+query, nil)), query)
	}
	for _, query := range []string{"", "&", "limit=1&&", "&limit=1"} {
		require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/boards?"+query, nil).Status, query)
	}
}

func missingMembers(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	wants := func(o operation) bool { return hasBody(o) && len(required(o.schema())) > 0 }
	everyOperation(t, wants, func(t *testing.T, o operation) {
		var want [][2]string
		for _, name := range slices.Sorted(slices.Values(required(o.schema()))) {
			want = append(want, [2]string{name, "required"})
		}
		require.Equal(t, want, rules(n.Do(t, o.method, o.filled(t, n.ids), object{})))
		// Another spelling is another member.
		body := object{}
		for name, value := range o.request(t).(object) {
			body[strings.ToUpper(name)] = value
			want = append(want, [2]string{strings.ToUpper(name), "unknown"})
		}
		require.ElementsMatch(t, want, rules(n.Do(t, o.method, o.filled(t, n.ids), body)))
	})
	comment := "/v1/posts/" + n.ids["postId"] + "/comments"
	require.Equal(t, [][2]string{{"body.text", "required"}}, rules(n.Do(t, http.MethodPost, comment, object{"body": object{}})))
	require.Equal(t, [][2]string{{"currency", "required"}}, rules(n.Do(t, http.MethodPost, "/v1/contacts", object{"mrrCents": 1})))
}

func saidOnce(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		for name, s := range properties(o.schema()) {
			for _, f := range flaws(name, s) {
				body := o.request(t).(object)
				body[name] = f.value
				seen := map[[2]string]bool{}
				for _, r := range rules(n.Do(t, o.method, o.filled(t, n.ids), body)) {
					require.False(t, seen[r], "%s: %s", f.limit, r)
					seen[r] = true
				}
			}
		}
	})
}

func integers(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	for i, c := range []struct{ written, want string }{
		{"100", "100"}, {"100.0", "100"}, {"1e2", "100"}, {"1E+2", "100"}, {"0.1e3", "100"}, {"10000e-2", "100"}, {"-0.0", "0"}, {"1e8", "100000000"},
	} {
		for method, path := range map[string]string{"POST": "/v1/contacts", "PATCH": "/v1/contacts/" + n.ids["contactId"]} {
			a := n.Do(t, method, path, `{"mrrCents":`+c.written+`,"currency":"EUR"}`)
			require.Less(t, a.Status, 300, "%s: %s", c.written, a.Raw)
			require.Equal(t, json.Number(c.want), a.Data()["mrrCents"], c.written)
		}
		identified := n.Do(t, http.MethodPost, "/v1/contacts/identify", fmt.Sprintf(`{"externalUserId":"n-%d","mrrCents":%s,"currency":"EUR"}`, i, c.written))
		require.Equal(t, json.Number(c.want), identified.Data()["mrrCents"], "%s", identified.Raw)
		key := n.ID(t, "/v1/api-keys", object{"name": "Spare", "scope": "read"})
		rotated := n.Do(t, http.MethodPost, "/v1/api-keys/"+key+"/rotate", `{"overlapSeconds":`+c.written+`}`)
		require.Equal(t, c.written != "1e8", rotated.Status == http.StatusCreated, "%s: %s", c.written, rotated.Raw)
	}
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/boards?limit=1e1", nil).Status)
	unchanged := n.Watch(t)
	for written, rule := range map[string]string{
		"1e-1": "type", "1.5": "type", "1e999999": "type", "100000001.0": "maximum", "1e9": "maximum", "-1.0": "minimum", `"1"`: "type", "true": "type",
	} {
		a := n.Do(t, http.MethodPost, "/v1/contacts", `{"mrrCents":`+written+`,"currency":"EUR"}`)
		require.Equal(t, [][2]string{{"mrrCents", rule}}, rules(a), "%s: %s", written, a.Raw)
	}
	unchanged(t)
}

func moments(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	entry := "/v1/changelog/" + n.ids["entryId"]
	contacts := "/v1/contacts?updatedSince="
	for written, kept := range map[string]string{
		"2199-03-12t10:41:07z":           "2199-03-12T10:41:07Z",
		"2199-03-12t10:41:07.25+01:00":   "2199-03-12T09:41:07.25Z",
		"2199-12-31T23:59:60Z":           "2200-01-01T00:00:00Z",
		"2199-12-31t23:59:60.5z":         "2200-01-01T00:00:00.5Z",
		"2199-07-01T05:44:60+05:45":      "2199-07-01T00:00:00Z",
		"2199-06-30T15:59:60.25-08:00":   "2199-07-01T00:00:00.25Z",
		"2199-03-12T10:41:07.123456789Z": "2199-03-12T10:41:07.123456Z",
	} {
		a := n.Do(t, http.MethodPatch, entry, object{"publishedAt": written})
		require.Equal(t, kept, a.Data()["publishedAt"], "%s: %s", written, a.Raw)
		require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, contacts+strings.ReplaceAll(written, "+", "%2B"), nil).Status, written)
	}
	unchanged := n.Watch(t)
	for _, wrong := range []string{
		"2199-03-12T10:41:60Z", "2199-12-31T23:59:61Z", "2199-12-31T23:60:00Z", "2199-12-31T23:59:60+01:00", "9999-12-31T23:59:60Z",
		"2199-02-30T00:00:00Z", "2199-03-12T24:00:00Z", "2199-03-12 10:41:07Z", "2199-03-12", "0000-01-01T00:00:00Z", "ſ199-03-12T10:41:07Z", "",
	} {
		require.Equal(t, [][2]string{{"publishedAt", "format"}}, rules(n.Do(t, http.MethodPatch, entry, object{"publishedAt": wrong})), wrong)
		at := contacts + strings.ReplaceAll(strings.ReplaceAll(wrong, "+", "%2B"), " ", "%20")
		require.Equal(t, [][2]string{{"updatedSince", "format"}}, rules(n.Do(t, http.MethodGet, at, nil)), wrong)
	}
	unchanged(t)
}

func colours(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	tags := "/v1/boards/" + n.ids["boardId"] + "/tags"
	made := n.Make(t, http.MethodPost, tags, object{"name": "x", "color": "#AbC"})
	require.Equal(t, "#aabbcc", made["color"])
	_, err := app.Pool.Exec(t.Context(), "UPDATE tags SET color = '#AABBCC' WHERE name = 'x' AND organization_id = @organization",
		pgx.NamedArgs{"organization": n.Organization.ID.UUID()})
	require.NoError(t, err)
	unchanged := n.Watch(t)
	for _, color := range []any{n.Make(t, http.MethodPatch, tags+"/"+made["id"].(string), object{})["color"], "#AABBCC", "#aBc"} {
		require.Equal(t, made, n.Make(t, http.MethodPatch, tags+"/"+made["id"].(string), object{"color": color}))
	}
	unchanged(t)
}

// HEAD answers like GET, with the same headers and without a body.
func TestHEADAnswersEveryGET(t *testing.T) {
	t.Parallel()
	n := newFixture(t, apptest.Start(t, apptest.Options{}))
	paths := []string{"/healthz", "/readyz", "/v1/openapi.json", "/v1/docs", "/v1/docs/errors", "/v1/docs/search?q=error", "/v1/docs/reference", "/v1/docs/reference/elements.js", "/v1/none", "/v1/boards?limit=0", "/v1/posts/x"}
	everyOperation(t, func(o operation) bool { return o.method == http.MethodGet }, func(t *testing.T, o operation) {
		paths = append(paths, o.filled(t, n.ids))
	})
	changing := []string{"Date", "X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
	for _, path := range paths {
		// Go's client asks for compression with GET only.
		get := n.Do(t, http.MethodGet, path, nil, "Accept-Encoding", "identity")
		head := n.Do(t, http.MethodHead, path, nil, "Accept-Encoding", "identity")
		require.Equal(t, get.Status, head.Status, path)
		require.Empty(t, head.Raw, path)
		for _, name := range changing {
			require.Equal(t, get.Header.Get(name) != "", head.Header.Get(name) != "", "%s %s", path, name)
			get.Header.Del(name)
			head.Header.Del(name)
		}
		if strings.HasSuffix(path, "/health") { // it covers the last day up to now, so its length varies
			get.Header.Del("Content-Length")
			head.Header.Del("Content-Length")
		}
		require.Equal(t, get.Header, head.Header, path)
	}
}

var detailInCode = regexp.MustCompile(`\bWith\("(\w+)",`)

// Programs read the members of details, so the contract has to name them.
func TestEveryMemberOfDetailsIsInTheContract(t *testing.T) {
	t.Parallel()
	stated := load(t).Components.Schemas["ErrorDetails"].Value.Properties
	used := map[string]bool{}
	for _, pattern := range []string{"api/*.go", "internal/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(testkit.Root(), pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if strings.HasSuffix(file, "_test.go") || !bytes.Contains(text, []byte("problem.")) && !strings.Contains(file, "internal/problem/") {
				continue
			}
			for _, m := range detailInCode.FindAllSubmatch(text, -1) {
				used[string(m[1])] = true
				require.Contains(t, stated, string(m[1]), filepath.Base(file))
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(stated)), slices.Collect(maps.Keys(used)), "what the contract states occurs")
}
