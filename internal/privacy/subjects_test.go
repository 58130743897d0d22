package privacy_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/ent/db/user"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/internal/retention"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

func TestAnExport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *tenant){
		"holds all there is about a person, and nothing of anybody else":          exportHoldsAll,
		"has the actions with the address that have no contact":                   exportByAddress,
		"leaves out the posts of another contact with the address":                exportLeavesOthersPosts,
		"is sealed in the database, and can't be read before it is completed":     exportIsSealed,
		"that runs is the one that is asked for again":                            exportOnce,
		"of a contact that is deleted meanwhile stops, and keeps nothing":         exportStops,
		"is removed after a week, and its receipt after a year":                   exportExpires,
		"has each record once, however many go on with it, and wherever they die": exportRaces,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newTenant(t, apptest.Start(t, apptest.Options{})))
		})
	}
}

func exportHoldsAll(t *testing.T, n *tenant) {
	unchanged := n.counts(t)
	request := n.export(t, n.noor)
	all := n.records(t, request)
	require.Len(t, all["contact"], 1)
	c := all["contact"][0]
	require.Equal(t, []any{n.noor, address, fullName, "pro"}, []any{c["id"], c["email"], c["name"], c["plan"]})
	require.Equal(t, secret, c["metadata"].(object)["likes"])
	require.Len(t, all["post"], 1)
	require.Equal(t, "For the night.", all["post"][0]["body"].(object)["text"])
	require.Len(t, all["vote"], 2)
	require.Len(t, all["comment"], 2)
	types := map[string]int{}
	for _, e := range all["event"] {
		types[e["type"].(string)]++
	}
	require.Equal(t, map[string]int{
		"contact.created": 1, "contact.updated": 1, "post.created": 1, "post.status_changed": 1, "vote.created": 2, "comment.created": 2,
	}, types)
	require.Len(t, all["delivery"], len(all["event"]), "one webhook subscribes to all of them")
	text := fmt.Sprint(all)
	require.NotContains(t, text, "bo@customer.example")
	require.NotContains(t, text, n.bo)
	receipt := n.Make(t, http.MethodGet, "/v1/subject-requests/"+request, nil)
	require.Equal(t, "completed", receipt["status"])
	require.EqualValues(t, fmt.Sprint(1+1+2+2+8+8), fmt.Sprint(receipt["records"]))
	require.Equal(t, unchanged, n.counts(t))
}

func exportByAddress(t *testing.T, n *tenant) {
	hash := hashOf(n, address)
	third := n.ID(t, "/v1/boards/"+n.board+"/posts", object{"title": "Grey mode"})
	n.publicVote(t, third, hash)
	// Another contact with the address has a separate export.
	same := n.ID(t, "/v1/contacts", object{"email": address})
	n.Make(t, http.MethodPost, "/v1/posts/"+n.other+"/votes", object{"contactId": same})
	n.submits(t, "Waits to be looked at")
	query[int](t, n, `INSERT INTO subscriptions (id, organization_id, created_at, updated_at, email_hash, changelog)
VALUES ($1, $2, now(), now(), $3, true) RETURNING 1`, publicid.NewSubscription().UUID(), n.Organization.ID.UUID(), hash)
	receipt := n.Make(t, http.MethodPost, "/v1/contacts/"+n.noor+"/export", nil)
	require.Equal(t, []any{same}, receipt["sameAddressContactIds"])
	all := n.records(t, n.Finished(t, receipt["id"].(string)))
	require.Len(t, all["vote"], 3)
	require.Len(t, all["submission"], 1)
	require.Equal(t, []any{"comment", n.post, object{"json": nil, "text": "Waits to be looked at"}},
		[]any{all["submission"][0]["kind"], all["submission"][0]["postId"], all["submission"][0]["body"]})
	require.Len(t, all["subscription"], 1)
	chosen := all["subscription"][0]
	require.Equal(t, []any{true, true, "en"}, []any{chosen["statusUpdates"], chosen["changelog"], chosen["language"]})
}

