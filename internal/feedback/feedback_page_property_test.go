package feedback_test

import (
	"cmp"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// shifting is a list whose rows change while it is read.
type shifting struct {
	path string // with a query, if it has one
	// add inserts a row into the list and returns its id. Drop removes the row.
	add  func(t *testing.T) string
	drop func(t *testing.T, id string)
	// order compares two rows in the order of the list.
	order func(a, b object) int
}

const (
	// The rows that stay. Writers remove as many other rows.
	staying    = 20
	mostWrites = 80
	// The limit for inserts: an organization may have 100 API keys, and 40 rows exist at the start.
	mostAdded = 25
)

// Rows that exist throughout are read exactly once, despite concurrent writes.
func TestAListThatChangesIsReadExactly(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed:", seed) // shown when the test fails
	lists := map[string]func(*testing.T, *tenant, *dice) shifting{
		"boards": boardList, "tags": tagList, "webhooks": webhookList, "API keys": keyList, "members": memberList,
		"deliveries": deliveryList, "votes": voteList, "comments": commentList, "changelog": entryList,
		"posts of a contact":             contactPostList,
		"posts by creation":              postsBy("sort=newest"),
		"posts by votes":                 postsBy("sort=votes"),
		"posts by activity":              postsBy("sort=active"),
		"posts that match":               postsBy("q=export+pdf"),
		"posts that match by creation":   postsBy("q=export+pdf&sort=newest"),
		"posts that match by votes":      postsBy("q=export+pdf&sort=votes"),
		"posts that match by activity":   postsBy("q=export+pdf&sort=active"),
		"posts by revenue":               postsBy("currency=EUR&sort=revenue"),
		"posts that match by revenue":    postsBy("q=export+pdf&currency=EUR&sort=revenue"),
		"contacts":                       contactsBy(""),
		"contacts by creation":           contactsBy("sort=created"),
		"contacts by their last visit":   contactsBy("sort=last_seen"),
		"contacts by revenue":            contactsBy("sort=mrr"),
		"contacts that match":            contactsBy("q=ACME"),
		"contacts that match by visit":   contactsBy("q=ACME&sort=last_seen"),
		"contacts that match by revenue": contactsBy("q=ACME&sort=mrr"),
	}
	tests := map[string]func(*testing.T, *tenant){}
	for name, list := range lists {
		tests[name] = func(t *testing.T, n *tenant) {
			d := &dice{random: rand.New(rand.NewPCG(seed, 0))}
			changing(t, n, d, list(t, n, d))
		}
	}
	togetherOn(t, roomy.Start(t), tests)
}

// changing reads a list several times while it changes.
func changing(t *testing.T, n *tenant, d *dice, l shifting) {
	t.Helper()
	var doomed []string
	for range 2 * staying {
		if id := l.add(t); len(doomed) < staying && d.roll(2) == 0 {
			doomed = append(doomed, id)
		}
	}
	stay := slices.DeleteFunc(ids(n.pages(t, l.path, 20, nil)), func(id string) bool { return slices.Contains(doomed, id) })
	require.Greater(t, len(stay), staying/2)
	for range max(1, tier.Repeats()/10) {
		w := startWriters(t, l, d, doomed)
		seen := n.pages(t, l.path, 1+d.roll(5), w.wrote)
		doomed = w.stop()
		require.True(t, slices.IsSortedFunc(seen, l.order), "the documented order: %v", ids(seen))
		all := ids(seen)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(all))), len(all), "none comes twice")
		all = slices.DeleteFunc(all, func(id string) bool { return !slices.Contains(stay, id) })
		require.Equal(t, stay, all, "all that stayed, in the order that they had")
	}
}

func ids(rows []object) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = row["id"].(string)
	}
	return out
}

// pages reads a list page by page. It calls between after each page except the last.
func (n *tenant) pages(t *testing.T, path string, limit int, between func()) []object {
	t.Helper()
	path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]
	var rows []object
	for next := fmt.Sprint(path, "limit=", limit); ; {
		require.Less(t, len(rows), 100*staying, "the list has no end")
		a := n.Do(t, http.MethodGet, next, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		for _, row := range a.Body["data"].([]any) {
			rows = append(rows, row.(object))
		}
		cursor, more := a.Body["nextCursor"].(string)
		if !more {
			return rows
		}
		if between != nil {
			between()
		}
		next = fmt.Sprint(path, "limit=", limit, "&cursor=", cursor)
	}
}

