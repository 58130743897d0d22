package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestAQuery(t *testing.T) {
	t.Parallel()
	together(t, roomy.Start(t), map[string]func(*testing.T, *apptest.App){
		"is answered with the last good value of each limit":        goodQueries,
		"is refused with the first bad one, by parameter and rule":  badQueries,
		"is refused for a cursor that no list ever gave":            forgedCursors,
		"is refused for a sort without the parameter that it needs": sortOfNothing,
		"is refused when it says two things in one place":           saidTwice,
		"takes a moment as the contract writes it and no other way": momentsOfQueries,
	})
}

// queries returns the query parameters of an operation.
func (o operation) queries() []*openapi3.Parameter {
	var all []*openapi3.Parameter
	for _, p := range o.Parameters {
		if p.Value.In == "query" {
			all = append(all, p.Value)
		}
	}
	return all
}

func hasQuery(o operation) bool { return len(o.queries()) > 0 }

// beside has the further parameters that a value needs. For example, a sort by relevance needs a
// search, and one by revenue needs a currency.
var beside = map[string]string{"sort=relevance": "&q=dark", "sort=revenue": "&currency=EUR", "currency": "&sort=revenue"}

// inQuery writes a JSON value in the notation of a query.
func inQuery(value any) string {
	if list, ok := value.([]any); ok {
		items := make([]string, len(list))
		for i, item := range list {
			items[i] = inQuery(item)
		}
		return strings.Join(items, ",")
	}
	return url.QueryEscape(fmt.Sprint(value))
}

func goodQueries(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	n.again(t)
	everyOperation(t, hasQuery, func(t *testing.T, o operation) {
		count := 0
		for _, q := range o.queries() {
			for i, value := range goodValues(t, n, o, q) {
				p := n
				if o.method == http.MethodDelete { // each call needs a resource of its own
					count++
					p = n.at(t, o, count).fixture
				}
				at := o.filled(t, p.ids)
				query := q.Name + "=" + inQuery(value)
				a := p.Do(t, o.method, at+"?"+query+beside[query]+beside[q.Name], nil)
				if q.Name == "after" && a.Status == http.StatusGone {
					continue // no feed is that long
				}
				require.Equal(t, http.StatusOK, a.Status, "%s %d: %s", q.Name, i, a.Raw)
			}
		}
	})
}

// goodValues returns the edges of a parameter, as for a member of a body.
func goodValues(t *testing.T, n fixture, o operation, q *openapi3.Parameter) []any {
	t.Helper()
	var values []any
	if q.Name == "cursor" {
		// Only the list itself can make a cursor. There is never a second vote, because all keys
		// here belong to one voter.
		next := n.Do(t, o.method, o.filled(t, n.ids)+"?limit=1", nil).Body["nextCursor"]
		require.True(t, next != nil || o.OperationID == "listVotes", "the list has one item only")
		if next != nil {
			values = append(values, next)
		}
		return values
	}
	s := *q.Schema.Value
	if q.Name == "email" {
		s.Format = "email" // an unknown address is also valid
	}
	p := n.at(t, o, 1)
	for _, e := range edges(t, q.Name, &s) {
		values = append(values, e.make(t, p))
	}
	return values
}

// again makes a second resource for each list.
func (n fixture) again(t *testing.T) {
	t.Helper()
	board, post := "/v1/boards/"+n.ids["boardId"], "/v1/posts/"+n.ids["postId"]
	n.ID(t, "/v1/boards", object{"name": "More ideas"})
	n.ID(t, "/v1/webhooks", object{"url": "https://hooks.example.com/too", "events": []string{"post.created"}})
	n.ID(t, "/v1/contacts", object{"name": "Bo"})
	for _, id := range []string{"u-8", "u-9"} { // they can get e-mails
		n.ID(t, "/v1/contacts/identify", object{"externalUserId": id, "email": id + "@example.com"})
	}
	n.ID(t, "/v1/widget/secrets", nil)
	n.ID(t, board+"/tags", object{"name": "Desktop"})
	n.ID(t, board+"/changelog", object{"title": "Dark again"})
	n.ID(t, post+"/comments", object{"body": object{"text": "And me."}})
	n.ID(t, post+"/votes", nil)
	n.Recovered(t, n.ids["webhookId"])
	n.Submission(t, n.ids["boardId"], n.ids["postId"])
	for range 2 {
		n.ID(t, board+"/posts", object{"title": "Dark mode", "contactId": n.ids["contactId"]})
	}
}

func badQueries(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	everyOperation(t, hasQuery, func(t *testing.T, o operation) {
		at := o.filled(t, n.ids)
		for _, q := range o.queries() {
			if q.Name == "cursor" {
				continue // badPages and forgedCursors test it
			}
			s := q.Schema.Value
			for _, f := range flaws(q.Name, s) {
				value, ok := textOfFlaw(s, f)
				if !ok {
					continue
				}
				a := n.Do(t, o.method, at+"?"+q.Name+"="+value, nil)
				if assert.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s %s: %s", f.field, f.limit, a.Raw) {
					checkStated(t, f, keywordsAt(f.field, q.Name, s), rules(a))
				}
			}
		}
	})
}

