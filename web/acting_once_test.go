package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func pressedTwice(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	v.press(t, link)
	for path, to := range map[string]string{"/-/new": "/export", "/dark-mode/-/comment": "/dark-mode"} {
		form := url.Values{"title": {"Export"}, "text": {"As PDF"}, "stamp": {stampOf(v.do(t, http.MethodGet, v.at+path, nil))}}
		press := func() string {
			return v.do(t, http.MethodPost, v.at+path, form).Header.Get("Location")
		}
		led := make([]string, 8)
		var all sync.WaitGroup
		for i := range led {
			all.Go(func() { led[i] = press() })
		}
		all.Wait()
		for _, at := range append(led, press()) {
			require.Equal(t, v.at+to, at)
		}
	}
	require.Equal(t, 1, strings.Count(v.do(t, http.MethodGet, v.at+"/dark-mode", nil).text(t), "As PDF"))
	posts := func() []any {
		return v.Do(t, http.MethodGet, v.board+"/posts?q=export", nil).Body["data"].([]any)
	}
	require.Len(t, posts(), 1)
	// Another form creates another post, and so do other words in the same form.
	for _, title := range []string{"Export", "Export too"} {
		stamp := stampOf(v.do(t, http.MethodGet, v.at+"/-/new", nil))
		v.do(t, http.MethodPost, v.at+"/-/new", url.Values{"title": {title}, "stamp": {stamp}})
	}
	require.Len(t, posts(), 3)
}

func TestAConfirmationSucceedsDespiteALaterFailure(t *testing.T) {
	t.Parallel()
	v := newVisitor(t, unpublished(t).Tenant(t))
	post := v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	// The lock blocks all pages of the board, because each page reads the tags.
	c, err := pgx.Connect(t.Context(), v.App.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE tags IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	at, err := url.Parse(link)
	require.NoError(t, err)
	pressed := v.do(t, http.MethodPost, at.Path, url.Values{"token": {at.Query().Get("token")}})
	require.Equal(t, http.StatusSeeOther, pressed.StatusCode, pressed.body)
	require.NotNil(t, v.cookie)
	require.Len(t, v.votes(t, post), 1)
	require.NoError(t, tx.Rollback(t.Context()))
	for range 2 { // the page can be reloaded
		told := v.do(t, http.MethodGet, pressed.Header.Get("Location"), nil)
		require.Equal(t, http.StatusOK, told.StatusCode)
		require.Contains(t, told.text(t), "Your vote counts")
		require.Equal(t, v.at+"/dark-mode", told.link("Dark mode"))
	}
	for _, nothing := range []string{v.at + "/dark-mode/-/confirmed/x", v.at + "/dark-mode/-/confirmed", v.at + "/nothing/-/confirmed/vote"} {
		require.Equal(t, http.StatusNotFound, v.do(t, http.MethodGet, nothing, nil).StatusCode, nothing)
	}
}
