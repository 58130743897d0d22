package feedback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/user"
	"earshot/internal/access"
	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// many is a number of concurrent requests that exceeds the service's connections.
const many = 20

func TestRequestsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	togetherOn(t, apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_CONTACT_CAP_FREE=3", "EARSHOT_WEBHOOK_CAP=3"}}), map[string]func(*testing.T, *tenant){
		"identify one contact":                           identifyAtOnce,
		"identify one contact with a trait each":         fillAtOnce,
		"identify contacts up to the cap and no further": capAtOnce,
		"identify one last contact under the cap":        lastPlaceAtOnce,
		"register webhooks up to the cap":                webhookCapAtOnce,
		"make one board of one slug":                     wantedSlugAtOnce,
		"make boards and posts with a number each":       numbersAtOnce,
		"make one tag of one name":                       tagAtOnce,
		"make the last tag of a board":                   lastTagAtOnce,
		"move one post to one slug":                      patchSlugAtOnce,
		"put one vote of one caller":                     votesAtOnce,
		"count every comment":                            commentsAtOnce,
		"don't undo each other's changes":                patchesAtOnce,
		"don't undo each other's changes of a board":     patchBoardAtOnce,
		"don't undo each other's changes of a contact":   patchContactAtOnce,
		"don't undo traits that identify fills in":       patchAndFillAtOnce,
		"don't undo each other's changes of an entry":    patchEntryAtOnce,
		"don't undo each other's changes of a webhook":   patchWebhookAtOnce,
		"don't undo links and tags beside other changes": patchSetsAtOnce,
		"tell every change of status once":               statusesAtOnce,
		"delete webhooks that are being told":            deleteWebhooksAtOnce,
		"delete tags that are being used":                deleteTagsAtOnce,
		"create and identify contacts up to the cap":     mixedCapAtOnce,
		"free a place under the cap that many want":      freedPlaceAtOnce,
		"create one contact of one id":                   createOneIDAtOnce,
		"create one last contact of one id":              createLastIDAtOnce,
		"create and identify one contact":                createAndIdentifyAtOnce,
		"move one contact to one id":                     patchIDAtOnce,
		"move one contact to an id that is identified":   patchAndIdentifyAtOnce,
		"exchange the ids of two contacts":               exchangeIDsAtOnce,
		"move one board and one entry to one slug":       patchSlugsAtOnce,
		"read their own earlier writes":                  readOwnWritesAtOnce,
	})
}

// only fails the test if an answer has a status that is not allowed.
func only(t *testing.T, answers []apptest.Answer, allowed ...int) {
	t.Helper()
	for _, a := range answers {
		require.Contains(t, allowed, a.Status, "%s", a.Raw)
	}
}

// request is one of several requests that are sent concurrently.
type request struct {
	by           *tenant
	method, path string
	body         any
}

// race sends different requests concurrently.
func race(t *testing.T, requests []request) []apptest.Answer {
	t.Helper()
	return atOnce(len(requests), func(i int) apptest.Answer {
		return requests[i].do(t)
	})
}

// do sends the request. It retries if the organization had too many concurrent changes, which
// happens on a busy machine.
func (r request) do(t *testing.T) apptest.Answer {
	t.Helper()
	for {
		if a := r.by.Do(t, r.method, r.path, r.body); a.Code() != "ERR_RATE_LIMITED" {
			return a
		}
	}
}

func always(body any) func(int) any { return func(int) any { return body } }

func identifyAtOnce(t *testing.T, n *tenant) {
	n.Listen(t)
	for _, count := range []int{2, many} {
		id := fmt.Sprint("u-", count)
		answers := n.atOnce(t, count, http.MethodPost, "/v1/contacts/identify", always(object{"externalUserId": id}))
		require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusOK: count - 1}, statuses(answers))
		require.Len(t, slices.Compact(values(answers, "id")), 1)
	}
	require.Len(t, n.Payloads(t, event.ContactCreated), 2)
}

func fillAtOnce(t *testing.T, n *tenant) {
	n.Listen(t)
	answers := n.atOnce(t, many, http.MethodPost, "/v1/contacts/identify", func(i int) any {
		return object{"externalUserId": "u-1", "metadata": object{fmt.Sprint("k", i): i}}
	})
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusOK: many - 1}, statuses(answers))
	contact := n.Get(t, "/v1/contacts/"+answers[0].Data()["id"].(string))
	require.Len(t, contact["metadata"], many, "none is lost")
	require.Len(t, n.Payloads(t, event.ContactUpdated), many-1)
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

