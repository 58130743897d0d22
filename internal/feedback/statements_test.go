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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/event"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/store"
	"earshot/internal/testkit"
	"earshot/internal/webhooks"
)

// useCases are the service without a dispatcher, on a store that counts.
type useCases struct {
	counted  *testkit.Statements
	feedback *feedback.Service
	webhooks *webhooks.Service
	contacts *contacts.Service
	client   *db.Client
	caller   *change.Caller
	board    publicid.Board
	contact  publicid.Contact
	tag      publicid.Tag
	posts    []publicid.Post
}

// countedPosts are more than a page, and more than a search looks at first.
const countedPosts = page.FirstLook + 10

func newUseCases(t *testing.T) (*useCases, context.Context) {
	t.Helper()
	u := &useCases{counted: &testkit.Statements{}}
	s, err := store.Open(store.Options{URL: testkit.Database(t), MaxConns: 4, Tracer: u.counted})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	box := seal.New()
	require.NoError(t, box.Add("test", make([]byte, 32)))
	changes := change.NewRunner(s, nil, box, change.Settings{})
	u.contacts = contacts.New(s, changes, contacts.Settings{})
	u.feedback = feedback.New(s, changes, u.contacts, feedback.Settings{}, slog.New(slog.DiscardHandler))
	u.webhooks = webhooks.New(s, changes, send.NewGuard(nil, false), box, webhooks.Settings{}, slog.New(slog.DiscardHandler))
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
	rows := make([]*db.PostCreate, countedPosts)
	for i := range rows {
		u.posts = append(u.posts, publicid.NewPost())
		title := "Dark mode"
		if i%5 == 0 {
			title = "Export"
		}
		rows[i] = u.client.Post.Create().SetID(u.posts[i]).SetBoardID(u.board).SetTitle(title).SetSlug(fmt.Sprint(i)).
			SetBodyText("a pdf of it").SetContactID(u.contact)
	}
	u.client.Post.CreateBulk(rows...).ExecX(ctx)
	u.client.PostTag.Create().SetPostID(u.posts[0]).SetTagID(u.tag).ExecX(ctx)
	return u, ctx
}

// lastEvent is the number of the latest one.
func (u *useCases) lastEvent(ctx context.Context) int64 {
	last := u.client.Event.Query().Order(db.Desc(event.FieldSequence)).FirstX(ctx)
	u.counted.Reset()
	return *last.Sequence
}

// once makes a change with an idempotency key of its own.
func (u *useCases) once(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, once := change.WithIdempotencyKey(ctx, sha256.Sum256([]byte(rand.Text())), [32]byte{})
	defer once.Abandon()
	change.AnsweredBy(ctx, func(*feedback.Post) (change.Answer, error) { return change.Answer{Status: 201}, nil })
	if err := do(ctx); err != nil {
		return err
	}
	return once.Commit(ctx, change.Answer{Status: 201})
}

func TestAnIdempotencyKeyCostsThreeStatementsAndNoRoundTrip(t *testing.T) {
	t.Parallel()
	u, ctx := newUseCases(t)
	for name, tags := range map[string][]string{"together": nil, "alone": {u.tag.String()}} {
		create := func(ctx context.Context) error {
			_, err := u.feedback.CreatePost(ctx, u.board, feedback.NewPost{Title: rand.Text(), TagIDs: tags})
			return err
		}
		cost := func(do func() error) (statements, trips int) {
			require.NoError(t, do(), name) // what a connection learns of a statement
			u.counted.Reset()
			require.NoError(t, do(), name)
			statements, trips, _ = u.counted.Counted()
			return statements, trips
		}
		statements, trips := cost(func() error { return create(ctx) })
		keyed, keyedTrips := cost(func() error { return u.once(ctx, create) })
		require.Equal(t, []int{statements + 3, trips}, []int{keyed, keyedTrips}, name)
	}
}

// cost is what a use case asks of the database: whoever adds a statement or a round trip changes
// the number here on purpose.
type cost struct {
	name              string
	statements, trips int
	do                func() error
}

func (u *useCases) hold(t *testing.T, costs []cost) {
	t.Helper()
	for _, c := range costs {
		// What a connection learns of a statement when it first sees it is no cost of each.
		require.NoError(t, c.do(), c.name)
		u.counted.Reset()
		require.NoError(t, c.do(), c.name)
		statements, trips, texts := u.counted.Counted()
		require.Equal(t, []int{c.statements, c.trips}, []int{statements, trips}, "%s:\n%s", c.name, strings.Join(texts, "\n"))
	}
}

