package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestEverySingleResourceHasAnETagAndEveryChangeOfOneTakesAnIfMatch(t *testing.T) {
	t.Parallel()
	for _, o := range load(t).operations() {
		one := o.Responses.Value("200") != nil && o.method == http.MethodGet && o.Responses.Value("200").Value.Headers["ETag"] != nil
		require.Equal(t, one, o.takes("If-None-Match"), o.OperationID)
		require.Equal(t, one, o.Responses.Value("304") != nil, o.OperationID)
		require.Equal(t, o.takes("If-Match"), o.Responses.Value("412") != nil, o.OperationID)
	}
}

// unconditional are the writes that refuse an If-Match. They create something, or change something
// that can't be read with an ETag.
var unconditional = []string{
	"createApiKey", "createBoard", "createChangelogEntry", "createComment", "createContact", "createMember", "createPost", "createTag",
	"createWebhook", "createWidgetSecret", "identifyContact", "identifyContacts", "upsertContacts", "castVote", "retractVote",
	"recoverWebhook", "replayDelivery", "testWebhook",
	"deleteWidgetSecret", "eraseMember", "revokeApiKey", "rotateApiKey",
}

func TestEveryWriteJudgesAnIfMatchOrRefusesIt(t *testing.T) {
	t.Parallel()
	n := newFixture(t, apptest.Start(t, apptest.Options{}))
	writes := func(o operation) bool { return o.method != http.MethodGet }
	everyOperation(t, writes, func(t *testing.T, o operation) {
		unchanged := n.Watch(t)
		a := n.Do(t, o.method, o.filled(t, n.ids), o.request(t), "If-Match", `"stale"`)
		if slices.Contains(unconditional, o.OperationID) {
			require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s", a.Raw)
			require.Equal(t, []string{"If-Match unknown"}, apptest.FieldRules(a))
		} else {
			require.Equal(t, http.StatusPreconditionFailed, a.Status, "%s", a.Raw)
		}
		unchanged(t)
	})
}

func TestAConditionalRequest(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{}), map[string]func(*testing.T, *apptest.App){
		"loses no update of several that read and write at once": conditionalAtOnce,
		"goes on with the ETag of the change before":             conditionalChain,
		"compares all that a GET shows, also the votes":          conditionalVote,
		"checks the target of a merge":                           conditionalMerge,
		"takes the ETag of a tag's change, as tags have no GET":  conditionalTagChange,
		"approves no submission that a merge has moved":          conditionalApproval,
		"takes any of several tags, or an asterisk":              conditionalTags,
		"reports a malformed header":                             conditionalForm,
		"is repeated exactly, though the tag is past":            conditionalReplay,
	})
}

// conditionalAtOnce uses the title of a post as a counter that parallel clients read and write.
func conditionalAtOnce(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	post := n.Post(t)
	n.Patch(t, post, object{"title": "0"})
	const each = 5
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for done := 0; done < each; {
				read := n.Do(t, http.MethodGet, post, nil)
				count, _ := strconv.Atoi(read.Data()["title"].(string))
				a := n.Do(t, http.MethodPatch, post, object{"title": strconv.Itoa(count + 1)}, "If-Match", read.Header.Get("ETag"))
				if a.Status == http.StatusOK {
					done++
				} else if a.Status != http.StatusPreconditionFailed {
					t.Errorf("%d: %s", a.Status, a.Raw)
					return
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, fmt.Sprint(8*each), n.Get(t, post)["title"])
}

func conditionalChain(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	tag := n.Do(t, http.MethodPost, n.Board(t)+"/posts", object{"title": "Dark mode", "body": object{"json": object{"b": 1, "a": 2.50}}})
	post := "/v1/posts/" + tag.Data()["id"].(string)
	for _, title := range []string{"Dark", "Darker", "Darkest"} {
		tag = n.Do(t, http.MethodPatch, post, object{"title": title}, "If-Match", tag.Header.Get("ETag"))
		require.Equal(t, http.StatusOK, tag.Status, "%s", tag.Raw)
	}
	require.Equal(t, http.StatusNotModified, n.Do(t, http.MethodGet, post, nil, "If-None-Match", tag.Header.Get("ETag")).Status)
	require.Equal(t, http.StatusNotModified, n.Do(t, http.MethodHead, post, nil, "If-None-Match", "W/"+tag.Header.Get("ETag")).Status)
}

func conditionalVote(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	post := n.Post(t)
	tag := n.Do(t, http.MethodGet, post, nil).Header.Get("ETag")
	n.Do(t, http.MethodPost, post+"/votes", nil)
	require.Equal(t, http.StatusPreconditionFailed, n.Do(t, http.MethodDelete, post, nil, "If-Match", tag).Status)
	n.Get(t, post)
}

func conditionalMerge(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	board := n.Board(t)
	target := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "Dark mode"})
	sources := object{"sourceIds": []string{n.ID(t, board+"/posts", object{"title": "Night mode"})}}
	read := n.Do(t, http.MethodGet, target, nil).Header.Get("ETag")
	n.Patch(t, target, object{"title": "Bright mode"})
	unchanged := n.Watch(t)
	stale := n.Do(t, http.MethodPost, target+"/merge", sources, "If-Match", read)
	require.Equal(t, http.StatusPreconditionFailed, stale.Status, "%s", stale.Raw)
	unchanged(t)
	merged := n.Do(t, http.MethodPost, target+"/merge", sources, "If-Match", n.Do(t, http.MethodGet, target, nil).Header.Get("ETag"))
	require.Equal(t, http.StatusOK, merged.Status, "%s", merged.Raw)
	require.Equal(t, n.Do(t, http.MethodGet, target, nil).Header.Get("ETag"), merged.Header.Get("ETag"))
}