// The organization has webhooks, so events are written under the cap's lock. The two must not
// deadlock.
func lastPlaceAtOnce(t *testing.T, n *tenant) {
	for range 5 {
		free := n.on(t, "free")
		free.upgradeFor(t, func() { free.Listen(t) })
		answers := free.atOnce(t, many, http.MethodPost, "/v1/contacts/identify", func(i int) any {
			return object{"externalUserId": fmt.Sprint("u-", i%3), "metadata": object{fmt.Sprint("k", i): i}}
		})
		require.Equal(t, map[int]int{http.StatusCreated: 3, http.StatusOK: many - 3}, statuses(answers))
	}
}

// upgradeFor puts a free organization on a paid plan during do. It uses a new key, because the
// service caches the plan of a used key.
func (n *tenant) upgradeFor(t *testing.T, do func()) {
	t.Helper()
	ctx, organizations := n.Context(t.Context()), n.App.Store.Client().Organization
	organizations.Update().SetPlan("pro").ExecX(ctx)
	key := n.Key
	n.Key = n.NewKey(t, apptest.NewKey)
	do()
	n.Key = key
	organizations.Update().SetPlan("free").ExecX(ctx)
}

func webhookCapAtOnce(t *testing.T, n *tenant) {
	answers := n.atOnce(t, many, http.MethodPost, "/v1/webhooks", always(apptest.Registration))
	require.Equal(t, map[int]int{http.StatusCreated: 3, http.StatusPaymentRequired: many - 3}, statuses(answers))
	a := n.Do(t, http.MethodPost, "/v1/webhooks", apptest.Registration)
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
	posts := n.atOnce(t, many, http.MethodPost, n.Board(t)+"/posts", always(object{"title": "Ideas"}))
	require.Equal(t, want, values(posts, "slug"))
}

// Concurrent requests for a board's last possible tag: exactly one gets it.
func lastTagAtOnce(t *testing.T, n *tenant) {
	path := n.Board(t) + "/tags"
	n.manyTags(t, path, 499)
	answers := n.atOnce(t, 8, http.MethodPost, path, func(i int) any { return object{"name": fmt.Sprint("last ", i)} })
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: 7}, statuses(answers))
	for _, a := range answers {
		if a.Status == http.StatusConflict {
			require.Equal(t, object{"reason": "tag_limit", "resource": "tag", "limit": json.Number("500"), "current": json.Number("500")}, a.Details())
		}
	}
	require.Equal(t, object{"field": "name"}, n.Refused(t, "ERR_CONFLICT", http.MethodPost, path, object{"name": "TAG 0"}).Details())
	whole := n.Do(t, http.MethodGet, path, nil)
	require.Len(t, whole.Body["data"], 500)
	require.Nil(t, whole.Body["nextCursor"])
	first := whole.Body["data"].([]any)[0].(object)["id"].(string)
	n.Make(t, http.MethodDelete, path+"/"+first, nil)
	n.ID(t, path, object{"name": "room again"})
}

// manyTags adds tags to the board with this path of its tags.
func (n *tenant) manyTags(t *testing.T, path string, count int) {
	t.Helper()
	board, err := publicid.Parse[publicid.Board](strings.Split(path, "/")[3])
	require.NoError(t, err)
	client := n.App.Store.Client()
	rows := make([]*db.TagCreate, count)
	for i := range rows {
		name := fmt.Sprint("tag ", i)
		rows[i] = client.Tag.Create().SetBoardID(board).SetName(name).SetNameKey(name).SetColor("#6b7280")
	}
	client.Tag.CreateBulk(rows...).ExecX(n.Context(t.Context()))
}

func tagAtOnce(t *testing.T, n *tenant) {
	answers := n.atOnce(t, many, http.MethodPost, n.Board(t)+"/tags", always(object{"name": "Mobile"}))
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: many - 1}, statuses(answers))
}

func patchSlugAtOnce(t *testing.T, n *tenant) {
	board := n.Board(t)
	posts := make([]string, many)
	for i := range posts {
		posts[i] = "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x"})
	}
	answers := atOnce(many, func(i int) apptest.Answer {
		return n.Do(t, http.MethodPatch, posts[i], object{"slug": "wanted"})
	})
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: many - 1}, statuses(answers))
}

