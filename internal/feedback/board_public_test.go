package feedback_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestAnonymousReadersSeeOnlyPublicContent(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"on public boards only, by their slugs":               publicBoards,
		"and nothing of a board that has become private":      privateMeanwhile,
		"of a changelog, its published entries by date":       publicEntries,
		"with the posts that an entry links on its own board": publicLinks,
		"with the names of members only":                      commentAuthors,
		"of a board, the addresses of its newest posts":       publicAddresses,
		"of the organization's own boards":                    foreignBoards,
	})
}

// reader returns the context of a reader without a key.
func (n *tenant) reader(t *testing.T) context.Context {
	t.Helper()
	return change.WithCaller(t.Context(), &change.Caller{Organization: n.Organization})
}

func (n *tenant) publicBoard(t *testing.T, name string) (path string, b *db.Board) {
	t.Helper()
	made := n.Make(t, "POST", "/v1/boards", object{"name": name, "public": true})
	b, err := n.App.Feedback.PublicBoard(n.reader(t), made["slug"].(string))
	require.NoError(t, err)
	return "/v1/boards/" + made["id"].(string), b
}

func publicBoards(t *testing.T, n *tenant) {
	ctx, f := n.reader(t), n.App.Feedback
	inner := n.Board(t)
	shows, err := f.HasPublicBoard(ctx)
	require.NoError(t, err)
	require.False(t, shows)
	_, first := n.publicBoard(t, "First")
	_, second := n.publicBoard(t, "Second")
	found, err := f.PublicBoards(ctx, page.Query{})
	require.NoError(t, err)
	require.Equal(t, []publicid.Board{first.ID, second.ID}, []publicid.Board{found.Items[0].ID, found.Items[1].ID})
	require.Len(t, found.Items, 2)
	shows, err = f.HasPublicBoard(ctx)
	require.NoError(t, err)
	require.True(t, shows)
	for _, slug := range []string{"ideas", "none", "", "-", "a\x00b", "First"} {
		_, err := f.PublicBoard(ctx, slug)
		require.True(t, problem.Is(err, problem.NotFound), "%q: %v", slug, err)
	}
	n.Patch(t, inner, object{"public": true})
	_, err = f.PublicBoard(ctx, "ideas")
	require.NoError(t, err)
}

func privateMeanwhile(t *testing.T, n *tenant) {
	path, b := n.publicBoard(t, "Ideas")
	n.ID(t, path+"/posts", object{"title": "Dark mode"})
	n.ID(t, path+"/changelog", object{"title": "News", "publishedAt": apptest.LongPast})
	ctx, f := n.reader(t), n.App.Feedback
	refused := func(wanted bool) {
		t.Helper()
		_, onPost := f.PublicPost(ctx, b, "dark-mode")
		_, onAddresses := f.PublicAddresses(ctx, b)
		_, onRoadmap := f.Roadmap(ctx, b)
		_, onEntries := f.PublicEntries(ctx, b, page.Query{})
		_, onEntry := f.PublicEntry(ctx, b, "news")
		for _, err := range []error{onPost, onAddresses, onRoadmap, onEntries, onEntry} {
			require.Equal(t, wanted, problem.Is(err, problem.NotFound), "%v", err)
		}
	}
	refused(false)
	b.Public = false
	refused(true)
}

func publicEntries(t *testing.T, n *tenant) {
	path, b := n.publicBoard(t, "Ideas")
	ctx, f := n.reader(t), n.App.Feedback
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	var wanted []string
	for _, title := range []string{"c", "b", "a"} { // not in the order of publication
		n.ID(t, path+"/changelog", object{"title": title, "publishedAt": at.AddDate(0, 0, int(title[0])).Format(time.RFC3339)})
		wanted = append(wanted, title)
	}
	n.ID(t, path+"/changelog", object{"title": "draft"})
	n.ID(t, path+"/changelog", object{"title": "scheduled", "publishedAt": apptest.FarAway})
	var all []string
	one := 1
	for q := (page.Query{Limit: &one}); ; {
		found, err := f.PublicEntries(ctx, b, q)
		require.NoError(t, err)
		require.Len(t, found.Items, 1)
		all = append(all, found.Items[0].Title)
		if q.Cursor = found.NextCursor; q.Cursor == nil {
			break
		}
	}
	require.Equal(t, wanted, all)
	entries := n.Do(t, "GET", path+"/changelog?limit=1", nil).Body["nextCursor"].(string)
	_, err := f.PublicEntries(ctx, b, page.Query{Cursor: &entries})
	require.True(t, problem.Is(err, problem.Validation), "the cursor of another list")
	_, err = f.PublicEntry(ctx, b, "draft")
	require.True(t, problem.Is(err, problem.NotFound))
	b.ShowChangelog = false
	_, err = f.PublicEntries(ctx, b, page.Query{})
	require.True(t, problem.Is(err, problem.NotFound))
}