// publicVote inserts a vote of the public flow, which identifies a voter only by the hash.
func (n *tenant) publicVote(t *testing.T, post string, hash []byte) {
	t.Helper()
	id, err := publicid.Parse[publicid.Post](post)
	require.NoError(t, err)
	query[int](t, n, `WITH v AS (INSERT INTO votes (id, organization_id, post_id, email_hash, created_at) VALUES ($1, $2, $3, $4, now()) RETURNING 1)
, p AS (UPDATE posts SET vote_count = vote_count + 1 WHERE id = $3) SELECT 1 FROM v`,
		publicid.NewVote().UUID(), n.Organization.ID.UUID(), id.UUID(), hash)
}

func hashOf(n *tenant, email string) []byte {
	mac := hmac.New(sha256.New, n.App.Config.EmailHashKey)
	mac.Write([]byte(email))
	return mac.Sum(nil)
}

func exportIsSealed(t *testing.T, n *tenant) {
	request := n.ID(t, "/v1/contacts/"+n.noor+"/export", nil)
	a := n.Do(t, http.MethodGet, "/v1/subject-requests/"+request+"/records", nil)
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, "export_running", a.Details()["reason"])
	n.Finished(t, request)
	require.NotEmpty(t, query[string](t, n, "SELECT id::text FROM subject_records WHERE organization_id = $1", n.Organization.ID.UUID()))
	for _, table := range n.traces(t, address, fullName) {
		require.NotContains(t, table, "subject_re")
	}
}

func exportOnce(t *testing.T, n *tenant) {
	first := n.Do(t, http.MethodPost, "/v1/contacts/"+n.noor+"/export", nil)
	unchanged := n.Watch(t)
	again := n.Do(t, http.MethodPost, "/v1/contacts/"+n.noor+"/export", nil)
	require.Equal(t, http.StatusAccepted, again.Status)
	require.Equal(t, string(first.Raw), string(again.Raw))
	unchanged(t)
	n.Finished(t, first.Data()["id"].(string))
	unchanged = n.Watch(t)
	n.Finished(t, first.Data()["id"].(string))
	unchanged(t)
	require.NotEqual(t, first.Data()["id"], n.ID(t, "/v1/contacts/"+n.noor+"/export", nil), "the last one is over")
}

func exportStops(t *testing.T, n *tenant) {
	request := n.ID(t, "/v1/contacts/"+n.noor+"/export", nil)
	id, err := publicid.Parse[publicid.SubjectRequest](request)
	require.NoError(t, err)
	_, err = n.App.Privacy.Continue(t.Context(), id)
	require.NoError(t, err)
	n.Make(t, http.MethodDelete, "/v1/contacts/"+n.noor, nil)
	n.Finished(t, request)
	receipt := n.Make(t, http.MethodGet, "/v1/subject-requests/"+request, nil)
	require.Equal(t, []any{"stopped", "contact_deleted"}, []any{receipt["status"], receipt["stoppedReason"]})
	require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodGet, "/v1/subject-requests/"+request+"/records", nil).Status)
	require.Empty(t, query[string](t, n, "SELECT id::text FROM subject_records WHERE organization_id = $1", n.Organization.ID.UUID()))
}

func exportExpires(t *testing.T, n *tenant) {
	request := n.export(t, n.noor)
	id, err := publicid.Parse[publicid.SubjectRequest](request)
	require.NoError(t, err)
	records := func() []int {
		return query[int](t, n, "SELECT count(*)::int FROM subject_records WHERE request_id = $1", id.UUID())
	}
	_, _, err = retention.RemoveSubjectRecords(t.Context(), n.App.Store)
	require.NoError(t, err)
	require.NotEqual(t, []int{0}, records(), "a week isn't over")
	query[int](t, n, "UPDATE subject_requests SET expires_at = now() WHERE id = $1 RETURNING 1", id.UUID())
	require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodGet, "/v1/subject-requests/"+request+"/records", nil).Status)
	_, _, err = retention.RemoveSubjectRecords(t.Context(), n.App.Store)
	require.NoError(t, err)
	require.Equal(t, []int{0}, records())
	_, _, err = retention.RemoveSubjectRequests(t.Context(), n.App.Store)
	require.NoError(t, err)
	n.Make(t, http.MethodGet, "/v1/subject-requests/"+request, nil)
	query[int](t, n, "UPDATE subject_requests SET finished_at = $2 WHERE id = $1 RETURNING 1", id.UUID(), time.Now().AddDate(-1, 0, -1))
	_, _, err = retention.RemoveSubjectRequests(t.Context(), n.App.Store)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodGet, "/v1/subject-requests/"+request, nil).Status)
}

