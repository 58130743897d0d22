package publicactions_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/webhooks"
)

// moderated returns a stage with a moderated board.
func moderated(t *testing.T) *stage {
	t.Helper()
	return moderatedIn(t, newStage(t))
}

// moderatedIn makes the stage's board moderated.
func moderatedIn(t *testing.T, s *stage) *stage {
	t.Helper()
	s.Patch(t, "/v1/boards/"+s.board.String(), object{"moderated": true})
	return s
}

// writes posts or comments from a remembered browser.
func (s *stage) writes(t *testing.T, w publicactions.Wanted) *publicactions.Done {
	t.Helper()
	if w.Kind == publicactions.Post {
		w.Board = s.board
	} else {
		w.Post = s.post
	}
	done, err := s.Act(s.ctx, s.quentin, w, "")
	require.NoError(t, err)
	return done
}

// comments submits a comment to moderation and returns its submission.
func (s *stage) comments(t *testing.T, text string) publicid.Submission {
	t.Helper()
	require.True(t, s.writes(t, publicactions.Wanted{Kind: publicactions.Comment, Text: text}).Waits)
	var id publicid.Submission
	s.query(t, "SELECT id FROM submissions WHERE organization_id = $1 ORDER BY id DESC LIMIT 1", &id)
	return id
}

// queue returns the moderation queue from the API.
func (s *stage) queue(t *testing.T, query string) []any {
	t.Helper()
	a := s.Do(t, http.MethodGet, "/v1/submissions"+query, nil)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	return a.Body["data"].([]any)
}

