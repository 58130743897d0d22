package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/retention"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/webhook"
)

func TestTheFeedOfEvents(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{}), map[string]func(*testing.T, *apptest.App){
		"misses and repeats nothing while many write":                     feedOfMany,
		"has every type, whether or not a webhook subscribes":             feedOfAll,
		"counts the events of an organization, without tests of webhooks": feedOfATest,
		"can be read of some types":                                       feedOfTypes,
		"says so when the place isn't there yet":                          feedOfTheFuture,
	})
}

// feed reads the feed from a place. It returns the events and the next place.
func feed(t *testing.T, n *apptest.Tenant, query string) ([]object, int64) {
	t.Helper()
	a := n.Do(t, http.MethodGet, "/v1/events?"+query, nil)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	var events []object
	for _, e := range a.Body["data"].([]any) {
		events = append(events, e.(object))
	}
	next, err := a.Body["nextAfter"].(json.Number).Int64()
	require.NoError(t, err)
	return events, next
}

// numbers returns the sequence numbers of events.
func numbers(events []object) []string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = fmt.Sprint(e["sequence"])
	}
	return all
}

func upTo(last int) []string {
	all := make([]string, last)
	for i := range all {
		all[i] = fmt.Sprint(i + 1)
	}
	return all
}

// feedOfMany has eight writers and two readers in parallel. Some changes share a transaction,
// others run alone.
func feedOfMany(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	n.Listen(t, event.PostCreated)
	board := n.Board(t)
	const writers, rounds = 8, 12 // each round is a post, a comment, a vote and a status
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range rounds {
				post := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "Dark mode"})
				n.ID(t, post+"/comments", object{"body": object{"text": "Please."}})
				n.ID(t, post+"/votes", nil)
				n.Patch(t, post, object{"status": "planned"})
			}
		})
	}
	for reader := range 2 {
		all.Go(func() {
			var read []object
			for after := int64(0); len(read) < writers*rounds*4; {
				events, next := feed(t, n, fmt.Sprintf("after=%d&wait=30&limit=%d", after, 7+reader*30))
				if !assert.NotEmpty(t, events) {
					return
				}
				read, after = append(read, events...), next
			}
			assert.Equal(t, upTo(writers*rounds*4), numbers(read))
			ids := map[any]bool{}
			for _, e := range read {
				ids[e["id"]] = true
			}
			assert.Len(t, ids, writers*rounds*4)
		})
	}
	all.Wait()
}

