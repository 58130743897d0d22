package feedback_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/changelogentry"
	"earshot/ent/db/changeloglink"
	"earshot/ent/db/contact"
	"earshot/ent/db/delivery"
	"earshot/ent/db/post"
	"earshot/ent/db/posttag"
	"earshot/ent/db/tag"
	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/retention"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

func TestDeletionsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	togetherOn(t, roomy.Start(t), map[string]func(*testing.T, *tenant){
		"of a board and its new posts, tags and entries": deleteBoardAmid,
		"of a board and its last post":                   deleteBoardAfterPost,
		"of a contact and the posts that it is given":    deleteContactAmid,
		"of contacts that posts exchange":                deleteExchanged,
		"of a contact that is identified again":          deleteIdentified,
		"of a post and all that happens to it":           deletePostAmid,
		"of a post and the merges into it":               deleteTargetAmid,
		"of a tag and the posts that carry it":           deleteTagAmid,
		"of a webhook and its deliveries":                deleteWebhookAmid,
		"of a comment and its changes and merges":        deleteCommentAmid,
		"of a changelog entry and its changes":           deleteEntryAmid,
		"of an entry's schedule and its publication":     unscheduleAmid,
		"of a schedule by another, which publishes it":   publishAmid,
	})
}

// fine has the allowed statuses of a request about a resource that may have just been deleted.
var fine = []int{http.StatusOK, http.StatusCreated, http.StatusNotFound}

// to returns the answers to the requests with this method and path.
func (h heard) to(method, path string) []apptest.Answer {
	var found []apptest.Answer
	for i, r := range h.requests {
		if r.method == method && r.path == path {
			found = append(found, h.answers[i])
		}
	}
	return found
}

// once checks that exactly one of several deletions succeeded.
func (h heard) once(t *testing.T, path string) {
	t.Helper()
	answers := h.to(http.MethodDelete, path)
	only(t, answers, http.StatusOK, http.StatusNotFound)
	require.Equal(t, 1, statuses(answers)[http.StatusOK])
}

func deleting(by *tenant, path string) request { return request{by, http.MethodDelete, path, nil} }

func patching(by *tenant, path string, body object) request {
	return request{by, http.MethodPatch, path, body}
}

func posting(by *tenant, path string, body object) request {
	return request{by, http.MethodPost, path, body}
}

// idIn returns the last part of a path.
func idIn(path string) string { return path[strings.LastIndex(path, "/")+1:] }

func deleteBoardAmid(t *testing.T, n *tenant) {
	for range tier.Repeats() {
		board := n.Board(t)
		h := hear(t, shuffled([]request{
			{n, http.MethodDelete, board, object{"confirmName": "Ideas"}},
			posting(n, board+"/posts", object{"title": "x"}), posting(n, board+"/tags", object{"name": "x"}),
			posting(n, board+"/changelog", object{"title": "x"}), patching(n, board, object{"description": "x"}),
		}))
		only(t, h.answers, append(fine, http.StatusConflict)...)
		on := parsed[publicid.Board](t, idIn(board))
		ctx, client := n.Context(t.Context()), n.App.Store.Client()
		rows := client.Post.Query().Where(post.BoardID(on)).CountX(ctx) + client.Tag.Query().Where(tag.BoardID(on)).CountX(ctx) +
			client.ChangelogEntry.Query().Where(changelogentry.BoardID(on)).CountX(ctx)
		require.Equal(t, statuses(h.answers)[http.StatusCreated], rows, "what was accepted is there")
		deleted := h.to(http.MethodDelete, board)[0].Status == http.StatusOK
		require.Equal(t, deleted, rows == 0, "a board goes without anything, or stays")
		require.Equal(t, deleted, n.Do(t, http.MethodGet, board, nil).Status == http.StatusNotFound)
	}
}