func votesAtOnce(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t)
	answers := n.atOnce(t, many, http.MethodPost, post+"/votes", always(nil))
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusOK: many - 1}, statuses(answers))
	require.Len(t, slices.Compact(values(answers, "id")), 1)
	require.Equal(t, json.Number("1"), n.Get(t, post)["voteCount"])
	require.Len(t, n.Recorded(t), 1)
	n.atOnce(t, many, http.MethodDelete, post+"/votes", always(nil))
	require.Equal(t, json.Number("0"), n.Get(t, post)["voteCount"])
}

func commentsAtOnce(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t)
	answers := n.atOnce(t, many, http.MethodPost, post+"/comments", always(object{"body": object{"text": "x"}}))
	require.Equal(t, map[int]int{http.StatusCreated: many}, statuses(answers))
	require.Equal(t, json.Number(fmt.Sprint(many)), n.Get(t, post)["commentCount"])
	require.Len(t, n.Recorded(t), many)
}

func patchesAtOnce(t *testing.T, n *tenant) {
	post := n.Post(t)
	changes := []object{{"title": "Night mode"}, {"status": "planned"}, {"hideFromRoadmap": true}, {"body": object{"json": nil, "text": "x"}}, {"slug": "y"}}
	answers := n.atOnce(t, len(changes), http.MethodPatch, post, func(i int) any { return changes[i] })
	require.Equal(t, map[int]int{http.StatusOK: len(changes)}, statuses(answers))
	read := n.Get(t, post)
	for _, change := range changes {
		for name, value := range change {
			require.Equal(t, value, read[name])
		}
	}
}

func statusesAtOnce(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t)
	n.atOnce(t, many, http.MethodPatch, post, always(object{"status": "planned"}))
	require.Len(t, n.Payloads(t, event.PostStatusChanged), 1)
}

func deleteWebhooksAtOnce(t *testing.T, n *tenant) {
	post := n.Post(t)
	for range 5 {
		hooks := []string{n.Listen(t), n.Listen(t)}
		answers := atOnce(many, func(i int) apptest.Answer {
			if i < len(hooks) {
				return n.Do(t, http.MethodDelete, "/v1/webhooks/"+hooks[i], nil)
			}
			return n.Do(t, http.MethodPost, post+"/comments", object{"body": object{"text": "x"}})
		})
		require.Equal(t, map[int]int{http.StatusOK: 2, http.StatusCreated: many - 2}, statuses(answers))
	}
}

func deleteTagsAtOnce(t *testing.T, n *tenant) {
	board := n.Board(t)
	for range 5 {
		tag := n.ID(t, board+"/tags", object{"name": "Mobile"})
		answers := atOnce(many, func(i int) apptest.Answer {
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

// mixed returns requests that each make a contact. Every other one uses identify.
func mixed(n *tenant, count int, id func(i int) string) []request {
	requests := make([]request, count)
	for i := range requests {
		path := [...]string{"/v1/contacts", "/v1/contacts/identify"}[i%2]
		requests[i] = request{n, http.MethodPost, path, object{"externalUserId": id(i)}}
	}
	return requests
}

func each(i int) string { return fmt.Sprint("u-", i) }

func same(int) string { return "u-1" }

func (n *tenant) contacts(t *testing.T) int {
	t.Helper()
	return n.App.Store.Client().Contact.Query().CountX(n.Context(t.Context()))
}

func mixedCapAtOnce(t *testing.T, n *tenant) {
	for range 5 {
		free := n.on(t, "free")
		answers := race(t, mixed(free, many, each))
		require.Equal(t, map[int]int{http.StatusCreated: 3, http.StatusPaymentRequired: many - 3}, statuses(answers))
		require.Equal(t, 3, free.contacts(t))
	}
}

func freedPlaceAtOnce(t *testing.T, n *tenant) {
	free := n.on(t, "free")
	last := values(race(t, mixed(free, 3, each)), "id")[2]
	for round := range tier.Repeats() {
		requests := mixed(free, 6, func(i int) string { return fmt.Sprint("new-", round, "-", i) })
		answers := race(t, append(requests, request{free, http.MethodDelete, "/v1/contacts/" + last, nil}))
		only(t, answers, http.StatusOK, http.StatusCreated, http.StatusPaymentRequired)
		made := statuses(answers)[http.StatusCreated]
		require.LessOrEqual(t, made, 1)
		require.Equal(t, 2+made, free.contacts(t))
		if made == 0 {
			last = free.ID(t, "/v1/contacts", object{})
			continue
		}
		last = values(answers[:len(requests)], "id")[0]
	}
}

func createOneIDAtOnce(t *testing.T, n *tenant) {
	for round := range tier.Repeats() {
		requests := slices.Repeat(mixed(n, 1, func(int) string { return fmt.Sprint("u-", round) }), 6)
		require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: 5}, statuses(race(t, requests)))
	}
}

// The second request gets the conflict and not the cap, even in a race (see CreateContact).
func createLastIDAtOnce(t *testing.T, n *tenant) {
	for range 5 {
		free := n.on(t, "free")
		race(t, mixed(free, 2, func(i int) string { return fmt.Sprint("early-", i) }))
		requests := slices.Repeat(mixed(free, 1, same), 4)
		require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: 3}, statuses(race(t, requests)))
	}
}