// everything returns all lists, counts and search results of the API.
func (s *stage) everything(t *testing.T) string {
	t.Helper()
	board, post := "/v1/boards/"+s.board.String(), "/v1/posts/"+s.post.String()
	var all strings.Builder
	for _, path := range []string{
		board + "/posts", board + "/posts?q=purple", board + "/posts?sort=active", "/v1/posts", "/v1/posts?sort=updated&includeDeleted=true",
		post, post + "/comments", post + "/comments?updatedSince=2026-01-01T00:00:00Z", "/v1/contacts", "/v1/events", "/v1/members",
	} {
		a := s.Do(t, http.MethodGet, path, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s: %s", path, a.Raw)
		fmt.Fprintf(&all, "%s %s\n", path, a.Raw)
	}
	// Every transaction moves the cursor, even without a change to these rows.
	return regexp.MustCompile(`"syncCursor":"[^"]+"`).ReplaceAllString(all.String(), "")
}

func TestAModeratedSubmissionAppearsOnlyInTheQueueUntilItsApproval(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	before := s.everything(t)
	require.NotContains(t, before, "And purple here")
	done := s.writes(t, publicactions.Wanted{Kind: publicactions.Post, Title: "Purple mode", Text: "Purple, please", OptIn: true})
	require.True(t, done.Waits)
	require.Nil(t, done.Post)
	require.True(t, s.writes(t, publicactions.Wanted{Kind: publicactions.Comment, Text: "And purple here"}).Waits)
	require.Equal(t, before, s.everything(t), "the same bytes everywhere, counts and contacts too")
	var guests, contacts int
	s.query(t, `SELECT (SELECT count(*) FROM users WHERE organization_id = $1 AND kind = 'guest'),
		(SELECT count(*) FROM contacts WHERE organization_id = $1)`, &guests, &contacts)
	require.Equal(t, []int{0, 0}, []int{guests, contacts})

	waiting := s.queue(t, "?boardId="+s.board.String())
	require.Len(t, waiting, 2)
	first, second := waiting[0].(object), waiting[1].(object)
	require.Equal(t, []any{"post", "moderated", "Purple mode", nil}, []any{first["kind"], first["reason"], first["title"], first["postId"]})
	require.Equal(t, []any{"comment", nil, s.post.String()}, []any{second["kind"], second["title"], second["postId"]})
	require.Equal(t, object{"json": nil, "text": "And purple here"}, second["body"])
	for _, w := range waiting {
		require.NotContains(t, strings.ToLower(fmt.Sprint(w)), "quentin")
	}

	became := s.Make(t, http.MethodPost, "/v1/submissions/"+first["id"].(string)+"/approve", nil)
	require.Equal(t, []any{"Purple mode", nil}, []any{became["post"].(object)["title"], became["comment"]})
	require.NotNil(t, became["post"].(object)["contactId"], "who opted in is a contact now")
	became = s.Make(t, http.MethodPost, "/v1/submissions/"+second["id"].(string)+"/approve", nil)
	require.Equal(t, s.post.String(), became["comment"].(object)["postId"])
	require.Empty(t, s.queue(t, ""))
	types := []string{}
	for _, e := range s.Do(t, http.MethodGet, "/v1/events", nil).Body["data"].([]any) {
		types = append(types, e.(object)["type"].(string))
	}
	require.Equal(t, []string{"post.created", "contact.created", "post.created", "comment.created"}, types)
	require.Equal(t, "1", fmt.Sprint(s.Get(t, "/v1/posts/"+s.post.String())["commentCount"]))
	require.Contains(t, s.everything(t), "And purple here")
	contact := s.Do(t, http.MethodGet, "/v1/contacts", nil).Body["data"].([]any)[0].(object)
	require.Equal(t, []any{s.quentin.Email, "Quentin", "public_post", "public_interaction_opt_in"},
		[]any{contact["email"], contact["name"], contact["source"], contact["consentBasis"]})
}

func TestVotesAndTextsOfTheOrganizationSkipModeration(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	s.Patch(t, "/v1/organization", object{"blockedWords": []string{"casino"}})
	require.False(t, s.writes(t, publicactions.Wanted{Kind: publicactions.Vote}).Waits)
	s.ID(t, "/v1/boards/"+s.board.String()+"/posts", object{"title": "A casino"})
	s.ID(t, "/v1/posts/"+s.post.String()+"/comments", object{"body": object{"text": "A casino"}})
	require.Empty(t, s.queue(t, ""))
}

func TestAPendingSubmissionUsesUpItsConfirmationLink(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	require.NoError(t, s.Ask(s.ctx, s.quentin, publicactions.Wanted{Kind: publicactions.Comment, Post: s.post, Text: "Me too"},
		publicactions.Mailing{Subject: "Confirm", Text: "Open {link} please", Page: "https://feedback.example.com/confirm"}))
	var id publicid.Interaction
	s.query(t, "SELECT id FROM interactions WHERE organization_id = $1", &id)
	token := s.token(t, id)
	done, err := s.Confirm(s.ctx, token, theirs, false, "en")
	require.NoError(t, err)
	require.True(t, done.Waits)
	_, err = s.Confirm(s.ctx, token, theirs, false, "en")
	require.True(t, problem.Is(err, problem.NotFound), err)
	require.Len(t, s.queue(t, ""), 1)
}

func TestASubmissionKeepsPersonalDataSealedAndOnlyAfterConsent(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	s.writes(t, publicactions.Wanted{Kind: publicactions.Comment, Text: "Me too"})
	s.writes(t, publicactions.Wanted{Kind: publicactions.Comment, Text: "And me", OptIn: true})
	var rows, sealed string
	var people int
	s.query(t, `SELECT string_agg(s::text, ' '), string_agg(encode(person_sealed, 'escape'), ' '), count(person_sealed)
		FROM submissions s WHERE organization_id = $1`, &rows, &sealed, &people)
	require.Equal(t, 1, people)
	for _, secret := range []string{"uentin", "example.com"} {
		require.NotContains(t, rows+sealed, secret)
	}
}

func TestOnlyOneOfSeveralConcurrentDecisionsOnASubmissionSucceeds(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	id := s.comments(t, "Me too")
	var done, gone atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		path, method := "/v1/submissions/"+id.String()+"/approve", http.MethodPost
		if i%4 == 3 {
			path, method = "/v1/submissions/"+id.String(), http.MethodDelete
		}
		all.Go(func() {
			switch a := s.Do(t, method, path, nil); a.Status {
			case http.StatusCreated, http.StatusOK:
				done.Add(1)
			case http.StatusNotFound:
				gone.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, done.Load())
	require.EqualValues(t, 7, gone.Load())
	var comments, count, events, lines int
	s.query(t, `SELECT (SELECT count(*) FROM comments WHERE organization_id = $1), (SELECT comment_count FROM posts WHERE organization_id = $1),
		(SELECT count(*) FROM events WHERE organization_id = $1 AND type = 'comment.created'),
		(SELECT count(*) FROM audit_entries WHERE organization_id = $1 AND action IN ('approveSubmission', 'rejectSubmission'))`, &comments, &count, &events, &lines)
	require.Equal(t, []int{comments, comments, 1}, []int{count, events, lines})
}

func TestAnApprovalThatIsCutOffBeforeItsCommitHasChangedNothing(t *testing.T) {
	t.Parallel()
	s := moderatedIn(t, newStageAlone(t))
	id := s.comments(t, "Me too")
	c, err := pgx.Connect(t.Context(), s.App.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	// The test locks the submission, so the approval creates the comment and then waits. Then
	// Postgres ends the connection, as it does when the process dies.
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM submissions FOR UPDATE")
	require.NoError(t, err)
	done := make(chan int, 1)
	go func() { done <- s.Do(t, http.MethodPost, "/v1/submissions/"+id.String()+"/approve", nil).Status }()
	require.Eventually(t, func() bool {
		var killed bool
		err := s.App.Pool.QueryRow(t.Context(), `SELECT coalesce(bool_or(pg_terminate_backend(pid)), false) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&killed)
		return err == nil && killed
	}, testkit.Wait, 10*time.Millisecond)
	require.GreaterOrEqual(t, <-done, http.StatusInternalServerError)
	require.NoError(t, tx.Rollback(t.Context()))
	var left, comments, events int
	s.query(t, `SELECT (SELECT count(*) FROM submissions WHERE organization_id = $1), (SELECT count(*) FROM comments WHERE organization_id = $1),
		(SELECT count(*) FROM events WHERE organization_id = $1 AND type = 'comment.created')`,
		&left, &comments, &events)
	require.Equal(t, []int{1, 0, 0}, []int{left, comments, events})
	s.Make(t, http.MethodPost, "/v1/submissions/"+id.String()+"/approve", nil)
}

func TestABoardThatBecomesPrivateWhileAnActionWaitsForItsPostTakesNothing(t *testing.T) {
	t.Parallel()
	s := moderatedIn(t, newStageAlone(t))
	id := s.comments(t, "Me too")
	c, err := pgx.Connect(t.Context(), s.App.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM posts FOR UPDATE")
	require.NoError(t, err)
	done := make(chan int, 1)
	go func() { done <- s.Do(t, http.MethodPost, "/v1/submissions/"+id.String()+"/approve", nil).Status }()
	require.Eventually(t, func() bool {
		var waits bool
		const question = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"
		return s.App.Pool.QueryRow(t.Context(), question).Scan(&waits) == nil && waits
	}, testkit.Wait, 10*time.Millisecond)
	_, err = s.App.Pool.Exec(t.Context(), "UPDATE boards SET public = false")
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, http.StatusConflict, <-done)
}

func TestARejectedSubmissionLeavesOnlyALineInTheAuditTrail(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	before := s.everything(t)
	id := s.comments(t, "Purple")
	s.Make(t, http.MethodDelete, "/v1/submissions/"+id.String(), nil)
	require.Equal(t, before, s.everything(t))
	require.Empty(t, s.queue(t, ""))
	line := s.Do(t, http.MethodGet, "/v1/audit", nil).Body["data"].([]any)[0].(object)
	require.Equal(t, []any{"rejectSubmission", object{"kind": "submission", "id": id.String()}}, []any{line["action"], line["resource"]})
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		require.Equal(t, http.StatusNotFound, s.Do(t, method, "/v1/submissions/"+id.String(), nil).Status)
	}
}

func TestATextWithABlockedWordWaitsOnAnyBoard(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Patch(t, "/v1/organization", object{"blockedWords": []string{"Casino", "cheap pills", "Café"}})
	for text, waits := range map[string]bool{
		"the best CASINO!": true, "buy Cheap\n pills": true, "the cafe\u0301": true, "ＣＡＳＩＮＯ": true,
		"casinos": false, "cheap, pills": false, "cafe": false, "Me too": false,
	} {
		require.Equal(t, waits, s.writes(t, publicactions.Wanted{Kind: publicactions.Comment, Text: text}).Waits, text)
	}
	require.True(t, s.writes(t, publicactions.Wanted{Kind: publicactions.Post, Title: "A casino"}).Waits)
	require.False(t, s.writes(t, publicactions.Wanted{Kind: publicactions.Post, Title: "Cheap", Text: "Pills"}).Waits)
	waiting := s.queue(t, "?limit=100")
	require.Len(t, waiting, 5)
	for _, w := range waiting {
		require.Equal(t, "blocked_word", w.(object)["reason"])
	}
	s.Patch(t, "/v1/organization", object{"blockedWords": []string{}})
	require.False(t, s.writes(t, publicactions.Wanted{Kind: publicactions.Comment, Text: "casino"}).Waits)
}

func TestAtMostAThousandWaitAndALinkForMoreGoesOnCounting(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	id := s.comments(t, "The oldest")
	for _, name := range []string{"Second", "Third"} {
		s.Make(t, http.MethodPost, "/v1/boards", object{"name": name})
	}
	s.query(t, `WITH more AS (INSERT INTO submissions (id, organization_id, created_at, kind, reason, board_id, post_id, body_text, email_hash)
		SELECT gen_random_uuid(), organization_id, created_at, kind, reason, (SELECT array_agg(id) FROM boards WHERE organization_id = $1)[1 + i % 3], post_id, body_text,
			sha256(gen_random_uuid()::text::bytea)
		FROM submissions, generate_series(1, 998) AS i WHERE organization_id = $1 RETURNING 1) SELECT count(*) FROM more`, new(int))
	var counted, full atomic.Int32
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			_, err := s.Act(s.ctx, s.quentin, publicactions.Wanted{Kind: publicactions.Comment, Post: s.post, Text: "Me too"}, "")
			if err == nil {
				counted.Add(1)
			} else if problem.Is(err, problem.Forbidden) {
				full.Add(1)
			}
		})
	}
	all.Wait()
	require.Equal(t, []int32{1, 5}, []int32{counted.Load(), full.Load()}, "the last place is taken once")
	room, err := s.HasRoom(s.ctx, s.board)
	require.NoError(t, err)
	require.False(t, room)
	require.NoError(t, s.Ask(s.ctx, s.quentin, publicactions.Wanted{Kind: publicactions.Comment, Post: s.post, Text: "Later"},
		publicactions.Mailing{Subject: "Confirm", Text: "Open {link} please", Page: "https://feedback.example.com/confirm"}))
	var link publicid.Interaction
	s.query(t, "SELECT id FROM interactions WHERE organization_id = $1", &link)
	token := s.token(t, link)
	_, err = s.Confirm(s.ctx, token, theirs, false, "en")
	require.True(t, problem.Is(err, problem.Forbidden), err)
	require.False(t, s.writes(t, publicactions.Wanted{Kind: publicactions.Vote}).Waits, "votes go on")
	s.Make(t, http.MethodPost, "/v1/submissions/"+id.String()+"/approve", nil)
	_, err = s.Confirm(s.ctx, token, theirs, false, "en")
	require.NoError(t, err)
}

func TestOneVisitorCannotFillTheModerationQueue(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	for range 20 {
		s.comments(t, "Again")
	}
	_, err := s.Act(s.ctx, s.quentin, publicactions.Wanted{Kind: publicactions.Comment, Post: s.post, Text: "And again"}, "")
	require.True(t, problem.QueueFull.Is(err), err)
	room, err := s.HasRoom(s.ctx, s.board)
	require.NoError(t, err)
	require.True(t, room, "others write on")
}

// waits submits a comment of a person from a network to moderation.
func (s *stage) waits(email string, from netip.Prefix) error {
	_, err := s.Act(s.ctx, publicactions.Sender{Email: email, Name: "Person", From: from},
		publicactions.Wanted{Kind: publicactions.Comment, Post: s.post, Text: "Me too"}, "")
	return err
}

// copies multiplies the only waiting submission, each time by another person, with the given network.
func (s *stage) copies(t *testing.T, n int, network string) {
	t.Helper()
	s.query(t, fmt.Sprintf(`WITH more AS (INSERT INTO submissions (id, organization_id, created_at, kind, reason, board_id, post_id, body_text, email_hash, network_hash)
		SELECT gen_random_uuid(), organization_id, created_at, kind, reason, board_id, post_id, body_text, sha256(gen_random_uuid()::text::bytea), %s
		FROM submissions, generate_series(1, %d) WHERE organization_id = $1 RETURNING 1) SELECT count(*) FROM more`, network, n), new(int))
}

func TestANetworkFillsNoMoreThanATenthOfTheQueue(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	require.NoError(t, s.waits("first@example.com", theirs))
	s.copies(t, 98, "network_hash")
	require.NoError(t, s.waits("last@example.com", theirs))
	require.True(t, problem.QueueFull.Is(s.waits("another@example.com", theirs)))
	require.NoError(t, s.waits("another@example.com", ours))
}

func TestABoardFillsNoMoreThanHalfOfTheQueue(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	require.NoError(t, s.waits("first@example.com", theirs))
	s.copies(t, 499, "NULL")
	require.True(t, problem.QueueFull.Is(s.waits("another@example.com", ours)))
	room, err := s.HasRoom(s.ctx, s.board)
	require.NoError(t, err)
	require.False(t, room)
	other := publicid.Read[publicid.Board](s.ID(t, "/v1/boards", object{"name": "Other", "public": true, "moderated": true}))
	_, err = s.Act(s.ctx, s.quentin, publicactions.Wanted{Kind: publicactions.Post, Board: other, Title: "Purple mode"}, "")
	require.NoError(t, err)
}

func TestOneRequestRejectsAllSubmissionsOfAnAuthorOrANetwork(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	for _, by := range []struct {
		email string
		from  netip.Prefix
	}{
		{"spam@example.com", theirs}, {"spam@example.com", ours}, {"spam@example.com", theirs}, // by one author
		{"one@example.com", theirs}, {"two@example.com", theirs}, // from the author's network
		{"honest@example.com", ours},
	} {
		require.NoError(t, s.waits(by.email, by.from))
	}
	ids := []string{}
	for _, w := range s.queue(t, "") {
		ids = append(ids, w.(object)["id"].(string))
	}
	reject := func(id, query string) object {
		return s.Make(t, http.MethodDelete, "/v1/submissions/"+id+query, nil)
	}
	a := s.Refused(t, "ERR_VALIDATION", http.MethodDelete, "/v1/submissions/"+ids[0]+"?alsoFrom=everybody", nil)
	require.Len(t, a.Fields(), 1)
	require.Equal(t, "3", fmt.Sprint(reject(ids[0], "?alsoFrom=author")["rejectedCount"]))
	require.Equal(t, "2", fmt.Sprint(reject(ids[3], "?alsoFrom=network")["rejectedCount"]))
	require.Equal(t, "1", fmt.Sprint(reject(ids[5], "")["rejectedCount"]))
	require.Empty(t, s.queue(t, ""))
	audited := []string{}
	for _, line := range s.Do(t, http.MethodGet, "/v1/audit", nil).Body["data"].([]any) {
		if line := line.(object); line["action"] == "rejectSubmission" {
			audited = append(audited, line["resource"].(object)["id"].(string))
		}
	}
	require.ElementsMatch(t, ids, audited)
}

func TestARejectionByNetworkStaysWithinTheOrganization(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	require.NoError(t, s.waits("one@example.com", theirs))
	other := moderated(t)
	require.NoError(t, other.waits("one@example.com", theirs))
	var hashes int
	s.query(t, "SELECT count(DISTINCT network_hash) FROM submissions WHERE organization_id IN ($1, '"+other.Organization.ID.UUID().String()+"')", &hashes)
	require.Equal(t, 2, hashes, "no organization learns of another's visitors by their networks")
	id := s.queue(t, "")[0].(object)["id"].(string)
	require.Equal(t, "1", fmt.Sprint(s.Make(t, http.MethodDelete, "/v1/submissions/"+id+"?alsoFrom=network", nil)["rejectedCount"]))
	require.Len(t, other.queue(t, ""), 1)
}

func TestASubmissionFollowsAMergedPostAndDisappearsWithADeletedPost(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	first, second := s.comments(t, "First"), s.comments(t, "Second")
	target := s.ID(t, "/v1/boards/"+s.board.String()+"/posts", object{"title": "Night mode"})
	s.Make(t, http.MethodPost, "/v1/posts/"+target+"/merge", object{"sourceIds": []string{s.post.String()}})
	require.Equal(t, target, s.Get(t, "/v1/submissions/"+first.String())["postId"])
	s.comments(t, "On the merged one")
	became := s.Make(t, http.MethodPost, "/v1/submissions/"+first.String()+"/approve", nil)
	require.Equal(t, target, became["comment"].(object)["postId"])
	s.Make(t, http.MethodDelete, "/v1/posts/"+s.post.String(), nil)
	require.Len(t, s.queue(t, ""), 2, "they are the other post's")
	s.Make(t, http.MethodDelete, "/v1/posts/"+target, nil)
	require.Empty(t, s.queue(t, ""))
	s.Refused(t, "ERR_NOT_FOUND", http.MethodPost, "/v1/submissions/"+second.String()+"/approve", nil)
	s.writes(t, publicactions.Wanted{Kind: publicactions.Post, Title: "Purple mode"})
	s.Make(t, http.MethodDelete, "/v1/boards/"+s.board.String(), object{"confirmName": "Ideas"})
	require.Empty(t, s.queue(t, ""), "and what waits for a board doesn't keep it from being deleted")
}

func TestAnApprovalIgnoresPublicClosedButNeedsAPublicBoard(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	id := s.comments(t, "Me too")
	approve := "/v1/submissions/" + id.String() + "/approve"
	s.Patch(t, "/v1/boards/"+s.board.String(), object{"public": false})
	a := s.Refused(t, "ERR_CONFLICT", http.MethodPost, approve, nil)
	require.Equal(t, "board_not_public", a.Details()["reason"])
	require.Len(t, s.queue(t, ""), 1)
	s.Patch(t, "/v1/boards/"+s.board.String(), object{"public": true})
	s.Patch(t, "/v1/organization", object{"publicClosed": true})
	s.Make(t, http.MethodPost, approve, nil)
}

func TestTheQueueIsReadPageByPageAndByBoard(t *testing.T) {
	t.Parallel()
	s := moderated(t)
	for i := range 5 {
		s.comments(t, fmt.Sprint(i))
	}
	other := s.ID(t, "/v1/boards", object{"name": "Other"})
	require.Empty(t, s.queue(t, "?boardId="+other))
	all := s.Walk(t, "/v1/submissions", "2", func() {})
	require.Len(t, all, 5)
	require.IsIncreasing(t, all, "oldest first")
	require.Len(t, s.queue(t, "?limit=100&boardId="+s.board.String()), 5)
	a := s.Refused(t, "ERR_NOT_FOUND", http.MethodGet, "/v1/submissions?boardId=brd_nothing", nil)
	require.Equal(t, "boardId", a.Details()["field"])
}

func TestARotationResealsPendingSubmissionsWithTheNewKey(t *testing.T) {
	t.Parallel()
	s := moderatedIn(t, newStageAlone(t))
	s.writes(t, publicactions.Wanted{Kind: publicactions.Comment, Text: "Me too", OptIn: true})
	box := seal.New()
	require.NoError(t, box.Add("next", []byte(strings.Repeat("n", 32))))
	r, err := publicactions.ResealSubmissions(t.Context(), s.App.Store, box)
	require.NoError(t, err)
	require.Len(t, r.Unreadable, 1, "its key isn't there")
	require.NoError(t, box.Add("test", []byte(strings.Repeat("k", 32))))
	for _, wanted := range []int{1, 0} {
		r, err := publicactions.ResealSubmissions(t.Context(), s.App.Store, box)
		require.NoError(t, err)
		require.Equal(t, wanted, r.Done)
		require.Empty(t, r.Unreadable)
	}
	uses, err := webhooks.KeyUses(t.Context(), s.App.Store)
	require.NoError(t, err)
	require.Len(t, uses, 1)
	require.Equal(t, []any{"next", 1}, []any{uses[0].Key, uses[0].Submissions})
	// This process does not have the new key. The comment appears, and no contact is created.
	id := s.queue(t, "")[0].(object)["id"].(string)
	became := s.Make(t, http.MethodPost, "/v1/submissions/"+id+"/approve", nil)
	require.Nil(t, became["comment"].(object)["contactId"])
}

func TestADisposableAddressIsRefusedAtItsFieldWithEverythingElse(t *testing.T) {
	t.Parallel()
	s := stageIn(t, apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_DISPOSABLE_DOMAINS=mailinator.example"}}))
	ask := func(by publicactions.Sender) error {
		return s.Ask(s.ctx, by, publicactions.Wanted{Kind: publicactions.Vote, Post: s.post}, publicactions.Mailing{Page: "https://feedback.example.com"})
	}
	unchanged := s.Watch(t)
	for _, email := range []string{"a@mailinator.example", "A@Eu.Mailinator.Example "} {
		found, ok := problem.As(ask(publicactions.Sender{Email: email}))
		require.True(t, ok)
		fields := found.Details["fields"].([]problem.Field)
		require.Equal(t, []string{"name minLength", "email disposable"},
			[]string{fields[0].Field + " " + fields[0].Rule, fields[1].Field + " " + fields[1].Rule})
	}
	unchanged(t)
	require.NoError(t, ask(publicactions.Sender{Email: "a@notmailinator.example", Name: "A"}))
}