// The board's deletion removes its deleted posts from the database while requests on these posts
// still arrive.
func deleteBoardAfterPost(t *testing.T, n *tenant) {
	for range tier.Repeats() / 2 {
		board := n.Board(t)
		path := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x"})
		n.ID(t, path+"/votes", nil)
		comment := n.ID(t, path+"/comments", object{"body": object{"text": "x"}})
		confirmed := request{n, http.MethodDelete, board, object{"confirmName": "Ideas"}}
		h := hear(t, shuffled([]request{
			deleting(n, path), confirmed, confirmed, deleting(n, path+"/votes"), commenting(n, idIn(path), comment),
			patching(n, "/v1/comments/"+comment, object{"body": object{"text": "y"}}), deleting(n, "/v1/comments/"+comment),
		}))
		only(t, h.answers, append(fine, http.StatusConflict)...)
		h.once(t, path)
		only(t, []apptest.Answer{n.Do(t, http.MethodDelete, board, confirmed.body)}, http.StatusOK, http.StatusNotFound)
		require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodGet, board, nil).Status)
	}
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	require.Zero(t, client.Post.Query().CountX(ctx)+client.Vote.Query().CountX(ctx)+client.Comment.Query().CountX(ctx))
}

func deleteContactAmid(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactDeleted)
	board := n.Board(t)
	for round := range tier.Repeats() / 2 {
		id := n.ID(t, "/v1/contacts", object{})
		path, from := "/v1/contacts/"+id, object{"contactId": id}
		with := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x", "contactId": id})
		without := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x"})
		create := posting(n, board+"/posts", object{"title": "x", "contactId": id})
		h := hear(t, shuffled([]request{
			deleting(n, path), deleting(n, path), create, create, patching(n, without, from), patching(n, with, from),
			patching(n, with, object{"contactId": nil}), patching(n, path, object{"name": "Ada"}),
		}))
		only(t, h.answers, fine...)
		h.once(t, path)
		require.Nil(t, n.Get(t, with)["contactId"])
		require.Nil(t, n.Get(t, without)["contactId"])
		of := parsed[publicid.Contact](t, id)
		require.Zero(t, n.App.Store.Client().Post.Query().Where(post.ContactID(of)).CountX(n.Context(t.Context())))
		require.Len(t, n.Payloads(t, event.ContactDeleted), round+1)
	}
}

// Each update waits for its new contact, and each deletion waits for the post of its contact.
func deleteExchanged(t *testing.T, n *tenant) {
	board := n.Board(t)
	for range tier.Repeats() {
		var contacts, posts []string
		for i := range 2 {
			contacts = append(contacts, n.ID(t, "/v1/contacts", object{}))
			posts = append(posts, "/v1/posts/"+n.ID(t, board+"/posts", object{"title": "x", "contactId": contacts[i]}))
		}
		h := hear(t, shuffled([]request{
			patching(n, posts[0], object{"contactId": contacts[1]}), patching(n, posts[1], object{"contactId": contacts[0]}),
			deleting(n, "/v1/contacts/"+contacts[0]), deleting(n, "/v1/contacts/"+contacts[1]),
		}))
		only(t, h.answers, http.StatusOK, http.StatusNotFound)
		for i := range 2 {
			h.once(t, "/v1/contacts/"+contacts[i])
			require.Nil(t, n.Get(t, posts[i])["contactId"])
		}
	}
}

func deleteIdentified(t *testing.T, n *tenant) {
	known := object{"externalUserId": "u-1", "metadata": object{"a": 1}}
	atOnce(6, func(i int) (last apptest.Answer) {
		for range tier.Repeats() {
			if i%2 == 0 {
				a := n.Do(t, http.MethodPost, "/v1/contacts/identify", known)
				assert.Contains(t, []int{http.StatusOK, http.StatusCreated}, a.Status, "%s", a.Raw)
				continue
			}
			for _, c := range n.pages(t, "/v1/contacts?externalUserId=u-1", 25, nil) {
				a := n.Do(t, http.MethodDelete, "/v1/contacts/"+c["id"].(string), nil)
				assert.Contains(t, []int{http.StatusOK, http.StatusNotFound}, a.Status, "%s", a.Raw)
			}
		}
		return last
	})
	require.LessOrEqual(t, n.App.Store.Client().Contact.Query().Where(contact.ExternalUserID("u-1")).CountX(n.Context(t.Context())), 1)
}

