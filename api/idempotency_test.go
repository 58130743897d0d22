package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/internal/retention"
	"earshot/internal/testkit/apptest"
)

// takes reports whether the operation has the parameter.
func (o operation) takes(name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == name })
}

func TestEveryWriteButIdentifyTakesAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	for _, o := range load(t).operations() {
		require.Equal(t, o.method != http.MethodGet && !strings.HasPrefix(o.OperationID, "identifyContact"), o.takes("Idempotency-Key"), o.OperationID)
	}
}

func TestAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{}), map[string]func(*testing.T, *apptest.App){
		"is refused with another body":                               keyWithAnotherBody,
		"is apart for each method, path and API key":                 keyElsewhere,
		"isn't kept for a refused request":                           keyOfARefusal,
		"has one effect for simultaneous requests":                   keyAtOnce,
		"has one effect where each change is made alone":             keyAtOnceAlone,
		"counts for a day":                                           keyAfterADay,
		"keeps no secret that can be read in the database":           keyOfASecret,
		"of a vote that was cast before has the answer of then":      keyOfAVote,
		"has 1 to 255 characters, and every problem is told at once": badKeys,
		"is ignored by identify and by reads":                        keyIgnored,
	})
}

// listed returns the items of a list.
func listed(t *testing.T, n *apptest.Tenant, path string) []any {
	t.Helper()
	return n.Do(t, http.MethodGet, path, nil).Body["data"].([]any)
}

func withKey(key string) []string { return []string{"Idempotency-Key", key} }

func keyWithAnotherBody(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	key, posts := withKey(uuid.NewString()), n.Board(t)+"/posts"
	require.Equal(t, http.StatusCreated, n.Do(t, http.MethodPost, posts, object{"title": "Dark mode"}, key...).Status)
	unchanged := n.Watch(t)
	other := n.Do(t, http.MethodPost, posts, object{"title": "Light mode"}, key...)
	require.Equal(t, http.StatusUnprocessableEntity, other.Status)
	require.Equal(t, "ERR_IDEMPOTENCY_MISMATCH", other.Code())
	unchanged(t)
}

func keyElsewhere(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	key, board, title := withKey(uuid.NewString()), n.Board(t), object{"title": "Dark mode"}
	ids := map[any]bool{}
	for _, a := range []apptest.Answer{
		n.Do(t, http.MethodPost, board+"/posts", title, key...),
		n.Do(t, http.MethodPost, n.Board(t)+"/posts", title, key...),
		n.Do(t, http.MethodPost, board+"/posts", title,
			append(key, "Authorization", "Bearer "+n.NewKeyOf(t, object{"name": "other", "scope": "read:write"})["key"].(string))...),
		app.Tenant(t).Do(t, http.MethodPost, "/v1/contacts", object{}, key...),
	} {
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
		ids[a.Data()["id"]] = true
	}
	require.Len(t, ids, 4)
}

func keyOfARefusal(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	key, body := withKey(uuid.NewString()), object{"title": "Dark mode", "contactId": "nobody"}
	posts := n.Board(t) + "/posts"
	for range 2 {
		refused := n.Do(t, http.MethodPost, posts, body, key...)
		require.Equal(t, http.StatusNotFound, refused.Status)
		require.Empty(t, refused.Header.Get("Idempotent-Replayed"))
	}
	require.Equal(t, http.StatusCreated, n.Do(t, http.MethodPost, posts, object{"title": "Dark mode"}, key...).Status)
}

// racers is more than the connections of a pool.
const racers = 24

// race sends the same request many times in parallel and requires one effect. Each client gets the
// first answer, or is asked to retry and then gets it.
func race(t *testing.T, n *apptest.Tenant, method, path string, body any) string {
	t.Helper()
	key := withKey(uuid.NewString())
	answers := make([]string, racers)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			for answers[i] == "" {
				a := n.Do(t, method, path, body, key...)
				switch a.Code() {
				case "":
					answers[i] = string(a.Raw)
				case "ERR_IDEMPOTENCY_IN_PROGRESS":
					if a.Header.Get("Retry-After") != "1" {
						answers[i] = "no Retry-After"
					}
				default:
					answers[i] = string(a.Raw)
				}
			}
		})
	}
	all.Wait()
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(answers))), 1, "%s", answers)
	return answers[0]
}