// dice is a random source that goroutines can share.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (d *dice) roll(sides int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(sides)
}

// writers change a list until they are stopped or have done enough writes.
type writers struct {
	all     sync.WaitGroup
	stopped chan struct{}
	writes  chan struct{} // a value for each write, closed after the last
	chance  *dice

	mu     sync.Mutex
	doomed []string // rows that can be removed
}

// startWriters starts one writer that inserts rows and two that remove rows.
func startWriters(t *testing.T, l shifting, d *dice, doomed []string) *writers {
	t.Helper()
	drop := func(id string) { l.drop(t, id) }
	w := &writers{stopped: make(chan struct{}), writes: make(chan struct{}, 3*mostWrites), chance: d, doomed: doomed}
	for _, by := range []struct {
		write func()
		most  int
	}{{func() { w.give(l.add(t)) }, mostAdded}, {func() { w.take(drop) }, mostWrites}, {func() { w.take(drop) }, mostWrites}} {
		w.all.Go(func() {
			for range by.most {
				by.write()
				w.writes <- struct{}{}
				select {
				case <-w.stopped:
					return
				default:
				}
			}
		})
	}
	go func() {
		w.all.Wait()
		close(w.writes)
	}()
	return w
}

// wrote waits for a write, so that the reader doesn't run ahead of the writers.
func (w *writers) wrote() { <-w.writes }

// stop ends the writers and returns the rows that they have not removed.
func (w *writers) stop() []string {
	close(w.stopped)
	w.all.Wait()
	return w.doomed
}

func (w *writers) give(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doomed = append(w.doomed, id)
}

func (w *writers) take(drop func(id string)) {
	w.mu.Lock()
	if len(w.doomed) == 0 {
		w.mu.Unlock()
		return
	}
	i := w.chance.roll(len(w.doomed))
	id := w.doomed[i]
	w.doomed = slices.Delete(w.doomed, i, i+1)
	w.mu.Unlock()
	drop(id)
}

func oldestFirst(a, b object) int { return cmp.Compare(a["id"].(string), b["id"].(string)) }

func newestFirst(a, b object) int { return oldestFirst(b, a) }

// removing returns a function that removes a row by DELETE under a path.
func (n *tenant) removing(path string, body any) func(*testing.T, string) {
	return func(t *testing.T, id string) {
		t.Helper()
		a := n.Do(t, http.MethodDelete, path+id, body)
		assert.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	}
}

// making returns a function that inserts a row by POST.
func (n *tenant) making(path string, body func() any) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		return n.ID(t, path, body())
	}
}

// keyOfAnother makes a key for a new member, because one member may have only a few keys.
func (n *tenant) keyOfAnother(t *testing.T) string {
	t.Helper()
	member := n.ID(t, "/v1/members", object{"email": unique() + "@example.com", "name": "x"})
	return n.ID(t, "/v1/api-keys", object{"name": "x", "scope": "read", "memberId": member})
}

// unique returns an unused text that is valid in slugs and names.
func unique() string { return strings.ToLower(crand.Text()) }

func boardList(_ *testing.T, n *tenant, _ *dice) shifting {
	create := n.making("/v1/boards", func() any { return object{"name": "Ideas", "slug": unique()} })
	return shifting{"/v1/boards", create, n.removing("/v1/boards/", object{"confirmName": "Ideas"}), oldestFirst}
}

func tagList(t *testing.T, n *tenant, _ *dice) shifting {
	tags := n.Board(t) + "/tags"
	create := n.making(tags, func() any { return object{"name": unique()} })
	return shifting{tags, create, n.removing(tags+"/", nil), oldestFirst}
}

func webhookList(_ *testing.T, n *tenant, _ *dice) shifting {
	create := n.making("/v1/webhooks", func() any { return apptest.Registration })
	return shifting{"/v1/webhooks", create, n.removing("/v1/webhooks/", nil), oldestFirst}
}

func entryList(t *testing.T, n *tenant, _ *dice) shifting {
	entries := n.Board(t) + "/changelog"
	create := n.making(entries, func() any { return object{"title": "x", "slug": unique()} })
	return shifting{entries, create, n.removing("/v1/changelog/", nil), newestFirst}
}

