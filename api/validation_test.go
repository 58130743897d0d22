package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestABodyThatBreaksTheContract(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{}), map[string]func(*testing.T, *apptest.App){
		"is refused for each limit of each member, by name": eachFlaw,
		"is refused with every failure at once":             allFlaws,
		"is refused without the members that are required":  nothingGiven,
		"is refused when it isn't one JSON object in UTF-8": notAnObject,
		"is refused over 1 MiB":                             tooLarge,
		"is refused when it says that it isn't JSON":        notJSON,
	})
}

func hasBody(o operation) bool { return o.RequestBody != nil }

func eachFlaw(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		at := o.filled(t, n.ids)
		for name, p := range properties(o.schema()) {
			for _, f := range flaws(name, p) {
				body := o.request(t).(object)
				body[name] = f.value
				a := n.Do(t, o.method, at, body)
				require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s %s: %s", f.field, f.limit, a.Raw)
				require.Contains(t, a.Fields(), f.field, "%s: %s", f.limit, a.Raw)
			}
		}
		unchanged(t)
	})
}

func allFlaws(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		for kind, isKind := range map[string]func(flaw) bool{
			"types":  func(f flaw) bool { return strings.HasPrefix(f.limit, "type") },
			"limits": func(f flaw) bool { return !strings.HasPrefix(f.limit, "type") },
		} {
			body, want := object{}, []string{}
			for name, p := range properties(o.schema()) {
				all := flaws(name, p)
				if i := slices.IndexFunc(all, isKind); i >= 0 {
					body[name], want = all[i].value, append(want, all[i].field)
				}
			}
			a := n.Do(t, o.method, o.filled(t, n.ids), body)
			require.Equal(t, "ERR_VALIDATION", a.Code(), "%s: %s", kind, a.Raw)
			require.Subset(t, a.Fields(), want, "%s: %s", kind, a.Raw)
		}
	})
	unchanged(t)
}

func nothingGiven(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	wantsMembers := func(o operation) bool { return hasBody(o) && len(required(o.schema())) > 0 }
	everyOperation(t, wantsMembers, func(t *testing.T, o operation) {
		a := n.Do(t, o.method, o.filled(t, n.ids), object{})
		require.Equal(t, "ERR_VALIDATION", a.Code())
		for _, name := range required(o.schema()) {
			named := func(field string) bool { return field == name || strings.HasPrefix(field, name+".") }
			require.True(t, slices.ContainsFunc(a.Fields(), named), "%s: %s", name, a.Raw)
		}
	})
	unchanged(t)
}

func notAnObject(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	bodies := map[string]string{
		"nothing": "", "white space": " \n", "half an object": `{"name":`, "two objects": `{} {}`,
		"an array": `[{}]`, "a string": `"{}"`, "null": `null`, "a byte order mark": "\uFEFF{}",
		"a comma too many": `{"a":1,}`, "a comment": `{} // so`, "not a number": `{"a":NaN}`,
		"invalid UTF-8": "{\"a\":\"\xff\"}", "a NUL byte": "{\"a\":\"\x00\"}",
		"a lone high surrogate": `{"a":"\ud800"}`, "a lone low surrogate": `{"a":"x\uDFFF"}`,
		"surrogates the wrong way round": `{"a":"\udc00\ud800"}`, "a lone surrogate as a name": `{"\ud800":1}`,
		"more nesting than anybody reads": strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000),
	}
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		for what, body := range bodies {
			if (body == "" || body == "null") && !o.RequestBody.Value.Required { // it counts as no body
				continue
			}
			a := n.Do(t, o.method, o.filled(t, n.ids), body)
			require.Equal(t, "ERR_VALIDATION", a.Code(), "%s: %d %s", what, a.Status, a.Raw)
		}
	})
	unchanged(t)
}

func tooLarge(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	frame := len(`{"a":""}`)
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		a := n.Do(t, o.method, o.filled(t, n.ids), `{"a":"`+strings.Repeat("x", 1<<20-frame+1)+`"}`)
		require.Equal(t, http.StatusRequestEntityTooLarge, a.Status)
		require.Equal(t, "ERR_PAYLOAD_TOO_LARGE", a.Code())
	})
	unchanged(t)
	a := n.Do(t, http.MethodPost, "/v1/boards", `{"name":"x"`+strings.Repeat(" ", 1<<20-len(`{"name":"x"}`))+`}`)
	require.Equal(t, http.StatusOK, a.Status, "1 MiB is allowed: %s", a.Raw)
}

func notJSON(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "json", ";"} {
			a := n.Do(t, o.method, o.filled(t, n.ids), o.request(t), "Content-Type", media)
			require.Equal(t, http.StatusUnsupportedMediaType, a.Status, media)
			require.Equal(t, "ERR_UNSUPPORTED_MEDIA_TYPE", a.Code())
		}
	})
	unchanged(t)
	for _, media := range []string{"", "application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"} {
		a := n.Do(t, http.MethodPost, "/v1/boards", object{"name": "Ideas"}, "Content-Type", media)
		require.Equal(t, http.StatusOK, a.Status, media)
	}
}

// A member in another spelling is an unknown member. Go's decoder would accept it.
func TestMembersAreKnownByTheirExactSpellingOnly(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	a := n.Do(t, http.MethodPost, "/v1/boards", object{"name": "Ideas", "Name": 7, "SLUG": "taken-over"})
	require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s", a.Raw)
	require.ElementsMatch(t, [][2]string{{"Name", "unknown"}, {"SLUG", "unknown"}}, rules(a))
}