// exportRaces runs several workers on one export concurrently. That happens after a kill, if an
// activity is retried while its first execution is still running.
func exportRaces(t *testing.T, n *tenant) {
	for i := range 120 { // more than two pages of events
		n.Make(t, http.MethodPatch, "/v1/contacts/"+n.noor, object{"mrrCents": i, "currency": "EUR"})
	}
	request := n.ID(t, "/v1/contacts/"+n.noor+"/export", nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { n.Finished(t, request) })
	}
	all.Wait()
	found := n.records(t, request)
	require.Equal(t, []int{1, 1, 2, 2, 128, 128}, []int{
		len(found["contact"]), len(found["post"]), len(found["vote"]), len(found["comment"]), len(found["event"]), len(found["delivery"]),
	})
}

func TestAnErasure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *tenant){
		"blanks the person's texts on request, in events too":                           eraseBlanks,
		"leaves another contact with the address, and a member who has it, as they are": eraseLeavesOthers,
		"leaves the posts of another contact with the address":                          eraseLeavesOthersPosts,
		"blanks a post though another one has the slug that its id makes":               eraseBlanksBesideASquatter,
		"clears the receivers' answers to contact.deleted":                              eraseClearsLastAnswers,
		"removes the exports of the person":                                             eraseRemovesExports,
		"removes kept answers that name the person, and no others":                      eraseRemovesAnswers,
		"removes kept answers that quote a text which is blanked":                       eraseRemovesQuotes,
		"waits for attempts with the old payload, and clears their answers":             eraseWaits,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newTenant(t, apptest.Start(t, apptest.Options{})))
		})
	}
}

// hexOf returns the hash of the address in the form of a database row.
func hexOf(n *tenant) string { return hex.EncodeToString(hashOf(n, address)) }

func (n *tenant) erase(t *testing.T, body any) string {
	t.Helper()
	return n.ID(t, "/v1/contacts/"+n.noor+"/erase", body)
}

// answered ends each delivery with an answer in which the receiver quotes the payload.
func (n *tenant) answered(t *testing.T) {
	t.Helper()
	query[int](t, n, `WITH d AS (
  UPDATE deliveries SET status = 'succeeded', next_attempt_at = NULL, attempt_count = 1 WHERE organization_id = $1 RETURNING id, organization_id, event_id
), a AS (
  INSERT INTO attempts (id, organization_id, delivery_id, number, started_at, duration_ms, response_status, response_body)
  SELECT gen_random_uuid(), d.organization_id, d.id, 1, now(), 5, 200, e.payload FROM d JOIN events e ON e.id = d.event_id RETURNING 1
) SELECT count(*)::int FROM a`, n.Organization.ID.UUID())
}

// waitsForLink inserts an interaction that the address has yet to confirm by e-mail.
func (n *tenant) waitsForLink(t *testing.T) {
	t.Helper()
	query[int](t, n, `INSERT INTO interactions (id, organization_id, created_at, token_hash, email_hash, content_sealed, due_at, expires_at)
  SELECT gen_random_uuid(), organization_id, now(), 'hash', email_hash, 'sealed', now() + '1 day', now() + '1 day' FROM contacts
  WHERE organization_id = $1 AND email = $2 RETURNING 1`, n.Organization.ID.UUID(), address)
}

// submits submits a comment of the person to moderation, with an opt-in.
func (n *tenant) submits(t *testing.T, text string) {
	t.Helper()
	n.Patch(t, "/v1/boards/"+n.board, object{"public": true, "moderated": true})
	done, err := n.App.PublicActions.Act(change.WithCaller(t.Context(), &change.Caller{Organization: n.Organization}),
		publicactions.Sender{Email: address, Name: fullName},
		publicactions.Wanted{Kind: publicactions.Comment, Post: publicid.Read[publicid.Post](n.post), Text: text, OptIn: true}, "")
	require.NoError(t, err)
	require.True(t, done.Waits)
}