// A slow commit has taken its number early. Readers must not pass it to later numbers.
func TestTheFeedDoesNotPassAnEventWhoseCommitIsSlow(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t)
	n := apptest.Start(t, apptest.Options{DatabaseURL: database}).Tenant(t)
	board := n.Board(t)
	slow, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = slow.Close(t.Context()) }()
	tx, err := slow.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `INSERT INTO events (id, organization_id, created_at, type, payload)
		VALUES ($1, $2, now(), 'vote.created', '{"event": "vote.created"}')`,
		publicid.NewEvent().UUID().String(), n.Organization.ID.UUID().String())
	require.NoError(t, err)
	done := make(chan string, 1)
	go func() { done <- n.ID(t, board+"/posts", object{"title": "Dark mode"}) }()
	require.Eventually(t, func() bool {
		var waits bool
		err := tx.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND database =
			(SELECT oid FROM pg_database WHERE datname = current_database()) OR NOT granted AND locktype = 'transactionid'
			AND transactionid = pg_current_xact_id()::xid)`).Scan(&waits)
		return err == nil && waits
	}, testkit.Wait, 10*time.Millisecond, "the second one waits for its number")
	events, next := feed(t, n, "after=0")
	require.Empty(t, events)
	require.Zero(t, next)
	require.NoError(t, tx.Commit(t.Context()))
	<-done
	events, _ = feed(t, n, "after=0")
	require.Len(t, events, 2)
	require.Equal(t, []any{"vote.created", "post.created"}, []any{events[0]["type"], events[1]["type"]})
}

func feedOfAll(t *testing.T, app *apptest.App) {
	n, stranger := app.Tenant(t), app.Tenant(t)
	post := n.Post(t)
	n.ID(t, post+"/votes", nil)
	n.ID(t, post+"/comments", object{"body": object{"text": "<b>"}})
	n.Patch(t, post, object{"status": "planned"})
	person := n.Person(t, "u-1")
	n.Patch(t, person, object{"name": "Ada Lovelace"})
	n.Do(t, http.MethodDelete, person, nil)
	n.ID(t, n.Board(t)+"/changelog", object{"title": "Dark at last", "publishedAt": "2026-03-12T10:41:07Z"})
	events, next := feed(t, n, "")
	types := map[any]bool{}
	for _, e := range events {
		types[e["type"]] = true
		require.Equal(t, e["type"], e["payload"].(object)["event"])
	}
	require.Equal(t, upTo(len(events)), numbers(events))
	require.Len(t, types, len(event.Types))
	require.EqualValues(t, len(events), next)
	events, next = feed(t, stranger, "")
	require.Empty(t, events)
	require.Zero(t, next)
}

func feedOfATest(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	hook := n.Listen(t, event.PostCreated)
	n.Post(t)
	n.Do(t, http.MethodPost, "/v1/webhooks/"+hook+"/test", nil)
	n.Post(t)
	events, _ := feed(t, n, "")
	require.Equal(t, upTo(2), numbers(events))
}

func feedOfTypes(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	post := n.Post(t)
	for range 3 {
		n.ID(t, post+"/comments", object{"body": object{"text": "Please."}})
	}
	n.ID(t, post+"/votes", nil)
	events, next := feed(t, n, "types=vote.created,post.created&limit=1")
	require.Equal(t, []string{"1"}, numbers(events))
	events, next = feed(t, n, fmt.Sprintf("types=vote.created,post.created&limit=1&after=%d", next))
	require.Equal(t, []string{"5"}, numbers(events))
	require.EqualValues(t, 5, next)
	events, next = feed(t, n, "types=contact.deleted")
	require.Empty(t, events)
	require.EqualValues(t, 5, next, "there is none up to here")
}

// waits starts a read that waits for new events.
func waits(t *testing.T, n *apptest.Tenant, query string) (answer chan apptest.Answer) {
	t.Helper()
	answer = make(chan apptest.Answer, 1)
	go func() { answer <- n.Do(t, http.MethodGet, "/v1/events?"+query, nil) }()
	return answer
}

func TestAReadOfTheFeedThatWaits(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Alone: true})
	n := app.Tenant(t)
	post := n.Post(t)

	// Without events of its types, the read ends empty, and returns a later place.
	n.ID(t, post+"/comments", object{"body": object{"text": "Please."}})
	a := <-waits(t, n, "types=vote.created&wait=1&after=1")
	require.Empty(t, a.Body["data"])
	require.Equal(t, json.Number("2"), a.Body["nextAfter"])

	came := waits(t, n, "types=vote.created&wait=30&after=2")
	n.ID(t, post+"/comments", object{"body": object{"text": "Please!"}})
	n.ID(t, post+"/votes", nil)
	a = <-came
	require.Len(t, a.Body["data"], 1)
	require.Equal(t, json.Number("4"), a.Body["nextAfter"])

	// A client whose key was revoked in the meantime gets no events.
	key := n.NewKeyOf(t, object{"name": "leaked", "scope": "read"})
	leaked := *n
	leaked.Key = key["key"].(string)
	require.Equal(t, http.StatusOK, leaked.Do(t, http.MethodGet, "/v1/events", nil).Status, "known for a moment")
	came = waits(t, &leaked, "wait=30&after=4")
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodDelete, "/v1/api-keys/"+key["id"].(string), nil).Status)
	// The read may start late. It must then find the key forgotten, too.
	require.Eventually(t, func() bool {
		return leaked.Do(t, http.MethodGet, "/v1/me", nil).Status == http.StatusUnauthorized
	}, testkit.Wait, testkit.Tick)
	n.Post(t)
	require.Equal(t, http.StatusUnauthorized, (<-came).Status)

	// A process that is stopping answers its waiting reads early. A read that began earlier still
	// waits in another process.
	stays := apptest.Start(t, apptest.Options{}).Tenant(t)
	elsewhere := waits(t, stays, "wait=30")
	came = waits(t, n, "wait=30&after=5")
	app.API.Leave()
	select {
	case a := <-came:
		require.Equal(t, http.StatusOK, a.Status)
	case <-elsewhere:
		require.Fail(t, "the read that waits was not answered when the process left")
	}
	stays.Post(t)
	require.Equal(t, http.StatusOK, (<-elsewhere).Status)
}

func feedOfTheFuture(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	n.Post(t)
	a := n.Do(t, http.MethodGet, "/v1/events?after=2", nil)
	require.Equal(t, http.StatusGone, a.Status, "a backup was restored, and other events will have these numbers")
}

func TestTheFeedSaysSoWhenEventsAfterThePlaceWereRemoved(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	n.Post(t)
	n.Post(t)
	_, _, err := retention.RemoveExpired(t.Context(), app.Store, retention.ExpiredEvents, time.Now().Add(time.Hour), "")
	require.NoError(t, err)
	n.Post(t)
	a := n.Do(t, http.MethodGet, "/v1/events?after=1", nil)
	require.Equal(t, http.StatusGone, a.Status)
	require.Equal(t, "ERR_GONE", a.Code())
	events, next := feed(t, n, "")
	require.Equal(t, []string{"3"}, numbers(events))
	require.EqualValues(t, 3, next)
	events, _ = feed(t, n, "after=2")
	require.Equal(t, []string{"3"}, numbers(events))
}

func TestADeploymentMayKeepNoFeed(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_EVENT_FEED=false"}}).Tenant(t)
	post := n.Post(t)
	n.ID(t, post+"/votes", nil)
	n.Patch(t, post, object{"status": "planned"})
	require.Empty(t, n.Kept(t))
	a := n.Do(t, http.MethodGet, "/v1/events", nil)
	require.Equal(t, http.StatusForbidden, a.Status)
	require.Equal(t, "event_feed_off", a.Details()["reason"])
}

func TestADeliveryTellsTheNumberOfItsEventInTheFeed(t *testing.T) {
	t.Parallel()
	app, r := apptest.Start(t, apptest.Options{Worker: true}), testkit.NewReceiver(t)
	n := app.Tenant(t)
	n.Post(t)
	n.Register(t, r, "post.created")
	n.Post(t)
	got := r.Await(t, 1)[0]
	require.Equal(t, "2", got.Header.Get(webhook.HeaderSequence))
	events, _ := feed(t, n, "after=1")
	payload, err := json.Marshal(events[0]["payload"])
	require.NoError(t, err)
	require.JSONEq(t, string(got.Body), string(payload))
}