func TestAReadAsksTheDatabaseSoOften(t *testing.T) {
	t.Parallel()
	u, ctx := newUseCases(t)
	posts := func(q feedback.PostQuery) func() error {
		return func() error { _, err := u.feedback.Posts(ctx, u.board, q); return err }
	}
	text := func(s string) *string { return &s }
	_, err := u.feedback.CreatePost(ctx, u.board, feedback.NewPost{Title: "In the feed"})
	require.NoError(t, err)
	u.hold(t, []cost{
		{"list posts", 1, 1, posts(feedback.PostQuery{})},
		{"list posts by votes", 1, 1, posts(feedback.PostQuery{Sort: text("votes")})},
		{"list posts of a status", 1, 1, posts(feedback.PostQuery{Statuses: &[]string{"open"}})},
		{"list posts of a contact", 1, 1, posts(feedback.PostQuery{ContactID: text(u.contact.String())})},
		{"list posts with a tag", 2, 2, posts(feedback.PostQuery{TagIDs: &[]string{u.tag.String()}})},
		{"list posts where none are found", 2, 2, posts(feedback.PostQuery{Statuses: &[]string{"shipped"}})},
		{"get a post", 1, 1, func() error { _, err := u.feedback.Post(ctx, u.posts[0]); return err }},
		{"search a word of titles", 1, 1, posts(feedback.PostQuery{Q: text("export")})},
		{"search a word of texts", 2, 2, posts(feedback.PostQuery{Q: text("pdf")})},
		{"search a word, newest first", 1, 1, posts(feedback.PostQuery{Q: text("pdf"), Sort: text("newest")})},
		{"list the posts of a contact", 1, 1, func() error {
			_, err := u.feedback.ContactPosts(ctx, u.contact, page.Query{})
			return err
		}},
		{"list contacts", 1, 1, func() error { _, err := u.contacts.Contacts(ctx, contacts.ContactQuery{}); return err }},
		{"read the feed", 3, 3, func() error { _, err := u.webhooks.Events(ctx, webhooks.FeedQuery{}); return err }},
		{"look for the next event", 1, 1, func() error {
			_, err := u.webhooks.Events(ctx, webhooks.FeedQuery{After: new(u.lastEvent(ctx))})
			return err
		}},
		{"look for changed posts", 2, 2, func() error {
			_, err := u.feedback.AllPosts(ctx, feedback.PostQuery{Sync: page.Sync{UpdatedSince: new(time.Unix(0, 0))}})
			return err
		}},
		{"look for changed and deleted posts", 3, 3, func() error {
			_, err := u.feedback.Posts(ctx, u.board, feedback.PostQuery{Sync: page.Sync{IncludeDeleted: new(true)}})
			return err
		}},
		{"list comments", 2, 2, func() error { _, err := u.feedback.Comments(ctx, u.posts[0], page.Query{}, page.Sync{}); return err }},
	})
}

func TestAChangeAsksTheDatabaseSoOften(t *testing.T) {
	t.Parallel()
	u, ctx := newUseCases(t)
	made := 0
	fresh := func(what string) string { made++; return fmt.Sprint(what, " ", made) }
	voter := func() context.Context {
		member := u.client.User.Create().SetEmail(fresh("member") + "@example.com").SetName("x").SaveX(ctx)
		u.counted.Reset()
		return change.WithCaller(ctx, &change.Caller{Organization: u.caller.Organization, User: member})
	}
	u.hold(t, []cost{
		// With BEGIN and COMMIT, and who subscribes.
		{"create a post", 5, 2, func() error {
			_, err := u.feedback.CreatePost(ctx, u.board, feedback.NewPost{Title: fresh("post")})
			return err
		}},
		{"create a post with a tag", 8, 8, func() error {
			_, err := u.feedback.CreatePost(ctx, u.board, feedback.NewPost{Title: fresh("tagged"), TagIDs: []string{u.tag.String()}})
			return err
		}},
		{"create a post whose slug is taken", 13, 10, func() error {
			_, err := u.feedback.CreatePost(ctx, u.board, feedback.NewPost{Title: "Taken"})
			return err
		}},
		{"vote", 6, 2, func() error {
			_, err := u.feedback.CastVote(voter(), u.posts[1], contacts.Person{})
			return err
		}},
		{"vote again", 5, 2, func() error { _, err := u.feedback.CastVote(ctx, u.posts[0], contacts.Person{}); return err }},
		{"vote of a contact", 9, 9, func() error {
			who := u.client.Contact.Create().SetMetadata(json.RawMessage(`{}`)).SetSource("admin").SetConsentBasis("admin_created").SaveX(ctx).ID
			u.counted.Reset()
			_, err := u.feedback.CastVote(ctx, u.posts[1], contacts.Person{ID: new(who.String())})
			return err
		}},
		{"comment", 5, 2, func() error {
			_, err := u.feedback.CreateComment(ctx, u.posts[0], feedback.NewComment{Body: feedback.Body{Text: "x"}})
			return err
		}},
		{"comment of a contact", 9, 9, func() error {
			by := contacts.Person{ID: new(u.contact.String())}
			_, err := u.feedback.CreateComment(ctx, u.posts[0], feedback.NewComment{Body: feedback.Body{Text: "x"}, By: by})
			return err
		}},
	})
}