func createAndIdentifyAtOnce(t *testing.T, n *tenant) {
	for round := range tier.Repeats() {
		answers := race(t, mixed(n, 6, func(int) string { return fmt.Sprint("u-", round) }))
		require.Equal(t, 1, statuses(answers)[http.StatusCreated])
		for i, a := range answers {
			otherwise := [...]int{http.StatusConflict, http.StatusOK}[i%2]
			only(t, []apptest.Answer{a}, http.StatusCreated, otherwise)
		}
		require.Equal(t, round+1, n.contacts(t))
	}
}

// toOne sets a field of four new resources to the same value concurrently.
func toOne(t *testing.T, n *tenant, member string, create func() (path string)) {
	t.Helper()
	for round := range tier.Repeats() / 2 {
		var requests []request
		for range 4 {
			requests = append(requests, request{n, http.MethodPatch, create(), object{member: fmt.Sprint("wanted-", round)}})
		}
		require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 3}, statuses(race(t, requests)))
	}
}

func patchIDAtOnce(t *testing.T, n *tenant) {
	toOne(t, n, "externalUserId", func() string { return "/v1/contacts/" + n.ID(t, "/v1/contacts", object{}) })
}

func patchSlugsAtOnce(t *testing.T, n *tenant) {
	toOne(t, n, "slug", func() string { return n.Board(t) })
	board := n.Board(t)
	toOne(t, n, "slug", func() string { return "/v1/changelog/" + n.ID(t, board+"/changelog", object{"title": "x"}) })
}

func patchAndIdentifyAtOnce(t *testing.T, n *tenant) {
	for round := range tier.Repeats() {
		wanted := object{"externalUserId": fmt.Sprint("u-", round)}
		contact := "/v1/contacts/" + n.ID(t, "/v1/contacts", object{})
		answers := race(t, append(slices.Repeat([]request{{n, http.MethodPost, "/v1/contacts/identify", wanted}}, 3),
			request{n, http.MethodPatch, contact, wanted}))
		identified := statuses(answers[:3])
		if answers[3].Status == http.StatusOK {
			require.Equal(t, map[int]int{http.StatusOK: 3}, identified)
			continue
		}
		require.Equal(t, http.StatusConflict, answers[3].Status, "%s", answers[3].Raw)
		require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusOK: 2}, identified)
	}
}

// Each request waits for the other's id, and both then get a conflict.
func exchangeIDsAtOnce(t *testing.T, n *tenant) {
	a, b := n.ID(t, "/v1/contacts", object{"externalUserId": "a"}), n.ID(t, "/v1/contacts", object{"externalUserId": "b"})
	for range 3 {
		answers := race(t, []request{
			{n, http.MethodPatch, "/v1/contacts/" + a, object{"externalUserId": "b"}},
			{n, http.MethodPatch, "/v1/contacts/" + b, object{"externalUserId": "a"}},
		})
		require.Equal(t, map[int]int{http.StatusConflict: 2}, statuses(answers))
	}
	require.Equal(t, "a", n.Get(t, "/v1/contacts/"+a)["externalUserId"])
	require.Equal(t, "b", n.Get(t, "/v1/contacts/"+b)["externalUserId"])
}

// undoNothing repeatedly sends concurrent changes of different fields. It expects all values to be
// there afterwards.
func undoNothing(t *testing.T, n *tenant, path string, changes func(round int) []object) {
	t.Helper()
	for round := range tier.Repeats() / 2 {
		wanted := changes(round)
		answers := n.atOnce(t, len(wanted), http.MethodPatch, path, func(i int) any { return wanted[i] })
		require.Equal(t, map[int]int{http.StatusOK: len(wanted)}, statuses(answers))
		holds(t, n.Get(t, path), wanted...)
	}
}

