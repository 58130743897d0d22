package api_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestARequest(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{}), map[string]func(*testing.T, *apptest.App){
		"to no route is 404":                                  unknownRoutes,
		"with a method that the route lacks is 405":           wrongMethods,
		"keeps its id when that is sane":                      saneRequestIDs,
		"gets an id when it has none that is sane":            insaneRequestIDs,
		"with a malformed id in the path is 404":              malformedPaths,
		"for a resource that isn't there is 404":              unknownResources,
		"for a resource of another organization is 404":       foreignResources,
		"that names a foreign resource in its body is 404":    foreignReferences,
		"with a limit or a cursor that can't be right is 422": badPages,
	})
}

func unknownRoutes(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	for _, path := range []string{"/v1", "/v1/", "/v2/boards", "/v1/boards/", "/v1//boards", "/V1/boards", "/v1/boards/x/y", "/v1/posts/"} {
		a := n.Do(t, http.MethodGet, path, nil)
		require.Equal(t, http.StatusNotFound, a.Status, path)
		require.Equal(t, "ERR_NOT_FOUND", a.Code(), path)
		require.NotEmpty(t, a.Header.Get("X-Request-Id"))
	}
}

func wrongMethods(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	paths := []string{"/", "/healthz", "/readyz", "/v1/openapi.json", "/v1/docs", "/v1/docs/search", "/v1/docs/reference"}
	for _, o := range load(t).operations() {
		paths = append(paths, placeholder.ReplaceAllString(o.path, "x"))
	}
	for _, path := range paths {
		methods := methodsOf(t, path)
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
			if slices.Contains(methods, method) {
				continue
			}
			a := n.Do(t, method, path, nil)
			require.Equal(t, http.StatusMethodNotAllowed, a.Status, "%s %s", method, path)
			require.ElementsMatch(t, methods, strings.Split(a.Header.Get("Allow"), ", "), path)
			require.Equal(t, "ERR_METHOD_NOT_ALLOWED", a.Code())
		}
	}
}

// methodsOf returns the methods of all operations that match a path. For example,
// /v1/contacts/identify also matches /v1/contacts/{contactId}.
func methodsOf(t *testing.T, path string) []string {
	t.Helper()
	var methods []string
	for _, o := range load(t).operations() {
		if regexp.MustCompile("^" + placeholder.ReplaceAllString(o.path, "[^/]+") + "$").MatchString(path) {
			methods = append(methods, o.method)
		}
	}
	if methods == nil {
		methods = []string{http.MethodGet}
	}
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead)
	}
	return methods
}

func saneRequestIDs(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	for _, id := range []string{"a", uuid.NewString(), "Root=1-67891233-abcdef012345678912345678", strings.Repeat("x", 128)} {
		for _, path := range []string{"/v1/me", "/v1/none", "/healthz", "/v1/docs"} {
			require.Equal(t, id, n.Do(t, http.MethodGet, path, nil, "X-Request-Id", id).Header.Get("X-Request-Id"), path)
		}
	}
}

func insaneRequestIDs(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	seen := map[string]bool{}
	for _, id := range []string{"", "two words", "<script>", "a\tb", "é", strings.Repeat("x", 129)} {
		for _, path := range []string{"/v1/me", "/v1/none", "/healthz", "/v1/docs"} {
			got := n.Do(t, http.MethodGet, path, nil, "X-Request-Id", id).Header.Get("X-Request-Id")
			require.NoError(t, uuid.Validate(got), "%q on %s", id, path)
			require.False(t, seen[got])
			seen[got] = true
		}
	}
}

func hasParameters(o operation) bool { return len(o.parameters()) > 0 }

func malformedPaths(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	everyOperation(t, hasParameters, func(t *testing.T, o operation) {
		for _, parameter := range o.parameters() {
			good := n.ids[parameter]
			for _, id := range []string{"x", "0", "%00", "%FF", "%25zz", "%F0%9F%90%99", "usr_01keee2dtse16839j67pjda81z",
				good[:len(good)-1], good + "0", strings.ToUpper(good), good + "%0A"} {
				ids := maps.Clone(n.ids)
				ids[parameter] = id
				a := n.Do(t, o.method, o.filled(t, ids), o.request(t))
				require.Equal(t, http.StatusNotFound, a.Status, "%s: %s", id, a.Raw)
				requireMissing(t, a)
			}
		}
	})
	unchanged(t)
}

func unknownResources(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	everyOperation(t, hasParameters, func(t *testing.T, o operation) {
		for _, parameter := range o.parameters() {
			ids := maps.Clone(n.ids)
			// A well-formed id with another last character.
			ids[parameter] = ids[parameter][:29] + flip(ids[parameter][29:])
			requireMissing(t, n.Do(t, o.method, o.filled(t, ids), o.request(t)))
		}
	})
	unchanged(t)
}

func flip(last string) string {
	if last == "0" {
		return "1"
	}
	return "0"
}