func keyAtOnce(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	hook, post := n.Listen(t, "post.created", "vote.created", "comment.created"), n.Post(t)
	before := len(listed(t, n, "/v1/webhooks/"+hook+"/deliveries?limit=200"))
	board := n.Board(t)
	require.Contains(t, race(t, n, http.MethodPost, board+"/posts", object{"title": "Dark mode"}), "Dark mode")
	require.Contains(t, race(t, n, http.MethodPost, post+"/comments", object{"body": object{"text": "Me too."}}), "Me too.")
	require.Contains(t, race(t, n, http.MethodPost, post+"/votes", nil), strings.TrimPrefix(post, "/v1/posts/"))
	require.Len(t, listed(t, n, board+"/posts"), 1)
	require.Len(t, listed(t, n, post+"/comments"), 1)
	require.Len(t, listed(t, n, "/v1/webhooks/"+hook+"/deliveries?limit=200"), before+3)
}

func keyAtOnceAlone(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	post := n.Post(t)
	require.Contains(t, race(t, n, http.MethodPost, "/v1/contacts", object{"name": "Ada"}), "Ada")
	require.Len(t, listed(t, n, "/v1/contacts"), 1)
	require.Contains(t, race(t, n, http.MethodPost, "/v1/api-keys", object{"name": "Import", "scope": "read"}), "esk_")
	require.Contains(t, race(t, n, http.MethodPatch, post, object{"status": "planned"}), "planned")
	require.Contains(t, race(t, n, http.MethodDelete, post, nil), strings.TrimPrefix(post, "/v1/posts/"), "and not 404")
}

func keyAfterADay(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	key, posts := withKey(uuid.NewString()), n.Board(t)+"/posts"
	first := n.Do(t, http.MethodPost, posts, object{"title": "Dark mode"}, key...)
	_, err := app.Pool.Exec(t.Context(), "UPDATE idempotency_records SET created_at = created_at - interval '24 hours' WHERE organization_id = $1",
		n.Organization.ID.UUID().String())
	require.NoError(t, err)
	for title := range strings.SplitSeq("Light mode,Light mode", ",") { // the first one replaces the old record
		again := n.Do(t, http.MethodPost, posts, object{"title": title}, key...)
		require.Equal(t, http.StatusCreated, again.Status, "%s", again.Raw)
		require.NotEqual(t, first.Data()["id"], again.Data()["id"])
	}
	require.Len(t, listed(t, n, posts), 2)
	removed, whole, err := retention.RemoveIdempotencyRecords(t.Context(), app.Store)
	require.NoError(t, err)
	require.Zero(t, removed, "it counts for a day")
	require.False(t, whole)
}

func keyOfASecret(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	made := n.Do(t, http.MethodPost, "/v1/api-keys", object{"name": "Import", "scope": "read"}, withKey(uuid.NewString())...)
	secret := made.Data()["key"].(string)
	records := n.Contents(t, "idempotency_records")
	require.Len(t, records, 1)
	require.NotContains(t, records[0], fmt.Sprintf("%x", secret))
	require.NotContains(t, records[0], secret)
}

func keyOfAVote(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	votes := n.Post(t) + "/votes"
	cast := n.Do(t, http.MethodPost, votes, nil)
	require.Equal(t, http.StatusCreated, cast.Status)
	key := withKey(uuid.NewString())
	again := n.Do(t, http.MethodPost, votes, nil, key...)
	require.Equal(t, http.StatusOK, again.Status)
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodDelete, votes, nil).Status)
	replayed := n.Do(t, http.MethodPost, votes, nil, key...)
	require.Equal(t, string(again.Raw), string(replayed.Raw))
	require.Empty(t, listed(t, n, votes), "what was asked for once isn't done a second time")
}

func badKeys(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	posts := n.Board(t) + "/posts"
	for _, key := range []string{" ", strings.Repeat("ü", 256), "\xff"} {
		refused := n.Do(t, http.MethodPost, posts, object{"title": ""}, withKey(key)...)
		require.Equal(t, "ERR_VALIDATION", refused.Code(), "%q", key)
		require.Equal(t, []string{"Idempotency-Key", "title"}, refused.Fields(), "%q", key)
	}
	for _, key := range []string{"a", "a, b", `"quoted"`, strings.Repeat("ü", 255)} {
		require.Equal(t, http.StatusCreated, n.Do(t, http.MethodPost, posts, object{"title": "Dark mode"}, withKey(key)...).Status, "%q", key)
	}
}

func keyIgnored(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	key := withKey(strings.Repeat("k", 300))
	first := n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u-1"}, key...)
	require.Equal(t, http.StatusCreated, first.Status)
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u-1"}, key...).Status)
	for _, id := range []string{"u-1", "u-2"} {
		a := n.Do(t, http.MethodPost, "/v1/contacts/identify/batch", object{"contacts": []object{{"externalUserId": id}}}, key...)
		require.Equal(t, id, a.Body["data"].([]any)[0].(object)["contact"].(object)["externalUserId"], "%s", a.Raw)
	}
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/contacts", nil, key...).Status)
	require.Empty(t, n.Contents(t, "idempotency_records"))
}
