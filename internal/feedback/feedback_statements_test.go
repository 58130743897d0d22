package feedback_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/user"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/testkit"
)

// useCases has the services without a dispatcher, on a store that counts statements.
type useCases struct {
	counted  *testkit.Statements
	feedback *feedback.Service
	contacts *contacts.Service
	client   *db.Client
	caller   *change.Caller
	board    publicid.Board
	contact  publicid.Contact
	tag      publicid.Tag
	posts    []publicid.Post
}

// listedPosts is more than a page.
const listedPosts = page.Standard + 10

func newUseCases(t *testing.T) (*useCases, context.Context) {
	t.Helper()
	u := &useCases{counted: &testkit.Statements{}}
	s, err := postgres.Open(postgres.Options{URL: testkit.SharedDatabase(t), MaxConns: 4, Tracer: u.counted})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	box := seal.New()
	require.NoError(t, box.Add("test", make([]byte, 32)))
	changes := change.NewRunner(s, nil, box, change.Settings{})
	u.contacts = contacts.New(s, changes, contacts.Settings{})
	u.feedback = feedback.New(s, changes, u.contacts, feedback.Settings{}, slog.New(slog.DiscardHandler))
	org, owner, err := access.New(s, changes, slog.New(slog.DiscardHandler)).CreateOrganization(t.Context(),
		access.NewOrganization{Name: "Acme", Plan: "business", OwnerEmail: "owner@example.com", OwnerName: "Olive Owner"})
	require.NoError(t, err)
	u.caller, u.client = &change.Caller{Organization: org, User: owner}, s.Client()
	ctx := change.WithCaller(t.Context(), u.caller)
	u.board = u.client.Board.Create().SetName("Ideas").SetSlug("ideas").SaveX(ctx).ID
	u.contact = u.client.Contact.Create().SetMetadata(json.RawMessage(`{"seats": 12}`)).SetEmail("ada@example.com").
		SetEmailHash([]byte("of it")).
		SetSource("admin").SetConsentBasis("admin_created").SaveX(ctx).ID
	u.tag = u.client.Tag.Create().SetBoardID(u.board).SetName("x").SetNameKey("x").SetColor("#6b7280").SaveX(ctx).ID
	rows := make([]*db.PostCreate, listedPosts)
	for i := range rows {
		u.posts = append(u.posts, publicid.NewPost())
		rows[i] = u.client.Post.Create().SetID(u.posts[i]).SetBoardID(u.board).SetTitle("Dark mode").SetSlug(fmt.Sprint(i)).
			SetBodyText("a pdf of it").SetContactID(u.contact)
	}
	u.client.Post.CreateBulk(rows...).ExecX(ctx)
	u.client.PostTag.Create().SetPostID(u.posts[0]).SetTagID(u.tag).ExecX(ctx)
	return u, ctx
}

// keyed returns a request with a new idempotency key.
func keyed() change.Request[*feedback.Post] {
	return change.Request[*feedback.Post]{
		Key:    &change.Key{ID: sha256.Sum256([]byte(rand.Text()))},
		Answer: func(*feedback.Post) (change.Answer, error) { return change.Answer{Status: 201}, nil },
	}
}

// roundTrips is the maximum number of round trips to the database in a use case.
type roundTrips struct {
	name string
	most int
	do   func() error
}

// Round trips account for most of the latency of the most frequent requests.
func TestAFrequentRequestWaitsForTheDatabaseAFewTimesAtMost(t *testing.T) {
	t.Parallel()
	u, ctx := newUseCases(t)
	createPost := func(q change.Request[*feedback.Post]) error {
		_, err := u.feedback.CreatePost(ctx, u.board, feedback.NewPost{Title: rand.Text()}, q)
		return err
	}
	// identified makes a contact that does not count, and returns its external id.
	identified := func() string {
		id := rand.Text()
		_, _, err := u.contacts.IdentifyContact(ctx, id, contacts.Traits{})
		require.NoError(t, err)
		u.counted.Reset()
		return id
	}
	paths := []roundTrips{
		{"create a post", 2, func() error { return createPost(change.Request[*feedback.Post]{}) }},
		{"create a post with an idempotency key", 2, func() error { return createPost(keyed()) }},
		{"cast a vote", 3, func() error {
			member := u.client.User.Create().SetEmail(rand.Text() + "@example.com").SetName("x").SetRole(user.RoleOwner).SaveX(ctx)
			u.counted.Reset()
			as := change.WithCaller(ctx, &change.Caller{Organization: u.caller.Organization, User: member})
			_, err := u.feedback.CastVote(as, u.posts[1], contacts.Person{}, change.Request[*feedback.CastVote]{})
			return err
		}},
		{"create a comment", 2, func() error {
			_, err := u.feedback.CreateComment(ctx, u.posts[0], feedback.NewComment{Body: feedback.Body{Text: "x"}}, change.Request[*db.Comment]{})
			return err
		}},
		{"reply", 3, func() error {
			parent := u.client.Comment.Create().SetPostID(u.posts[0]).SetAuthorUserID(u.caller.User.ID).SetBodyText("x").SaveX(ctx).ID.String()
			u.counted.Reset()
			_, err := u.feedback.CreateComment(ctx, u.posts[0], feedback.NewComment{Body: feedback.Body{Text: "x"}, ParentID: &parent}, change.Request[*db.Comment]{})
			return err
		}},
		{"create a post with tags", 3, func() error {
			_, err := u.feedback.CreatePost(ctx, u.board, feedback.NewPost{Title: rand.Text(), TagIDs: []string{u.tag.String()}}, change.Request[*feedback.Post]{})
			return err
		}},
		{"cast a vote of a known contact", 4, func() error {
			known := identified()
			_, err := u.feedback.CastVote(ctx, u.posts[1], contacts.Person{ExternalUserID: &known}, change.Request[*feedback.CastVote]{})
			return err
		}},
		{"cast a vote of a new contact", 4, func() error {
			_, err := u.feedback.CastVote(ctx, u.posts[1], contacts.Person{ExternalUserID: new(rand.Text()), Create: true}, change.Request[*feedback.CastVote]{})
			return err
		}},
		{"identify a contact that is known", 2, func() error {
			_, _, err := u.contacts.IdentifyContact(ctx, "known", contacts.Traits{})
			return err
		}},
		{"identify a contact that is new", 2, func() error {
			_, _, err := u.contacts.IdentifyContact(ctx, rand.Text(), contacts.Traits{})
			return err
		}},
		{"identify a contact with a new trait", 3, func() error {
			known := identified()
			_, _, err := u.contacts.IdentifyContact(ctx, known, contacts.Traits{Name: nullable.NewNullableWithValue(rand.Text())})
			return err
		}},
		{"list posts", 1, func() error { _, err := u.feedback.Posts(ctx, u.board, feedback.PostQuery{}); return err }},
	}
	for _, p := range paths {
		// A connection prepares each statement once, which takes a round trip of its own.
		require.NoError(t, p.do(), p.name)
		u.counted.Reset()
		require.NoError(t, p.do(), p.name)
		_, trips, texts := u.counted.Counted()
		require.LessOrEqual(t, trips, p.most, "%s:\n%s", p.name, strings.Join(texts, "\n"))
	}
}

