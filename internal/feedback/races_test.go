package feedback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit"
)

// many requests at once are more than the service has connections.
const many = 20

func TestRequestsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"identify one contact":                           identifyAtOnce,
		"identify one contact with a trait each":         fillAtOnce,
		"identify contacts up to the cap and no further": capAtOnce,
		"identify one last contact under the cap":        lastPlaceAtOnce,
		"register webhooks up to the cap":                webhookCapAtOnce,
		"make one board of one slug":                     wantedSlugAtOnce,
		"make boards and posts with a number each":       numbersAtOnce,
		"make one tag of one name":                       tagAtOnce,
		"move one post to one slug":                      patchSlugAtOnce,
		"put one vote of one caller":                     votesAtOnce,
		"count every comment":                            commentsAtOnce,
		"don't undo each other's changes":                patchesAtOnce,
		"tell every change of status once":               statusesAtOnce,
		"delete webhooks that are being told":            deleteWebhooksAtOnce,
		"delete tags that are being used":                deleteTagsAtOnce,
	}, "EARSHOT_CONTACT_CAP_FREE=3", "EARSHOT_WEBHOOK_CAP=3")
}

func always(body any) func(int) any { return func(int) any { return body } }

func identifyAtOnce(t *testing.T, n *tenant) {
	n.listen(t)
	for _, count := range []int{2, many} {
		id := fmt.Sprint("u-", count)
		answers := n.atOnce(t, count, http.MethodPost, "/v1/contacts/identify", always(object{"externalUserId": id}))
		require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusOK: count - 1}, statuses(answers))
		require.Len(t, slices.Compact(values(answers, "id")), 1)
	}
	require.Len(t, n.payloads(t, event.ContactCreated), 2)
}

func fillAtOnce(t *testing.T, n *tenant) {
	n.listen(t)
	answers := n.atOnce(t, many, http.MethodPost, "/v1/contacts/identify", func(i int) any {
		return object{"externalUserId": "u-1", "metadata": object{fmt.Sprint("k", i): i}}
	})
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusOK: many - 1}, statuses(answers))
	contact := n.get(t, "/v1/contacts/"+answers[0].Data()["id"].(string))
	require.Len(t, contact["metadata"], many, "none is lost")
	require.Len(t, n.payloads(t, event.ContactUpdated), many-1)
}

func capAtOnce(t *testing.T, n *tenant) {
	free := n.on(t, "free")
	answers := free.atOnce(t, many, http.MethodPost, "/v1/contacts/identify", func(i int) any {
		return object{"externalUserId": fmt.Sprint("u-", i)}
	})
	require.Equal(t, map[int]int{http.StatusCreated: 3, http.StatusPaymentRequired: many - 3}, statuses(answers))
	for i, a := range answers {
		if a.Status == http.StatusCreated {
			again := free.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": fmt.Sprint("u-", i), "name": "Ada"})
			require.Equal(t, http.StatusOK, again.Status, "who is there already never meets the cap")
			continue
		}
		require.Equal(t, "map[current:3 limit:3 resource:contact]", fmt.Sprint(a.Details()))
	}
}

// The organization has webhooks, so that events are written beside the cap's
// lock: the two must not wait for each other.
func lastPlaceAtOnce(t *testing.T, n *tenant) {
	for range 5 {
		free := n.on(t, "free")
		free.upgradeFor(t, func() { free.listen(t) })
		answers := free.atOnce(t, many, http.MethodPost, "/v1/contacts/identify", func(i int) any {
			return object{"externalUserId": fmt.Sprint("u-", i%3), "metadata": object{fmt.Sprint("k", i): i}}
		})
		require.Equal(t, map[int]int{http.StatusCreated: 3, http.StatusOK: many - 3}, statuses(answers))
	}
}

// upgradeFor lets a free organization do what needs a paid plan, through a key
// of its own: of a used one the service would remember the plan.
func (n *tenant) upgradeFor(t *testing.T, do func()) {
	t.Helper()
	ctx, organizations := n.Context(t.Context()), n.app.Store.Client().Organization
	organizations.Update().SetPlan("pro").ExecX(ctx)
	key := n.Key
	n.Key = n.NewKey(t, newKey)
	do()
	n.Key = key
	organizations.Update().SetPlan("free").ExecX(ctx)
}

func webhookCapAtOnce(t *testing.T, n *tenant) {
	answers := n.atOnce(t, many, http.MethodPost, "/v1/webhooks", always(registration))
	require.Equal(t, map[int]int{http.StatusCreated: 3, http.StatusPaymentRequired: many - 3}, statuses(answers))
	a := n.Do(t, http.MethodPost, "/v1/webhooks", registration)
	require.Equal(t, "map[current:3 limit:3 resource:webhook]", fmt.Sprint(a.Details()))
}