// textOfFlaw writes a flaw in the notation of a query. Every value of a query is a text, so the
// only wrong type is a text for a number.
func textOfFlaw(s *openapi3.Schema, f flaw) (string, bool) {
	switch {
	case f.limit == "minItems":
		return "", false // an empty text is a list of one empty item: minLength
	case f.limit == "minLength":
		return "", true
	case f.limit == "type string":
		return "x", s.Type.Includes("integer")
	case strings.HasPrefix(f.limit, "type"):
		return "", false
	case f.limit == "maxItems" && len(s.Items.Value.Enum) > 0:
		// Otherwise, all items would be bad, too.
		return inQuery(slices.Repeat([]any{s.Items.Value.Enum[0]}, int(*s.MaxItems)+1)), true
	case f.limit == "maximum of a 64-bit integer":
		return "99999999999999999999", true
	}
	return inQuery(f.value), true
}

// forgedCursors sends cursors of the right form with parts that no list has written.
func forgedCursors(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	n.again(t)
	posts := "/v1/boards/" + n.ids["boardId"] + "/posts?"
	for path, forged := range map[string][]string{
		posts + "q=dark":                              {"0", "-1", "3", "01", "+1", "1.0", "9223372036854775807", "99999999999999999999"},
		posts + "sort=votes":                          {"+1", "01", "-0", "1e0", "99999999999999999999"},
		posts + "sort=active":                         {"2026-03-12T10:41:07+01:00", "2026-03-12T10:41:07.0Z", "2026-03-12", "99999-01-01T00:00:00Z", ""},
		"/v1/contacts?sort=mrr":                       {"+1", "-01", "99999999999999999999"},
		"/v1/contacts?sort=last_seen":                 {"2026-03-12T10:41:07+00:00", "2026-03-12T10:41:07.10Z", "now"},
		"/v1/posts/" + n.ids["postId"] + "/comments?": {"x", "", n.ids["postId"]},
	} {
		t.Run(path, func(t *testing.T) {
			given := n.Do(t, http.MethodGet, path+"&limit=1", nil).Body["nextCursor"].(string)
			raw, err := base64.RawURLEncoding.DecodeString(given)
			require.NoError(t, err)
			parts := strings.Split(string(raw), "/")
			require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, path+"&cursor="+given, nil).Status)
			for _, part := range forged {
				again := slices.Clone(parts)
				again[1] = part
				cursor := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(again, "/")))
				a := n.Do(t, http.MethodGet, path+"&cursor="+cursor, nil)
				assert.Equal(t, [][2]string{{"cursor", "cursor"}}, rules(a), "%s: %d %.200s", part, a.Status, a.Raw)
			}
		})
	}
}

func sortOfNothing(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	a := n.Do(t, http.MethodGet, "/v1/boards/"+n.ids["boardId"]+"/posts?sort=relevance", nil)
	require.Equal(t, [][2]string{{"sort", "relevance"}}, rules(a))
	a = n.Do(t, http.MethodGet, "/v1/boards/"+n.ids["boardId"]+"/posts?sort=revenue", nil)
	require.Equal(t, [][2]string{{"currency", "required"}}, rules(a))
	a = n.Do(t, http.MethodGet, "/v1/boards/"+n.ids["boardId"]+"/posts?sort=votes&currency=EUR", nil)
	require.Equal(t, [][2]string{{"currency", "revenue"}}, rules(a))
}

// saidTwice checks that a repeated parameter is refused. Otherwise, the answer would ignore one of
// its values. Lists aren't tested.
func saidTwice(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	everyOperation(t, hasQuery, func(t *testing.T, o operation) {
		for _, q := range o.queries() {
			if q.Schema.Value.Type.Includes("array") || q.Name == "cursor" {
				continue
			}
			values := goodValues(t, n, o, q)
			first := q.Name + "=" + inQuery(values[0])
			again := q.Name + "=" + inQuery(values[len(values)-1])
			a := n.Do(t, o.method, o.filled(t, n.ids)+"?"+first+"&"+again+beside[first], nil)
			assert.Equal(t, []string{q.Name}, a.Fields(), "%s: %d", q.Name, a.Status)
		}
	})
}

func momentsOfQueries(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	isMoment := func(q *openapi3.Parameter) bool { return q.Schema.Value.Format == "date-time" }
	everyOperation(t, func(o operation) bool { return slices.ContainsFunc(o.queries(), isMoment) }, func(t *testing.T, o operation) {
		q := o.queries()[slices.IndexFunc(o.queries(), isMoment)]
		for _, wrong := range []string{
			"2026-03-12", "2026-03-12T10:41:07", "2026-03-12 10:41:07Z", "2026-02-30T10:41:07Z", "2026-03-12T24:00:00Z",
			"0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "10000-01-01T00:00:00Z", "1773312067", "",
		} {
			a := n.Do(t, o.method, o.filled(t, n.ids)+"?"+q.Name+"="+url.QueryEscape(wrong), nil)
			assert.Equal(t, [][2]string{{q.Name, "format"}}, rules(a), "%s: %d", wrong, a.Status)
		}
	})
}