// The count of an organization's events is locked from the first event to the commit, and all of
// its changes wait for that.
func TestNothingIsDoneBetweenTheFirstEventAndTheCommit(t *testing.T) {
	t.Parallel()
	u, ctx := newUseCases(t)
	u.counted.Reset()
	_, err := u.feedback.CastVote(ctx, u.posts[1], contacts.Person{ExternalUserID: new("new"), Create: true})
	require.NoError(t, err)
	_, _, texts := u.counted.Counted()
	first := slices.IndexFunc(texts, func(s string) bool { return strings.HasPrefix(s, `INSERT INTO "events"`) })
	require.Positive(t, first)
	for _, text := range texts[first:] {
		require.Regexp(t, `^(INSERT INTO "(events|deliveries)"|SELECT .* FROM "webhooks"|commit)`, text, strings.Join(texts, "\n"))
	}
}

func TestAnIdentifyAsksTheDatabaseSoOften(t *testing.T) {
	t.Parallel()
	u, ctx := newUseCases(t)
	made, learned := 0, 0
	fresh := func(what string) string { made++; return fmt.Sprint(what, " ", made) }
	identify := func(id string) error { _, _, err := u.contacts.IdentifyContact(ctx, id, contacts.Traits{}); return err }
	identifyAs := func(id string, n int) error {
		traits := contacts.Traits{Metadata: json.RawMessage(fmt.Sprintf(`{"%d":1}`, n))}
		_, _, err := u.contacts.IdentifyContact(ctx, id, traits)
		return err
	}
	batch := func(name string, of int) error {
		items := make([]contacts.Identification, of)
		for i := range items {
			items[i].ExternalUserID = fmt.Sprint(name, " ", i)
			items[i].Traits.Metadata = json.RawMessage(fmt.Sprintf(`{"%d":1}`, learned))
			if learned == 0 {
				items[i].Traits.Metadata = nil
			}
		}
		_, err := u.contacts.IdentifyContacts(ctx, items, nil)
		return err
	}
	u.hold(t, []cost{
		{"identify a contact that is known", 1, 1, func() error { return identify("known") }},
		{"identify a contact that is new", 5, 3, func() error { return identify(fresh("new")) }},
		{"identify a contact that is new after many that were", 4, 2, func() error {
			for range 50 {
				if err := identify(fresh("new")); err != nil {
					return err
				}
			}
			u.counted.Reset()
			return identify(fresh("new"))
		}},
		{"identify 50 contacts that are known", 1, 1, func() error {
			for range 2 { // the first one inserts them, the second one learns that nobody is imported
				if err := batch("known", 50); err != nil {
					return err
				}
			}
			u.counted.Reset()
			return batch("known", 50)
		}},
		{"identify 50 contacts that are known and learn something", 7, 4, func() error { learned++; return batch("known", 50) }},
		{"identify a contact that learns something", 7, 4, func() error { learned++; return identifyAs("known", learned) }},
		{"identify 50 contacts that are new", 4, 2, func() error {
			learned = 0
			return batch(fresh("some"), 50)
		}},
	})
}

// Pages and single rows are read without Ent, so what they have is held against Ent's form.
func TestAPageHasWhatEntReads(t *testing.T) {
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