func requireMissing(t *testing.T, a apptest.Answer) {
	t.Helper()
	require.Equal(t, http.StatusNotFound, a.Status, "%s", a.Raw)
	require.Equal(t, "ERR_NOT_FOUND", a.Code())
	require.NotContains(t, a.Details(), "field", "the id stands in the path")
}

func foreignResources(t *testing.T, app *apptest.App) {
	mine, theirs := newFixture(t, app), newFixture(t, app)
	untouched, unchanged := theirs.Watch(t), mine.Watch(t)
	everyOperation(t, hasParameters, func(t *testing.T, o operation) {
		for _, parameter := range o.parameters() {
			ids := maps.Clone(mine.ids)
			ids[parameter] = theirs.ids[parameter]
			requireMissing(t, mine.Do(t, o.method, o.filled(t, ids), o.request(t)))
		}
		requireMissing(t, mine.Do(t, o.method, o.filled(t, theirs.ids), o.request(t)))
	})
	untouched(t)
	unchanged(t)
}

func foreignReferences(t *testing.T, app *apptest.App) {
	mine, theirs := newFixture(t, app), newFixture(t, app)
	other := mine.ID(t, "/v1/boards", object{"name": "Other"})
	elsewhere := mine.ID(t, "/v1/boards/"+other+"/posts", object{"title": "Elsewhere"})
	comment := object{"body": object{"text": "Me too."}}
	posts, post := "/v1/boards/"+mine.ids["boardId"]+"/posts", "/v1/posts/"+mine.ids["postId"]
	tests := []struct {
		method, path, field string
		body                object
	}{
		{"POST", posts, "contactId", object{"title": "x", "contactId": theirs.ids["contactId"]}},
		{"POST", posts, "tagIds", object{"title": "x", "tagIds": []string{mine.ids["tagId"], theirs.ids["tagId"]}}},
		{"POST", posts, "tagIds", object{"title": "x", "tagIds": []string{mine.ID(t, "/v1/boards/"+other+"/tags", object{"name": "x"})}}},
		{"PATCH", post, "contactId", object{"status": "planned", "contactId": theirs.ids["contactId"]}},
		{"PATCH", post, "tagIds", object{"status": "planned", "tagIds": []string{theirs.ids["tagId"]}}},
		{"POST", post + "/comments", "parentId", object{"body": comment["body"], "parentId": theirs.ID(t, "/v1/posts/"+theirs.ids["postId"]+"/comments", comment)}},
		{"POST", post + "/merge", "sourceIds", object{"sourceIds": []string{mine.ID(t, posts, object{"title": "x"}), theirs.ids["postId"]}}},
		{"PUT", "/v1/changelog/" + mine.ids["entryId"] + "/linked-posts", "postIds", object{"postIds": []string{mine.ids["postId"], theirs.ids["postId"]}}},
		{"GET", posts + "?contactId=" + theirs.ids["contactId"], "contactId", nil},
		{"GET", posts + "?tagIds=" + mine.ids["tagId"] + "," + theirs.ids["tagId"], "tagIds", nil},
		{"POST", post + "/comments", "parentId", object{"body": comment["body"], "parentId": mine.ID(t, "/v1/posts/"+elsewhere+"/comments", comment)}},
	}
	unchanged := mine.Watch(t)
	for _, test := range tests {
		var body any
		if test.body != nil {
			body = test.body
		}
		a := mine.Do(t, test.method, test.path, body)
		require.Equal(t, http.StatusNotFound, a.Status, "%v: %s", test, a.Raw)
		require.Equal(t, test.field, a.Details()["field"])
	}
	unchanged(t)
}

func badPages(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	isList := func(o operation) bool { return o.Parameters.GetByInAndName("query", "limit") != nil }
	everyOperation(t, isList, func(t *testing.T, o operation) {
		at := o.filled(t, n.ids)
		high := int(*o.Parameters.GetByInAndName("query", "limit").Schema.Value.Max)
		for _, limit := range []string{"0", "-1", "x", "1.5", "", "1e-1", "05", "%205", "99999999999999999999", strconv.Itoa(high + 1)} {
			a := n.Do(t, o.method, at+"?limit="+limit, nil)
			require.Equal(t, http.StatusUnprocessableEntity, a.Status, "limit=%s: %s", limit, a.Raw)
			require.Equal(t, []string{"limit"}, a.Fields(), limit)
		}
		for _, cursor := range []string{"", "x", "%00", "%FF", "bm9uc2Vuc2U", n.ids["boardId"], strings.Repeat("A", 5000)} {
			a := n.Do(t, o.method, at+"?cursor="+cursor, nil)
			require.Equal(t, http.StatusUnprocessableEntity, a.Status, "cursor=%s: %s", cursor, a.Raw)
			require.Equal(t, []string{"cursor"}, a.Fields(), cursor)
		}
		require.ElementsMatch(t, []string{"limit", "cursor"}, n.Do(t, o.method, at+"?limit=0&cursor=", nil).Fields())
		for _, limit := range []string{"1", strconv.Itoa(high)} {
			require.Equal(t, http.StatusOK, n.Do(t, o.method, at+"?limit="+limit, nil).Status, limit)
		}
	})
}