// spells records the address as a second spelling of a mailbox, and as a mailbox with a second
// spelling.
func (n *tenant) spells(t *testing.T) {
	t.Helper()
	query[int](t, n, `INSERT INTO address_spellings (organization_id, email_hash, mailbox_hash)
  VALUES ($1, $2, 'mailbox'), ($1, 'spelling', $2) RETURNING 1`, n.Organization.ID.UUID(), hashOf(n, address))
}

func TestAnErasureLeavesNoTraceOfAddressNameTraitsAndHashInTheWholeDatabase(t *testing.T) {
	t.Parallel()
	n := newTenant(t, apptest.Start(t, apptest.Options{Alone: true}))
	n.publicVote(t, n.ID(t, "/v1/boards/"+n.board+"/posts", object{"title": "Grey mode"}), hashOf(n, address))
	n.answered(t)
	n.waitsForLink(t)
	n.submits(t, "Waits to be looked at")
	n.spells(t)
	traces := []string{address, fullName, secret, hexOf(n), "u-noor"}
	for _, text := range traces {
		require.NotEmpty(t, n.tracesAnywhere(t, text), "the search finds what there is")
	}
	counts := n.counts(t)
	request := n.erase(t, object{})
	require.Empty(t, query[string](t, n, "SELECT id::text FROM contacts WHERE email = $1", address), "the contact is gone at once")
	n.Finished(t, request)
	require.Empty(t, n.tracesAnywhere(t, append(traces[:4:4], "Waits to be looked at")...))
	require.Equal(t, []string{"events: u-noor"}, n.tracesAnywhere(t, "u-noor"), "contact.deleted alone, which receivers delete by")
	require.Equal(t, counts, n.counts(t))
	require.NotEmpty(t, n.tracesAnywhere(t, "bo@customer.example"), "who didn't ask")
	require.NotEmpty(t, n.tracesAnywhere(t, "For the night."), "the text stays")
	events, err := n.App.Store.Client().Event.Query().All(n.Context(t.Context()))
	require.NoError(t, err)
	apptest.ByContract(t, events)
	receipt := n.Make(t, http.MethodGet, "/v1/subject-requests/"+request, nil)
	require.Equal(t, []any{"completed", "keep", n.noor}, []any{receipt["status"], receipt["text"], receipt["contactId"]})
	require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodPost, "/v1/contacts/"+n.noor+"/erase", object{}).Status)
}

func eraseBlanks(t *testing.T, n *tenant) {
	// A deleted comment no longer names its author, but its event does.
	gone := n.ID(t, "/v1/posts/"+n.other+"/comments", object{"contactId": n.noor, "body": object{"text": "Forget it, by " + n.noor}})
	n.Make(t, http.MethodDelete, "/v1/comments/"+gone, nil)
	byBo := n.ID(t, "/v1/posts/"+n.other+"/comments", object{"contactId": n.bo, "body": object{"text": "Forget it, by " + n.bo}})
	n.Make(t, http.MethodDelete, "/v1/comments/"+byBo, nil)
	counts := n.counts(t)
	n.answered(t)
	n.Finished(t, n.erase(t, object{"text": "blank"}))
	require.Empty(t, n.traces(t, "Dark mode", "dark-mode", "For the night.", "Please, by "+n.noor, "Forget it, by "+n.noor))
	require.NotEmpty(t, n.traces(t, "Please, by "+n.bo))
	require.NotEmpty(t, n.traces(t, "Forget it, by "+n.bo))
	require.Equal(t, counts, n.counts(t))
	p := n.Make(t, http.MethodGet, "/v1/posts/"+n.post, nil)
	require.Equal(t, []any{"[erased]", ""}, []any{p["title"], p["body"].(object)["text"]})
	require.Regexp(t, "^erased-"+strings.TrimPrefix(n.post, "pst_")+"-[a-z2-7]{8}$", p["slug"])
	events, err := n.App.Store.Client().Event.Query().All(n.Context(t.Context()))
	require.NoError(t, err)
	apptest.ByContract(t, events)
	require.Empty(t, query[int](t, n, "SELECT 1 FROM subject_records WHERE organization_id = $1", n.Organization.ID.UUID()))
}

