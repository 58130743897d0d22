package api_test

import (
	"fmt"
	"net/http"
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

func TestAConditionalRequest(t *testing.T) {
	t.Parallel()
	together(t, apptest.Options{}, map[string]func(*testing.T, *apptest.App){
		"loses no update of several that read and write at once": conditionalAtOnce,
		"goes on with the ETag of the change before":             conditionalChain,
		"compares all that a GET shows, also the votes":          conditionalVote,
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