// Revoked keys stay in the list, so drop deletes rows in the database.
func keyList(_ *testing.T, n *tenant, _ *dice) shifting {
	create := n.keyOfAnother
	drop := func(t *testing.T, id string) {
		t.Helper()
		n.App.Store.Client().APIKey.DeleteOneID(parsed[publicid.APIKey](t, id)).ExecX(n.Context(t.Context()))
	}
	return shifting{"/v1/api-keys", create, drop, oldestFirst}
}

func memberList(_ *testing.T, n *tenant, _ *dice) shifting {
	create := n.making("/v1/members", func() any { return object{"email": unique() + "@example.com", "name": "x"} })
	return shifting{"/v1/members", create, n.removing("/v1/members/", nil), oldestFirst}
}

// The API cannot delete a single delivery, so drop deletes rows in the database.
func deliveryList(t *testing.T, n *tenant, _ *dice) shifting {
	log := "/v1/webhooks/" + n.Listen(t, event.PostCreated) + "/deliveries"
	n.Post(t)
	first := n.Walk(t, log, "1", nil)[0]
	create := n.making(log+"/"+first+"/replay", func() any { return nil })
	drop := func(t *testing.T, id string) {
		t.Helper()
		n.App.Store.Client().Delivery.DeleteOneID(parsed[publicid.Delivery](t, id)).ExecX(n.Context(t.Context()))
	}
	return shifting{log, create, drop, newestFirst}
}

func parsed[ID any, P interface {
	*ID
	UnmarshalText(text []byte) error
}](t *testing.T, text string) ID {
	t.Helper()
	var id ID
	require.NoError(t, P(&id).UnmarshalText([]byte(text)))
	return id
}

func voteList(t *testing.T, n *tenant, _ *dice) shifting {
	votes := n.Post(t) + "/votes"
	var voters sync.Map
	create := func(t *testing.T) string {
		t.Helper()
		voter := n.members(t, 1)[0]
		id := voter.ID(t, votes, nil)
		voters.Store(id, voter)
		return id
	}
	drop := func(t *testing.T, id string) {
		t.Helper()
		voter, _ := voters.Load(id)
		voter.(*tenant).removing(votes, nil)(t, "")
	}
	return shifting{votes, create, drop, newestFirst}
}

// The API turns a deleted comment into a tombstone, which stays in the list. Half of the comments
// are therefore deleted in the database.
func commentList(t *testing.T, n *tenant, d *dice) shifting {
	comments := n.Post(t) + "/comments"
	var threads []string
	for range 6 {
		threads = append(threads, n.ID(t, comments, object{"body": object{"text": "x"}}))
	}
	create := n.making(comments, func() any {
		if d.roll(3) == 0 {
			return object{"body": object{"text": "x"}}
		}
		return object{"body": object{"text": "x"}, "parentId": threads[d.roll(len(threads))]}
	})
	drop := func(t *testing.T, id string) {
		t.Helper()
		if d.roll(2) == 0 {
			n.removing("/v1/comments/", nil)(t, id)
			return
		}
		n.App.Store.Client().Comment.DeleteOneID(parsed[publicid.Comment](t, id)).ExecX(n.Context(t.Context()))
	}
	return shifting{comments, create, drop, func(a, b object) int {
		thread := func(c object) string {
			if parent, ok := c["parentId"].(string); ok {
				return parent
			}
			return c["id"].(string)
		}
		return cmp.Or(cmp.Compare(thread(a), thread(b)), oldestFirst(a, b))
	}}
}

// A post leaves its contact's list when it is deleted or its contact is removed.
func contactPostList(t *testing.T, n *tenant, d *dice) shifting {
	contact := n.ID(t, "/v1/contacts", object{})
	create := n.making(n.Board(t)+"/posts", func() any { return object{"title": unique(), "contactId": contact} })
	drop := func(t *testing.T, id string) {
		t.Helper()
		if d.roll(2) == 0 {
			n.removing("/v1/posts/", nil)(t, id)
			return
		}
		n.Patch(t, "/v1/posts/"+id, object{"contactId": nil})
	}
	return shifting{"/v1/contacts/" + contact + "/posts", create, drop, newestFirst}
}