// holds compares fields as JSON, so that numbers and lists of any type are equal.
func holds(t *testing.T, read object, changes ...object) {
	t.Helper()
	for _, change := range changes {
		for name, value := range change {
			want, err := json.Marshal(value)
			require.NoError(t, err)
			got, err := json.Marshal(read[name])
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(got), name)
		}
	}
}

func patchBoardAtOnce(t *testing.T, n *tenant) {
	undoNothing(t, n, n.Board(t), func(round int) []object {
		text := fmt.Sprint("v", round)
		return []object{
			{"name": text}, {"slug": text}, {"description": text},
			{"showChangelog": round%2 == 0}, {"showRoadmap": round%2 == 0},
		}
	})
}

func patchContactAtOnce(t *testing.T, n *tenant) {
	undoNothing(t, n, "/v1/contacts/"+n.ID(t, "/v1/contacts", object{}), func(round int) []object {
		text := fmt.Sprint("v", round)
		return []object{
			{"externalUserId": text}, {"email": text + "@example.com"}, {"name": text}, {"plan": text},
			{"mrrCents": round, "currency": "EUR"}, {"metadata": object{"round": round}},
		}
	})
}

// Identify fills null traits while a patch writes other fields.
func patchAndFillAtOnce(t *testing.T, n *tenant) {
	for round := range tier.Repeats() / 2 {
		id := fmt.Sprint("u-", round)
		contact := "/v1/contacts/" + n.Identify(t, object{"externalUserId": id})["id"].(string)
		filled := object{"externalUserId": id, "name": "Ada", "metadata": object{"seats": 1}}
		patches := []object{{"plan": "pro"}, {"email": id + "@example.com"}, {"mrrCents": 5, "currency": "EUR"}}
		requests := []request{{n, http.MethodPost, "/v1/contacts/identify", filled}}
		for _, patch := range patches {
			requests = append(requests, request{n, http.MethodPatch, contact, patch})
		}
		require.Equal(t, map[int]int{http.StatusOK: 4}, statuses(race(t, requests)))
		holds(t, n.Get(t, contact), append(patches, filled)...)
	}
}

func patchEntryAtOnce(t *testing.T, n *tenant) {
	entry := "/v1/changelog/" + n.ID(t, n.Board(t)+"/changelog", object{"title": "x"})
	undoNothing(t, n, entry, func(round int) []object {
		text := fmt.Sprint("v", round)
		return []object{
			{"title": text}, {"slug": text}, {"version": text}, {"body": object{"json": nil, "text": text}},
			{"publishedAt": []any{"2020-01-01T00:00:00Z", nil}[round%2]},
		}
	})
}

func patchWebhookAtOnce(t *testing.T, n *tenant) {
	undoNothing(t, n, "/v1/webhooks/"+n.Listen(t), func(round int) []object {
		return []object{
			{"url": fmt.Sprint("https://hooks.example.com/", round)},
			{"events": event.Types[round%3 : 4]}, {"enabled": round%2 == 0},
		}
	})
}

// The tags of a post and the links of an entry are in tables of their own.
func patchSetsAtOnce(t *testing.T, n *tenant) {
	board := n.Board(t)
	post := n.ID(t, board+"/posts", object{"title": "x"})
	entry := "/v1/changelog/" + n.ID(t, board+"/changelog", object{"title": "x"})
	for round := range tier.Repeats() / 2 {
		text := fmt.Sprint("v", round)
		tags := object{"tagIds": []string{n.ID(t, board+"/tags", object{"name": text})}}
		titled, linked := object{"title": text}, object{"postIds": [][]string{{post}, {}}[round%2]}
		require.Equal(t, map[int]int{http.StatusOK: 5}, statuses(race(t, []request{
			{n, http.MethodPatch, "/v1/posts/" + post, tags},
			{n, http.MethodPatch, "/v1/posts/" + post, titled},
			{n, http.MethodPut, entry + "/linked-posts", linked},
			{n, http.MethodPatch, entry, titled},
			{n, http.MethodDelete, "/v1/posts/" + post + "/votes", nil},
		})))
		holds(t, n.Get(t, "/v1/posts/"+post), tags, titled)
		holds(t, n.Get(t, entry), linked, titled)
	}
}