func deletePostAmid(t *testing.T, n *tenant) {
	members := n.members(t, 3)
	for range tier.Repeats() / 2 {
		posts := n.posts(t, 2)
		target, gone := posts[0], posts[1]
		path, entry := "/v1/posts/"+gone, "/v1/changelog/"+n.ID(t, n.Board(t)+"/changelog", object{"title": "x"})
		requests := []request{
			deleting(n, path), deleting(n, path), merging(n, target, gone), patching(n, path, object{"title": "y"}),
			{n, http.MethodPut, entry + "/linked-posts", object{"postIds": posts}},
			{n, http.MethodPut, entry + "/linked-posts", object{"postIds": []string{gone}}},
		}
		for _, m := range members {
			requests = append(requests, voting(m, gone), deleting(m, path+"/votes"), commenting(m, gone, nil), voting(m, target))
		}
		h := hear(t, shuffled(requests))
		only(t, h.answers, fine...)
		h.once(t, path)
		n.mergesAreSound(t, posts)
		n.linksAreLive(t)
	}
}

// linksAreLive checks that no changelog entry links a deleted post.
func (n *tenant) linksAreLive(t *testing.T) {
	t.Helper()
	require.Zero(t, n.App.Store.Client().ChangelogLink.Query().
		Where(changeloglink.HasPostWith(post.DeletedAtNotNil())).CountX(n.Context(t.Context())))
}

// If a merge's target is deleted, its source becomes independent again.
func deleteTargetAmid(t *testing.T, n *tenant) {
	members := n.members(t, 3)
	for range tier.Repeats() / 2 {
		posts := n.posts(t, 4)
		n.Make(t, http.MethodPost, "/v1/posts/"+posts[2]+"/merge", object{"sourceIds": posts[3:]})
		path := "/v1/posts/" + posts[2]
		requests := []request{
			deleting(n, path), merging(n, posts[2], posts[1]), merging(n, posts[0], posts[1]), merging(n, posts[0], posts[2]),
		}
		for _, m := range members {
			requests = append(requests, voting(m, posts[3]), commenting(m, posts[1], nil), voting(m, posts[2]))
		}
		h := hear(t, shuffled(requests))
		only(t, h.answers, append(fine, http.StatusConflict)...)
		h.once(t, path)
		n.mergesAreSound(t, posts)
	}
}

func deleteTagAmid(t *testing.T, n *tenant) {
	board := n.Board(t)
	for round := range tier.Repeats() {
		going, staying := n.ID(t, board+"/tags", object{"name": "x"}), n.ID(t, board+"/tags", object{"name": fmt.Sprint(round)})
		path := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x", "tagIds": []string{going}})
		h := hear(t, shuffled([]request{
			deleting(n, board+"/tags/"+going), deleting(n, board+"/tags/"+going),
			patching(n, board+"/tags/"+going, object{"name": "y"}), patching(n, path, object{"title": "y"}),
			patching(n, path, object{"tagIds": []string{staying}}), patching(n, path, object{"tagIds": []string{going, staying}}),
		}))
		only(t, h.answers, fine...)
		h.once(t, board+"/tags/"+going)
		require.NotContains(t, n.Get(t, path)["tagIds"], going)
		of := parsed[publicid.Tag](t, going)
		require.Zero(t, n.App.Store.Client().PostTag.Query().Where(posttag.TagID(of)).CountX(n.Context(t.Context())))
	}
}