// Two processes do not see each other's batches, so they search for slugs at the same time.
func TestPostsWithOneTitleGetSlugsOfTheirOwnFromTwoProcesses(t *testing.T) {
	t.Parallel()
	u, ctx := newUseCases(t)
	s, err := postgres.Open(postgres.Options{URL: testkit.SharedDatabase(t), MaxConns: 4})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	other := feedback.New(s, change.NewRunner(s, nil, nil, change.Settings{}), u.contacts, feedback.Settings{}, slog.New(slog.DiscardHandler))
	const each = 40
	var all sync.WaitGroup
	slugs := make([]string, 2*each)
	for i := range slugs {
		process := []*feedback.Service{u.feedback, other}[i%2]
		all.Go(func() {
			made, err := process.CreatePost(ctx, u.board, feedback.NewPost{Title: "Light mode"}, change.Request[*feedback.Post]{})
			if assert.NoError(t, err) {
				slugs[i] = made.Slug
			}
		})
	}
	all.Wait()
	slices.Sort(slugs)
	require.Len(t, slices.Compact(slugs), 2*each)
}

// The first event locks the organization's event counter until the commit. All other changes of the
// organization wait for this lock.
func TestNothingIsDoneBetweenTheFirstEventAndTheCommit(t *testing.T) {
	t.Parallel()
	u, ctx := newUseCases(t)
	u.counted.Reset()
	_, err := u.feedback.CastVote(ctx, u.posts[1], contacts.Person{ExternalUserID: new("new"), Create: true}, change.Request[*feedback.CastVote]{})
	require.NoError(t, err)
	_, _, texts := u.counted.Counted()
	first := slices.IndexFunc(texts, func(s string) bool { return strings.Contains(s, "INSERT INTO events") })
	require.Positive(t, first)
	for _, text := range texts[first:] {
		require.Regexp(t, `INSERT INTO events|^COMMIT`, text, strings.Join(texts, "\n"))
	}
}

// Pages and single rows are read without Ent. The test compares them with the rows that Ent reads.
func TestPlainSQLReadsTheSameRowsAsEnt(t *testing.T) {
	t.Parallel()
	u, ctx := newUseCases(t)
	u.client.Post.UpdateOneID(u.posts[1]).SetBodyJSON(json.RawMessage(`{"a": [1.50, "ü"]}`)).SetMergedIntoID(u.posts[0]).
		SetHideFromRoadmap(true).SetVoteCount(3).SetStatus("shipped").ExecX(ctx)
	listed, err := u.feedback.ContactPosts(ctx, u.contact, page.Query{})
	require.NoError(t, err)
	for _, id := range []publicid.Post{u.posts[0], u.posts[1], listed.Items[3].ID} {
		want, err := json.Marshal(u.client.Post.GetX(ctx, id))
		require.NoError(t, err)
		got, err := u.feedback.Post(ctx, id)
		require.NoError(t, err)
		requireSame(t, want, got.Post)
	}
	want, err := json.Marshal(u.client.Post.GetX(ctx, listed.Items[3].ID))
	require.NoError(t, err)
	requireSame(t, want, listed.Items[3].Post)
	first, err := u.feedback.Post(ctx, u.posts[0])
	require.NoError(t, err)
	require.Equal(t, []publicid.Tag{u.tag}, first.TagIDs)
	found, err := u.contacts.Contacts(ctx, contacts.ContactQuery{})
	require.NoError(t, err)
	want, err = json.Marshal(u.client.Contact.GetX(ctx, u.contact))
	require.NoError(t, err)
	requireSame(t, want, found.Items[0])
}

func requireSame(t *testing.T, want []byte, got any) {
	t.Helper()
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}