func publicLinks(t *testing.T, n *tenant) {
	path, b := n.publicBoard(t, "Ideas")
	inner := n.ID(t, n.Board(t)+"/posts", object{"title": "Secret"})
	there := n.ID(t, path+"/posts", object{"title": "Dark mode", "body": object{"text": "long"}})
	entry := n.ID(t, path+"/changelog", object{"title": "News", "publishedAt": apptest.LongPast})
	n.Make(t, "PUT", "/v1/changelog/"+entry+"/linked-posts", object{"postIds": []string{inner, there}})
	e, err := n.App.Feedback.PublicEntry(n.reader(t), b, "news")
	require.NoError(t, err)
	require.Len(t, e.PostIDs, 2)
	links, err := n.App.Feedback.PublicLinks(n.reader(t), b, []*feedback.Entry{e})
	require.NoError(t, err)
	require.Len(t, links, 1)
	for id, p := range links {
		require.Equal(t, there, id.String())
		require.Equal(t, "Dark mode", p.Title)
		require.Empty(t, p.BodyText, "a list of titles needs no texts")
	}
}

func commentAuthors(t *testing.T, n *tenant) {
	stays := n.Owner.ID
	leaves := publicid.Read[publicid.User](n.ID(t, "/v1/members", object{"email": "kim@example.com", "name": "Kim"}))
	contact := n.ID(t, "/v1/contacts", object{"externalUserId": "acct-1", "name": "Ada", "email": "ada@example.com"})
	said := n.Make(t, "POST", n.Post(t)+"/comments", object{"body": object{"text": "Me too"}, "contactId": contact})
	guest := publicid.Read[publicid.User](said["authorUserId"].(string))
	of := []publicid.User{stays, leaves, guest, n.on(t, "business").Owner.ID, publicid.NewUser()}
	authors := func() map[publicid.User]feedback.Author {
		found, err := n.App.Feedback.Authors(n.reader(t), of)
		require.NoError(t, err)
		return found
	}
	require.Equal(t, map[publicid.User]feedback.Author{stays: {Name: "Olive Owner"}, leaves: {Name: "Kim"}, guest: {Guest: true}}, authors())
	n.Make(t, "DELETE", "/v1/members/"+leaves.String(), nil)
	require.Equal(t, feedback.Author{}, authors()[leaves])
}

func publicAddresses(t *testing.T, n *tenant) {
	path, b := n.publicBoard(t, "Ideas")
	n.ID(t, path+"/posts", object{"title": "First"})
	gone := n.ID(t, path+"/posts", object{"title": "Gone"})
	n.ID(t, path+"/posts", object{"title": "Second"})
	n.Make(t, "DELETE", "/v1/posts/"+gone, nil)
	found, err := n.App.Feedback.PublicAddresses(n.reader(t), b)
	require.NoError(t, err)
	require.Equal(t, []string{"second", "first"}, []string{found[0].Slug, found[1].Slug})
	require.Len(t, found, 2)
}

func foreignBoards(t *testing.T, n *tenant) {
	path, b := n.publicBoard(t, "Theirs")
	n.ID(t, path+"/posts", object{"title": "Dark mode"})
	stranger := n.on(t, "business").reader(t)
	_, err := n.App.Feedback.PublicBoard(stranger, "theirs")
	require.True(t, problem.Is(err, problem.NotFound))
	_, err = n.App.Feedback.PublicPost(stranger, b, "dark-mode")
	require.True(t, problem.Is(err, problem.NotFound))
	found, err := n.App.Feedback.PublicAddresses(stranger, b)
	require.NoError(t, err)
	require.Empty(t, found)
}