func eraseLeavesOthers(t *testing.T, n *tenant) {
	member, err := n.App.Access.EnlistMember(n.Context(t.Context()), access.NewMember{Email: address, Name: "Colleague", Role: "member"})
	require.NoError(t, err)
	colleague := n.As(t, member)
	third := n.ID(t, "/v1/boards/"+n.board+"/posts", object{"title": "Grey mode"})
	colleague.Make(t, http.MethodPost, "/v1/posts/"+third+"/votes", nil)
	same := n.ID(t, "/v1/contacts", object{"email": address})
	fourth := n.ID(t, "/v1/boards/"+n.board+"/posts", object{"title": "Blue mode"})
	n.Make(t, http.MethodPost, "/v1/posts/"+fourth+"/votes", object{"contactId": same})
	n.answered(t)
	receipt := n.Make(t, http.MethodPost, "/v1/contacts/"+n.noor+"/erase", object{})
	require.Equal(t, []any{same}, receipt["sameAddressContactIds"])
	n.Finished(t, receipt["id"].(string))
	require.Equal(t, address, n.Make(t, http.MethodGet, "/v1/contacts/"+same, nil)["email"])
	hashed := query[string](t, n, "SELECT post_id::text FROM votes WHERE organization_id = $1 AND email_hash = $2 ORDER BY post_id",
		n.Organization.ID.UUID(), hashOf(n, address))
	require.Len(t, hashed, 2, "that of the member and that of the other contact")
}

// sharedGuest creates two posts of Noor's guest and returns both. Another contact with the address
// writes the first as this guest, because Noor commented first. Noor writes the second without her
// contact.
func (n *tenant) sharedGuest(t *testing.T) (others, own string) {
	t.Helper()
	same := n.ID(t, "/v1/contacts", object{"email": address})
	others = n.ID(t, "/v1/boards/"+n.board+"/posts", object{"title": "Grey mode", "contactId": same, "body": object{"text": "For dusk."}})
	own = n.ID(t, "/v1/boards/"+n.board+"/posts", object{"title": "Blue mode", "body": object{"text": "For dawn."}})
	changed := query[int](t, n, `UPDATE posts SET author_user_id = (
  SELECT u.id FROM users u JOIN contacts c ON c.id = u.contact_id WHERE c.external_user_id = 'u-noor'
    AND u.organization_id = $1) WHERE organization_id = $1 AND title IN ('Grey mode', 'Blue mode') RETURNING 1`, n.Organization.ID.UUID())
	require.Len(t, changed, 2)
	return others, own
}

func exportLeavesOthersPosts(t *testing.T, n *tenant) {
	_, own := n.sharedGuest(t)
	all := n.records(t, n.export(t, n.noor))
	require.Len(t, all["post"], 2)
	require.Equal(t, own, all["post"][1]["id"])
	require.NotContains(t, fmt.Sprint(all), "Grey mode", "nor in an event")
}

func eraseLeavesOthersPosts(t *testing.T, n *tenant) {
	others, own := n.sharedGuest(t)
	n.answered(t)
	n.Finished(t, n.erase(t, object{"text": "blank"}))
	p := n.Make(t, http.MethodGet, "/v1/posts/"+others, nil)
	require.Equal(t, []any{"Grey mode", "For dusk."}, []any{p["title"], p["body"].(object)["text"]})
	require.Equal(t, "[erased]", n.Make(t, http.MethodGet, "/v1/posts/"+own, nil)["title"])
}