func deleteWebhookAmid(t *testing.T, n *tenant) {
	topic := n.Post(t)
	n.Listen(t, event.CommentCreated) // a webhook that is never deleted
	for round := range tier.Repeats() {
		hook := "/v1/webhooks/" + n.Listen(t, event.CommentCreated)
		said := commenting(n, idIn(topic), nil)
		only(t, race(t, []request{said}), http.StatusCreated)
		log := hook + "/deliveries"
		replay := posting(n, log+"/"+n.Walk(t, log, "1", nil)[0]+"/replay", nil)
		h := hear(t, shuffled([]request{
			deleting(n, hook), deleting(n, hook), said, said, said, replay, replay, replay,
			patching(n, hook, object{"url": "https://hooks.example.com/elsewhere"}), {n, http.MethodGet, log, nil},
		}))
		only(t, h.answers, fine...)
		h.once(t, hook)
		require.Equal(t, map[int]int{http.StatusCreated: 3}, statuses(h.to(http.MethodPost, said.path)))
		of := parsed[publicid.Webhook](t, idIn(hook))
		n.removeDeleted(t)
		require.Zero(t, n.App.Store.Client().Delivery.Query().Where(delivery.WebhookID(of)).CountX(n.Context(t.Context())))
		require.Len(t, n.Payloads(t, event.CommentCreated), 4*(round+1))
	}
}

// removeDeleted runs the retention of deleted webhooks.
func (n *tenant) removeDeleted(t *testing.T) {
	t.Helper()
	for from := (&retention.DeletedPlace{}); from != nil; {
		var err error
		_, _, from, err = retention.RemoveDeleted(t.Context(), n.App.Store, *from)
		require.NoError(t, err)
	}
}

func deleteCommentAmid(t *testing.T, n *tenant) {
	for range tier.Repeats() {
		posts := n.posts(t, 2)
		id := n.ID(t, "/v1/posts/"+posts[1]+"/comments", object{"body": object{"text": "x"}})
		path, edit := "/v1/comments/"+id, object{"body": object{"text": "y", "json": object{"a": 1}}}
		h := hear(t, shuffled([]request{
			deleting(n, path), deleting(n, path), patching(n, path, edit), patching(n, path, edit), patching(n, path, edit),
			merging(n, posts[0], posts[1]), commenting(n, posts[1], id),
		}))
		only(t, h.answers, fine...)
		h.once(t, path)
		require.Equal(t, map[int]int{http.StatusOK: 1}, h.merges())
		n.mergesAreSound(t, posts)
		row := n.App.Store.Client().Comment.GetX(n.Context(t.Context()), parsed[publicid.Comment](t, id))
		require.Equal(t, posts[0], row.PostID.String())
		require.NotNil(t, row.DeletedAt)
		require.Empty(t, row.BodyText+string(row.BodyJSON), "no edit brings a deleted text back")
		require.Nil(t, row.AuthorUserID)
		require.Equal(t, map[int]int{http.StatusCreated: 1}, statuses(h.to(http.MethodPost, "/v1/posts/"+posts[1]+"/comments")))
	}
}

func deleteEntryAmid(t *testing.T, n *tenant) {
	n.Listen(t, event.ChangelogPublished)
	board := n.Board(t)
	for range tier.Repeats() {
		posts := n.posts(t, 2)
		path := "/v1/changelog/" + n.ID(t, board+"/changelog", object{"title": "x"})
		links := func(ids ...string) request {
			return request{n, http.MethodPut, path + "/linked-posts", object{"postIds": ids}}
		}
		h := hear(t, shuffled([]request{
			deleting(n, path), deleting(n, path), patching(n, path, object{"publishedAt": "2020-01-01T00:00:00Z"}),
			patching(n, path, object{"publishedAt": "2021-01-01T00:00:00Z"}), patching(n, path, object{"title": "y"}),
			links(posts...), links(posts[1]), deleting(n, "/v1/posts/"+posts[0]),
		}))
		only(t, h.answers, fine...)
		h.once(t, path)
		of := parsed[publicid.ChangelogEntry](t, idIn(path))
		require.Zero(t, n.App.Store.Client().ChangelogLink.Query().Where(changeloglink.EntryID(of)).CountX(n.Context(t.Context())))
		require.LessOrEqual(t, n.published(t, idIn(path)), 1)
	}
}

// published counts the changelog.published events of an entry.
func (n *tenant) published(t *testing.T, entry string) int {
	t.Helper()
	told := 0
	for _, p := range n.Payloads(t, event.ChangelogPublished) {
		if p["entry"].(object)["id"] == entry {
			told++
		}
	}
	return told
}