// postsBy makes posts with all kinds of values. Each post gets its values when it is inserted,
// because a later change could move it past the reader.
func postsBy(query string) func(*testing.T, *tenant, *dice) shifting {
	return func(t *testing.T, n *tenant, d *dice) shifting {
		t.Helper()
		board := n.Board(t)
		on := parsed[publicid.Board](t, strings.TrimPrefix(board, "/v1/boards/"))
		create := func(t *testing.T) string {
			t.Helper()
			text := []string{"Export PDF", "Dark mode"}
			if d.roll(2) == 0 {
				slices.Reverse(text)
			}
			made := n.App.Store.Client().Post.Create().SetBoardID(on).SetTitle(text[0]).SetBodyText(text[1] + ", export, pdf").
				SetSlug(unique()).SetVoteCount(d.roll(4)).SetLastActivityAt(someTime(d)).SaveX(n.Context(t.Context()))
			if strings.Contains(query, "revenue") {
				n.paidVote(t, made.ID, int64(d.roll(4)))
			}
			return made.ID.String()
		}
		return shifting{board + "/posts?" + query, create, n.removing("/v1/posts/", nil), postOrder(query)}
	}
}

// paidVote adds the vote of a new contact with this revenue in cents.
func (n *tenant) paidVote(t *testing.T, on publicid.Post, cents int64) {
	t.Helper()
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	payer := client.Contact.Create().SetMetadata(json.RawMessage(`{}`)).SetSource("admin").SetConsentBasis("admin_created").
		SetMrrCents(cents).SetCurrency("EUR").SaveX(ctx)
	client.Vote.Create().SetPostID(on).SetContactID(payer.ID).ExecX(ctx)
}

// someTime returns one of a few times, so that many are equal.
func someTime(d *dice) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 1000*d.roll(5), time.UTC)
}

func postOrder(query string) func(a, b object) int {
	falling := map[string]func(object) string{
		"votes":   func(p object) string { return p["voteCount"].(json.Number).String() }, // a single digit
		"active":  func(p object) string { return at(p["lastActivityAt"]) },
		"export":  func(p object) string { return fmt.Sprint(strings.Contains(p["title"].(string), "Export")) },
		"newest":  func(object) string { return "" },
		"revenue": func(p object) string { return p["revenue"].(object)["mrrCents"].(json.Number).String() }, // a single digit
	}
	_, sort, ok := strings.Cut(query, "sort=")
	if !ok {
		sort = "export"
	}
	return func(a, b object) int {
		return cmp.Or(cmp.Compare(falling[sort](b), falling[sort](a)), newestFirst(a, b))
	}
}

// at returns an answer's timestamp in a form that sorts as text.
func at(v any) string {
	moment, err := time.Parse(time.RFC3339Nano, v.(string))
	if err != nil {
		return err.Error()
	}
	return moment.UTC().Format("2006-01-02T15:04:05.000000000")
}

// contactsBy makes contacts with all kinds of values, as postsBy does.
func contactsBy(query string) func(*testing.T, *tenant, *dice) shifting {
	return func(_ *testing.T, n *tenant, d *dice) shifting {
		create := func(t *testing.T) string {
			t.Helper()
			row := n.App.Store.Client().Contact.Create().SetMetadata(json.RawMessage("{}")).
				SetSource("admin").SetConsentBasis("admin_created").SetLastSeenAt(someTime(d))
			if revenue := d.roll(4); revenue > 0 {
				row.SetMrrCents(int64(revenue - 1)).SetCurrency("EUR")
			}
			if d.roll(2) == 0 {
				row.SetName("Acme Inc.")
			} else {
				row.SetEmail("ada@acme.example.com")
			}
			return row.SaveX(n.Context(t.Context())).ID.String()
		}
		return shifting{"/v1/contacts?" + query, create, n.removing("/v1/contacts/", nil), contactOrder(query)}
	}
}

func contactOrder(query string) func(a, b object) int {
	falling := func(object) string { return "" }
	switch {
	case strings.Contains(query, "sort=mrr"):
		falling = func(c object) string { // a single digit; null sorts after 0
			revenue, _ := c["mrrCents"].(json.Number)
			return revenue.String()
		}
	case strings.Contains(query, "sort=last_seen"):
		falling = func(c object) string { return at(c["lastSeenAt"]) }
	}
	return func(a, b object) int { return cmp.Or(cmp.Compare(falling(b), falling(a)), newestFirst(a, b)) }
}