// TestAnErasureIncludesTheEffectOfALinkThatIsUsedAtTheSameTime erases a contact while a visitor uses a link.
// The visitor locks the link, then the post and the contact.
func TestAnErasureIncludesTheEffectOfALinkThatIsUsedAtTheSameTime(t *testing.T) {
	t.Parallel()
	n := newTenant(t, apptest.Start(t, apptest.Options{Alone: true})) // no other test waits for locks here
	post := n.ID(t, "/v1/boards/"+n.board+"/posts", object{"title": "Grey mode"})
	id, err := publicid.Parse[publicid.Post](post)
	require.NoError(t, err)
	n.waitsForLink(t)
	n.answered(t)
	c, err := pgx.Connect(t.Context(), n.App.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	link, err := c.Begin(t.Context())
	require.NoError(t, err)
	do := func(sql string, args ...any) {
		_, err := link.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	do(`DELETE FROM interactions`)
	erased := make(chan apptest.Answer, 1)
	go func() {
		erased <- n.Do(t, http.MethodPost, "/v1/contacts/"+n.noor+"/erase", object{"text": "blank"})
	}()
	require.Eventually(t, func() bool {
		return len(query[int](t, n, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)) > 0
	}, testkit.Wait, 10*time.Millisecond)
	do(`SELECT FROM posts WHERE id = $1 FOR UPDATE NOWAIT`, id.UUID())
	do(`SELECT FROM contacts WHERE email = $1 FOR SHARE NOWAIT`, address)
	do(`UPDATE posts SET contact_id = (SELECT id FROM contacts WHERE email = $2) WHERE id = $1`, id.UUID(), address)
	do(`UPDATE posts SET vote_count = vote_count + 1 WHERE id = $1`, id.UUID())
	do(`INSERT INTO votes (id, organization_id, post_id, email_hash, created_at) VALUES ($1, $2, $3, $4, now())`,
		publicid.NewVote().UUID(), n.Organization.ID.UUID(), id.UUID(), hashOf(n, address))
	require.NoError(t, link.Commit(t.Context()))
	a := <-erased
	require.Equal(t, http.StatusAccepted, a.Status, "%s", a.Raw)
	n.Finished(t, a.Data()["id"].(string))
	require.Empty(t, n.traces(t, address, hexOf(n)))
	require.Equal(t, "[erased]", n.Make(t, http.MethodGet, "/v1/posts/"+post, nil)["title"])
}

func eraseBlanksBesideASquatter(t *testing.T, n *tenant) {
	slug := "erased-" + strings.TrimPrefix(n.post, "pst_")
	squatter := n.Make(t, http.MethodPost, "/v1/boards/"+n.board+"/posts", object{"title": slug})
	require.Equal(t, slug, squatter["slug"])
	n.answered(t)
	n.Finished(t, n.erase(t, object{"text": "blank"}))
	require.Equal(t, "[erased]", n.Make(t, http.MethodGet, "/v1/posts/"+n.post, nil)["title"])
}

func eraseClearsLastAnswers(t *testing.T, n *tenant) {
	n.answered(t)
	request := n.erase(t, object{})
	quoted := query[int](t, n, `WITH d AS (
  UPDATE deliveries SET status = 'succeeded', next_attempt_at = NULL, attempt_count = 1 WHERE organization_id = $1 AND event_type = 'contact.deleted'
  RETURNING id, organization_id
) INSERT INTO attempts (id, organization_id, delivery_id, number, started_at, duration_ms, response_status, response_body)
  SELECT gen_random_uuid(), organization_id, id, 1, now(), 5, 200, $2 FROM d RETURNING 1`, n.Organization.ID.UUID(), []byte("Bye, "+fullName))
	require.Len(t, quoted, 1)
	n.Finished(t, request)
	require.Empty(t, n.traces(t, fullName))
}

func eraseRemovesExports(t *testing.T, n *tenant) {
	done := n.export(t, n.noor)
	running := n.ID(t, "/v1/contacts/"+n.noor+"/export", nil)
	n.answered(t)
	n.Finished(t, n.erase(t, object{}))
	for _, request := range []string{done, n.Finished(t, running)} {
		require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodGet, "/v1/subject-requests/"+request+"/records", nil).Status)
	}
	require.Empty(t, query[int](t, n, "SELECT 1 FROM subject_records WHERE organization_id = $1", n.Organization.ID.UUID()))
}