// members makes members of the organization with one key each.
func (n *tenant) members(t *testing.T, count int) []*tenant {
	t.Helper()
	ctx, all := n.Context(t.Context()), make([]*tenant, count)
	for i := range all {
		id := publicid.NewUser()
		user := n.App.Store.Client().User.Create().SetID(id).SetEmail(id.String() + "@example.com").SetName("Member").SetRole(user.RoleOwner).SaveX(ctx)
		member := *n.Tenant
		member.Owner = user
		member.Key = member.NewKey(t, access.NewAPIKey{Name: "member", Scope: "read:write"})
		all[i] = &tenant{&member}
	}
	return all
}

// voters is the number in the issue.
const voters = 64

func TestTheVotesOfManyMembersAreCountedExactly(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){"when they vote, repeat and retract at the same moment": manyVotersAtOnce})
}

func manyVotersAtOnce(t *testing.T, n *tenant) {
	members, post := n.members(t, voters), n.Post(t)
	n.Listen(t, event.VoteCreated)
	fresh := make([][]apptest.Answer, voters)
	atOnce(voters, func(i int) apptest.Answer {
		fresh[i] = manyVotes(t, members[i], post, i)
		return apptest.Answer{}
	})
	want := voters - voters/4 // members whom manyVotes leaves without a vote
	require.Equal(t, json.Number(fmt.Sprint(want)), n.Get(t, post)["voteCount"])
	rows := n.Walk(t, post+"/votes", "25", func() {})
	require.Len(t, rows, want)
	var told []string
	for _, p := range n.Payloads(t, event.VoteCreated) {
		told = append(told, p["vote"].(object)["id"].(string))
	}
	answered := values(slices.Concat(fresh...), "id")
	require.ElementsMatch(t, answered, told, "each vote that was new is told once")
	require.Subset(t, answered, rows)
}

// manyVotes sends one member's requests. By i, the member votes three times concurrently; retracts;
// retracts twice and votes again; or votes again. It returns the answers to new votes.
func manyVotes(t *testing.T, member *tenant, post string, i int) []apptest.Answer {
	t.Helper()
	count := [...]int{3, 1, 1, 1}[i%4]
	votes := member.atOnce(t, count, http.MethodPost, post+"/votes", always(nil))
	assert.Equal(t, 1, statuses(votes)[http.StatusCreated])
	assert.Equal(t, count-1, statuses(votes)[http.StatusOK])
	retract := func() {
		assert.Equal(t, http.StatusOK, member.Do(t, http.MethodDelete, post+"/votes", nil).Status)
	}
	switch i % 4 {
	case 1:
		retract()
	case 2:
		retract()
		retract()
		votes = append(votes, member.Do(t, http.MethodPost, post+"/votes", nil))
	case 3:
		votes = append(votes, member.Do(t, http.MethodPost, post+"/votes", nil))
	}
	return slices.DeleteFunc(votes, func(a apptest.Answer) bool { return a.Status != http.StatusCreated })
}

// Concurrent reads share a query, but every caller sees data that was read after its request began.
func readOwnWritesAtOnce(t *testing.T, n *tenant) {
	posts := "/v1/boards/" + n.ID(t, "/v1/boards", object{"name": "Ideas"}) + "/posts"
	problems := make([]string, many)
	atOnce(many, func(i int) (last apptest.Answer) {
		see := func(what string, path, wanted string, there bool) {
			last = n.Do(t, http.MethodGet, path, nil)
			if strings.Contains(string(last.Raw), wanted) != there {
				problems[i] += fmt.Sprintf("%s: %d\n", what, last.Status)
			}
		}
		for k := range tier.Repeats() {
			title := fmt.Sprintf("Idea %d of %d", k, i)
			made := n.Do(t, http.MethodPost, posts, object{"title": title})
			id := made.Data()["id"].(string)
			see("the list lacks a new post", posts+"?limit=100", id, true)
			see("the search lacks a new post", posts+"?limit=100&q=idea&sort=newest", id, true)
			n.Do(t, http.MethodPatch, "/v1/posts/"+id, object{"title": title + " again"})
			see("the post lacks its new title", "/v1/posts/"+id, title+" again", true)
			see("the list lacks a new title", posts+"?limit=100", title+" again", true)
			n.Do(t, http.MethodDelete, "/v1/posts/"+id, nil)
			see("the list still has a deleted post", posts+"?limit=100", id, false)
			see("a deleted post is still there", "/v1/posts/"+id, title, false)
		}
		return last
	})
	require.Equal(t, make([]string, many), problems)
}