func wantedSlugAtOnce(t *testing.T, n *tenant) {
	answers := n.atOnce(t, many, http.MethodPost, "/v1/boards", always(object{"name": "Ideas", "slug": "wanted"}))
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: many - 1}, statuses(answers))
}

func numbersAtOnce(t *testing.T, n *tenant) {
	want := []string{"ideas"}
	for i := 2; i <= many; i++ {
		want = append(want, fmt.Sprint("ideas-", i))
	}
	slices.Sort(want)
	boards := n.atOnce(t, many, http.MethodPost, "/v1/boards", always(object{"name": "Ideas"}))
	require.Equal(t, want, values(boards, "slug"))
	posts := n.atOnce(t, many, http.MethodPost, n.board(t)+"/posts", always(object{"title": "Ideas"}))
	require.Equal(t, want, values(posts, "slug"))
}

func tagAtOnce(t *testing.T, n *tenant) {
	answers := n.atOnce(t, many, http.MethodPost, n.board(t)+"/tags", always(object{"name": "Mobile"}))
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: many - 1}, statuses(answers))
}

func patchSlugAtOnce(t *testing.T, n *tenant) {
	board := n.board(t)
	posts := make([]string, many)
	for i := range posts {
		posts[i] = "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x"})
	}
	answers := atOnce(many, func(i int) testkit.Answer {
		return n.Do(t, http.MethodPatch, posts[i], object{"slug": "wanted"})
	})
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: many - 1}, statuses(answers))
}

func votesAtOnce(t *testing.T, n *tenant) {
	post := n.post(t)
	n.listen(t)
	answers := n.atOnce(t, many, http.MethodPost, post+"/votes", always(nil))
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusOK: many - 1}, statuses(answers))
	require.Len(t, slices.Compact(values(answers, "id")), 1)
	require.Equal(t, json.Number("1"), n.get(t, post)["voteCount"])
	require.Len(t, n.recorded(t), 1)
	n.atOnce(t, many, http.MethodDelete, post+"/votes", always(nil))
	require.Equal(t, json.Number("0"), n.get(t, post)["voteCount"])
}

func commentsAtOnce(t *testing.T, n *tenant) {
	post := n.post(t)
	n.listen(t)
	answers := n.atOnce(t, many, http.MethodPost, post+"/comments", always(object{"body": object{"text": "x"}}))
	require.Equal(t, map[int]int{http.StatusCreated: many}, statuses(answers))
	require.Equal(t, json.Number(fmt.Sprint(many)), n.get(t, post)["commentCount"])
	require.Len(t, n.recorded(t), many)
}

func patchesAtOnce(t *testing.T, n *tenant) {
	post := n.post(t)
	changes := []object{{"title": "Night mode"}, {"status": "planned"}, {"hideFromRoadmap": true}, {"body": object{"json": nil, "text": "x"}}, {"slug": "y"}}
	answers := n.atOnce(t, len(changes), http.MethodPatch, post, func(i int) any { return changes[i] })
	require.Equal(t, map[int]int{http.StatusOK: len(changes)}, statuses(answers))
	read := n.get(t, post)
	for _, change := range changes {
		for name, value := range change {
			require.Equal(t, value, read[name])
		}
	}
}

func statusesAtOnce(t *testing.T, n *tenant) {
	post := n.post(t)
	n.listen(t)
	n.atOnce(t, many, http.MethodPatch, post, always(object{"status": "planned"}))
	require.Len(t, n.payloads(t, event.PostStatusChanged), 1)
}

func deleteWebhooksAtOnce(t *testing.T, n *tenant) {
	post := n.post(t)
	for range 5 {
		hooks := []string{n.listen(t), n.listen(t)}
		answers := atOnce(many, func(i int) testkit.Answer {
			if i < len(hooks) {
				return n.Do(t, http.MethodDelete, "/v1/webhooks/"+hooks[i], nil)
			}
			return n.Do(t, http.MethodPost, post+"/comments", object{"body": object{"text": "x"}})
		})
		require.Equal(t, map[int]int{http.StatusOK: 2, http.StatusCreated: many - 2}, statuses(answers))
	}
}

func deleteTagsAtOnce(t *testing.T, n *tenant) {
	board := n.board(t)
	for range 5 {
		tag := n.ID(t, board+"/tags", object{"name": "Mobile"})
		answers := atOnce(many, func(i int) testkit.Answer {
			if i == many/2 {
				return n.Do(t, http.MethodDelete, board+"/tags/"+tag, nil)
			}
			return n.Do(t, http.MethodPost, board+"/posts", object{"title": "x", "tagIds": []string{tag}})
		})
		for _, a := range answers {
			require.Contains(t, []int{http.StatusOK, http.StatusCreated, http.StatusNotFound}, a.Status, "%s", a.Raw)
		}
	}
}