// keyed sends a request with an Idempotency-Key and reports whether the answer was replayed.
func (n *tenant) keyed(t *testing.T, method, path string, body any) (a apptest.Answer, replayed bool) {
	t.Helper()
	a = n.Do(t, method, path, body, "Idempotency-Key", "once")
	return a, a.Header.Get("Idempotent-Replayed") == "true"
}

func eraseRemovesAnswers(t *testing.T, n *tenant) {
	made, _ := n.keyed(t, http.MethodPost, "/v1/contacts", object{"email": "nia@customer.example", "name": fullName})
	nia := made.Data()["id"].(string)
	named := []struct {
		method, path string
		body         any
	}{
		{http.MethodPatch, "/v1/contacts/" + nia, object{"plan": "pro"}},
		{http.MethodPost, "/v1/boards/" + n.board + "/posts", object{"title": "Grey mode", "contactId": nia}},
		{http.MethodPost, "/v1/posts/" + n.post + "/votes", object{"contactId": nia}},
		{http.MethodPost, "/v1/posts/" + n.post + "/comments", object{"contactId": nia, "body": object{"text": "Please"}}},
	}
	for _, r := range named {
		a, _ := n.keyed(t, r.method, r.path, r.body)
		require.Less(t, a.Status, 300, "%s", a.Raw)
		_, replayed := n.keyed(t, r.method, r.path, r.body)
		require.True(t, replayed)
	}
	forBo := object{"contactId": n.bo, "body": object{"text": "Thanks"}}
	n.keyed(t, http.MethodPost, "/v1/posts/"+n.other+"/comments", forBo)
	receipt, _ := n.keyed(t, http.MethodPost, "/v1/contacts/"+nia+"/erase", object{})
	require.Equal(t, http.StatusAccepted, receipt.Status, "%s", receipt.Raw)
	for _, r := range named {
		a, replayed := n.keyed(t, r.method, r.path, r.body)
		require.False(t, replayed)
		require.Equal(t, http.StatusNotFound, a.Status, "%s %s: %s", r.method, r.path, a.Raw)
	}
	_, replayed := n.keyed(t, http.MethodPost, "/v1/contacts", object{"email": "nia@customer.example", "name": fullName})
	require.False(t, replayed)
	_, replayed = n.keyed(t, http.MethodPost, "/v1/posts/"+n.other+"/comments", forBo)
	require.True(t, replayed, "somebody else's")
	_, replayed = n.keyed(t, http.MethodPost, "/v1/contacts/"+nia+"/erase", object{})
	require.True(t, replayed, "the erasure's own answer")
}

// eraseRemovesQuotes makes a member write a post before it is assigned to a contact. The kept answer
// therefore quotes the text and names no contact.
func eraseRemovesQuotes(t *testing.T, n *tenant) {
	post := object{"title": "Grey mode"}
	made, _ := n.keyed(t, http.MethodPost, "/v1/boards/"+n.board+"/posts", post)
	n.Patch(t, "/v1/posts/"+made.Data()["id"].(string), object{"contactId": n.noor})
	n.answered(t)
	n.Finished(t, n.erase(t, object{"text": "blank"}))
	again, replayed := n.keyed(t, http.MethodPost, "/v1/boards/"+n.board+"/posts", post)
	require.False(t, replayed)
	require.NotEqual(t, made.Data()["id"], again.Data()["id"])
}

func eraseWaits(t *testing.T, n *tenant) {
	n.answered(t)
	of := n.Organization.ID.UUID()
	// One delivery is still sending the old payload.
	query[int](t, n, `UPDATE deliveries SET status = 'pending', lease_until = now() + interval '1 hour' WHERE organization_id = $1 AND event_type = 'contact.updated' RETURNING 1`, of)
	id, err := publicid.Parse[publicid.SubjectRequest](n.erase(t, object{}))
	require.NoError(t, err)
	next := func() bool {
		p, err := n.App.Privacy.Continue(t.Context(), id)
		require.NoError(t, err)
		return p.Wait
	}
	for !next() {
	}
	require.True(t, next(), "it is still under way")
	query[int](t, n, `UPDATE deliveries SET lease_until = now() - interval '1 hour' WHERE organization_id = $1 AND event_type = 'contact.updated' RETURNING 1`, of)
	require.True(t, next(), "its lease is over, but it isn't recorded yet")
	// Now that attempt is recorded.
	query[int](t, n, `UPDATE attempts SET response_body = $2 WHERE delivery_id IN (
  SELECT id FROM deliveries WHERE organization_id = $1 AND event_type = 'contact.updated') RETURNING 1`, of, []byte(address))
	query[int](t, n, `UPDATE deliveries SET status = 'succeeded', lease_until = NULL WHERE organization_id = $1 AND event_type = 'contact.updated' RETURNING 1`, of)
	n.Finished(t, id.String())
	require.Empty(t, n.traces(t, address))
}