// due makes an entry that is due but not published yet.
func (n *tenant) due(t *testing.T, board string) publicid.ChangelogEntry {
	t.Helper()
	id := parsed[publicid.ChangelogEntry](t, n.ID(t, board+"/changelog", object{"title": "x"}))
	n.App.Store.Client().ChangelogEntry.UpdateOneID(id).SetState(changelogentry.StateScheduled).
		SetPublishedAt(time.Now().Add(-time.Minute)).ExecX(n.Context(t.Context()))
	return id
}

// besides runs an entry's schedule three times, while a patch changes the publication time.
func (n *tenant) besides(t *testing.T, entry publicid.ChangelogEntry, publishedAt any) {
	t.Helper()
	answers := atOnce(4, func(i int) apptest.Answer {
		if i > 0 {
			_, err := n.App.Feedback.PublishEntry(t.Context(), entry)
			assert.NoError(t, err)
			return apptest.Answer{Status: http.StatusOK}
		}
		return n.Do(t, http.MethodPatch, "/v1/changelog/"+entry.String(), object{"publishedAt": publishedAt})
	})
	only(t, answers, http.StatusOK)
}

func unscheduleAmid(t *testing.T, n *tenant) {
	n.Listen(t, event.ChangelogPublished)
	board := n.Board(t)
	for range tier.Repeats() {
		entry := n.due(t, board)
		n.besides(t, entry, nil)
		require.LessOrEqual(t, n.published(t, entry.String()), 1)
		require.Nil(t, n.Get(t, "/v1/changelog/"+entry.String())["publishedAt"], "the schedule doesn't undo the patch")
		require.Equal(t, changelogentry.StateDraft, n.entry(t, entry).State)
	}
}

func publishAmid(t *testing.T, n *tenant) {
	n.Listen(t, event.ChangelogPublished)
	board := n.Board(t)
	for range tier.Repeats() {
		entry := n.due(t, board)
		n.besides(t, entry, "2020-01-01T00:00:00Z")
		require.Equal(t, 1, n.published(t, entry.String()))
		require.Equal(t, changelogentry.StatePublished, n.entry(t, entry).State)
		require.Equal(t, 2020, n.entry(t, entry).PublishedAt.Year())
	}
}

func (n *tenant) entry(t *testing.T, id publicid.ChangelogEntry) *db.ChangelogEntry {
	t.Helper()
	return n.App.Store.Client().ChangelogEntry.GetX(n.Context(t.Context()), id)
}

// An edit that waits for its comment's post finds the comment even if a merge has moved it
// meanwhile. The fate of the old post does not matter.
func TestACommentThatMovedOutlivesThePostThatItWasOn(t *testing.T) {
	t.Parallel()
	n := &tenant{inTurns.Start(t).Tenant(t)}
	for range 5 {
		posts := n.posts(t, 2)
		comment := "/v1/comments/" + n.ID(t, "/v1/posts/"+posts[1]+"/comments", object{"body": object{"text": "x"}})
		answers := n.inOrder(t, posts[1],
			merging(n, posts[0], posts[1]), deleting(n, "/v1/posts/"+posts[1]), deleting(n, comment))
		only(t, answers, http.StatusOK)
		n.mergesAreSound(t, posts[:1])
	}
}

// inOrder locks a post and sends requests that wait for it, one after the other, so that they queue
// in this order. Then it releases the lock. No other test may use the database.
func (n *tenant) inOrder(t *testing.T, on string, requests ...request) []apptest.Answer {
	t.Helper()
	waiting := func() (count int) {
		require.NoError(t, n.App.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&count))
		return count
	}
	answers := make([]apptest.Answer, len(requests))
	var all sync.WaitGroup
	ctx := n.Context(t.Context())
	require.NoError(t, n.App.Store.InTx(ctx, func(tx *db.Tx) error {
		tx.Post.Query().Where(post.ID(parsed[publicid.Post](t, on))).ForUpdate().OnlyX(ctx)
		for i, r := range requests {
			all.Go(func() { answers[i] = r.do(t) })
			require.Eventually(t, func() bool { return waiting() == i+1 }, testkit.Wait, 10*time.Millisecond)
		}
		return nil
	}))
	all.Wait()
	return answers
}