func conditionalTagChange(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	tags := n.Board(t) + "/tags"
	made := n.Do(t, http.MethodPost, tags, object{"name": "Mobile", "color": "#ABC"})
	tag := tags + "/" + made.Data()["id"].(string)
	changed := n.Do(t, http.MethodPatch, tag, object{"name": "Apps"}, "If-Match", made.Header.Get("ETag"))
	require.Equal(t, http.StatusOK, changed.Status, "%s", changed.Raw)
	unchanged := n.Watch(t)
	for method, body := range map[string]any{http.MethodPatch: object{"name": "Phones"}, http.MethodDelete: nil} {
		stale := n.Do(t, method, tag, body, "If-Match", made.Header.Get("ETag"))
		require.Equal(t, http.StatusPreconditionFailed, stale.Status, "%s", stale.Raw)
	}
	now := n.Do(t, http.MethodPatch, tag, object{}).Header.Get("ETag")
	unchanged(t)
	require.Equal(t, changed.Header.Get("ETag"), now)
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodDelete, tag, nil, "If-Match", now).Status)
}

func conditionalApproval(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	board := n.ID(t, "/v1/boards", object{"name": "Ideas"})
	source := n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "Night mode"})
	target := n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "Dark mode"})
	submission := "/v1/submissions/" + n.Submission(t, board, source)
	read := n.Do(t, http.MethodGet, submission, nil).Header.Get("ETag")
	n.Make(t, http.MethodPost, "/v1/posts/"+target+"/merge", object{"sourceIds": []string{source}})
	unchanged := n.Watch(t)
	for _, write := range [][2]string{{http.MethodPost, submission + "/approve"}, {http.MethodDelete, submission}} {
		stale := n.Do(t, write[0], write[1], nil, "If-Match", read)
		require.Equal(t, http.StatusPreconditionFailed, stale.Status, "%s", stale.Raw)
	}
	unchanged(t)
	now := n.Do(t, http.MethodGet, submission, nil).Header.Get("ETag")
	require.Equal(t, http.StatusCreated, n.Do(t, http.MethodPost, submission+"/approve", nil, "If-Match", now).Status)
}

func conditionalTags(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	post := n.Post(t)
	tag := n.Do(t, http.MethodGet, post, nil).Header.Get("ETag")
	for _, header := range []string{tag, `"other", ` + tag, `W/"a,b" ,,` + tag + ",", " * "} {
		require.Equal(t, http.StatusOK, n.Do(t, http.MethodPatch, post, object{}, "If-Match", header).Status, header)
		require.Equal(t, http.StatusNotModified, n.Do(t, http.MethodGet, post, nil, "If-None-Match", header).Status, header)
	}
	// A weak tag doesn't guarantee that the bytes are the same.
	require.Equal(t, http.StatusPreconditionFailed, n.Do(t, http.MethodPatch, post, object{}, "If-Match", "W/"+tag).Status)
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, post, nil, "If-None-Match", `"other"`).Status)
	require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodPatch, "/v1/posts/nothing", object{}, "If-Match", "*").Status)
}

func conditionalForm(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	post := n.Post(t)
	unchanged := n.Watch(t)
	for _, header := range []string{"abc", `"abc`, `"a" "b"`, `*, "a"`, `w/"a"`} {
		a := n.Do(t, http.MethodPatch, post, object{"title": 1}, "If-Match", header)
		require.Equal(t, http.StatusUnprocessableEntity, a.Status, header)
		require.ElementsMatch(t, []string{"If-Match format", "title type"}, apptest.FieldRules(a), header)
		require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, post, nil, "If-None-Match", header).Status, header)
	}
	unchanged(t)
}

func conditionalReplay(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	post := n.Post(t)
	headers := []string{"If-Match", n.Do(t, http.MethodGet, post, nil).Header.Get("ETag"), "Idempotency-Key", "once"}
	first := n.Do(t, http.MethodPatch, post, object{"title": "Dark"}, headers...)
	require.Equal(t, http.StatusOK, first.Status)
	again := n.Do(t, http.MethodPatch, post, object{"title": "Dark"}, headers...)
	require.Equal(t, string(first.Raw), string(again.Raw))
	require.Equal(t, first.Header.Get("ETag"), again.Header.Get("ETag"))
}