func TestExportsAndErasuresAreForOwnersAndAdmins(t *testing.T) {
	t.Parallel()
	n := newTenant(t, apptest.Start(t, apptest.Options{}))
	request := n.export(t, n.noor)
	for _, role := range []user.Role{user.RoleMember, user.RoleAdmin} {
		m, err := n.App.Access.EnlistMember(n.Context(t.Context()),
			access.NewMember{Email: string(role) + "@example.com", Name: "M", Role: string(role)})
		require.NoError(t, err)
		as := n.As(t, m)
		asked := map[string]string{
			http.MethodPost: "/v1/contacts/" + n.noor + "/export",
			http.MethodGet:  "/v1/subject-requests/" + request + "/records",
		}
		for method, path := range asked {
			a := as.Do(t, method, path, nil)
			require.Equal(t, role == user.RoleAdmin, a.Status < 300, "%s %s as %s: %s", method, path, role, a.Raw)
			if role == user.RoleMember {
				require.Equal(t, "role_insufficient", a.Details()["reason"])
			}
		}
		if role == user.RoleMember {
			unchanged := n.Watch(t)
			require.Equal(t, http.StatusForbidden, as.Do(t, http.MethodPost, "/v1/contacts/"+n.noor+"/erase", object{}).Status)
			unchanged(t)
		}
	}
}

func TestAWorkerCompletesTheErasureOfADeadWorkerAndNotifiesReceivers(t *testing.T) {
	tier.Slow(t, "waits for a lease")
	t.Parallel()
	first := apptest.Start(t, apptest.Options{Alone: true})
	n := newTenant(t, first)
	receiver := testkit.NewReceiver(t)
	n.Register(t, receiver, "contact.deleted", "contact.updated")
	n.answered(t)
	n.Make(t, http.MethodPatch, "/v1/contacts/"+n.noor, object{"plan": "team"}) // its delivery is pending until a worker runs
	request := n.erase(t, object{})
	id, err := publicid.Parse[publicid.SubjectRequest](request)
	require.NoError(t, err)
	for range 2 { // then the first worker dies
		_, err = first.Privacy.Continue(t.Context(), id)
		require.NoError(t, err)
	}
	// Another Temporal has no runs, so the sweep has to find the rows.
	logs := testkit.NewLogs()
	second := apptest.Start(t, apptest.Options{Worker: true, DatabaseURL: first.Config.DatabaseURL, Logs: logs.Logger()})
	require.Eventually(t, func() bool {
		receipt, err := second.Privacy.Request(n.Context(t.Context()), id)
		return err == nil && receipt.Status == "completed"
	}, testkit.Wait, testkit.Tick)
	bodies := ""
	for _, r := range receiver.Await(t, 2) {
		require.NoError(t, r.Invalid)
		bodies += string(r.Body)
	}
	require.Contains(t, bodies, `"event":"contact.deleted"`)
	require.Contains(t, bodies, `"externalUserId":"u-noor"`)
	require.Empty(t, n.traces(t, fullName, address))
	told := logs.String()
	events := second.Temporal.GetWorkflowHistory(t.Context(), request, "", false, 0)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		told += e.String()
	}
	require.Contains(t, told, request)
	for _, text := range []string{fullName, address, secret, hexOf(n), "u-noor", n.noor} {
		require.NotContains(t, told, text, "in the log, or in the run's history")
	}
}
