package store_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/user"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// rows are the ids of the rows that seed makes for one organization: at least one row of each table,
// with every reference set.
type rows struct {
	ctx context.Context // the organization's
	n   int             // makes values that must be unique

	organization publicid.Organization
	user         publicid.User
	key          publicid.APIKey
	board        publicid.Board
	tag          publicid.Tag
	contact      publicid.Contact
	post, target publicid.Post // post was merged into target
	postTag      uuid.UUID
	vote         publicid.Vote
	comment      publicid.Comment // has a reply
	reply        publicid.Comment
	entry        publicid.ChangelogEntry
	link         uuid.UUID
	webhook      publicid.Webhook
	event        publicid.Event
	delivery     publicid.Delivery // was replayed
	replay       publicid.Delivery
	attempt      publicid.Attempt
}

var seeds atomic.Int32

// system is the context of a test that reads the rows of all organizations.
func system(t *testing.T) context.Context {
	t.Helper()
	return store.System(t.Context(), "test")
}

// newOrganization makes an organization and a context for it.
func newOrganization(t *testing.T, s *store.Store) (context.Context, publicid.Organization) {
	t.Helper()
	o, err := s.Client().Organization.Create().SetName("Acme").Save(system(t))
	require.NoError(t, err)
	return store.WithOrganization(t.Context(), o.ID), o.ID
}

// seed fills every table for a new organization. It never names the organization of the rows.
func seed(t *testing.T, s *store.Store) *rows {
	t.Helper()
	r := &rows{n: int(seeds.Add(1))}
	r.ctx, r.organization = newOrganization(t, s)
	c := s.Client()
	r.user = c.User.Create().SetEmail("owner@example.com").SetName("Olive Owner").SetRole(user.RoleOwner).SaveX(r.ctx).ID
	r.key = c.APIKey.Create().SetUserID(r.user).SetName("ci").SetHash(r.user.UUID().NodeID()).
		SetPrefix("esk_12345678").SetScope(apikey.ScopeRead).SaveX(r.ctx).ID
	r.seedFeedback(c)
	r.seedDeliveries(c)
	_, err := s.TakeFirstMailSlot(r.ctx, []byte("hash"), 1)
	require.NoError(t, err)
	tx, err := c.Tx(r.ctx)
	require.NoError(t, err)
	require.NoError(t, store.NoteSpelling(r.ctx, tx, r.organization, store.Spelled{EmailHash: []byte("hash"), Mailbox: []byte("mailbox")}))
	require.NoError(t, tx.Commit())
	key := store.IdempotencyKey{ID: sha256.Sum256([]byte(r.organization.String()))}
	_, err = s.InTxWithRides(r.ctx, r.organization, []store.IdempotencyKey{key}, func(*db.Tx, store.TakenKeys) (store.AtCommit, error) {
		return store.AtCommit{Answers: []store.KeptAnswer{{Key: key, Status: http.StatusOK, Answer: []byte("sealed")}}}, nil
	})
	require.NoError(t, err)
	return r
}

func (r *rows) seedFeedback(c *db.Client) {
	unique := func(name string) string { return fmt.Sprintf("%s-%d", name, r.n) }
	r.board = c.Board.Create().SetName("Ideas").SetSlug("ideas").SaveX(r.ctx).ID
	c.Interaction.Create().SetTokenHash([]byte(unique("token"))).SetEmailHash([]byte("hash")).SetContentSealed([]byte("sealed")).ExecX(r.ctx)
	c.Logo.Create().SetMediaType("image/png").SetContent([]byte("png")).ExecX(r.ctx)
	c.Subscription.Create().SetEmailHash([]byte("hash")).ExecX(r.ctx)
	c.SubscriberMail.Create().SetDigestID(uuid.New()).SetEmailHash([]byte("hash")).ExecX(r.ctx)
	c.WidgetSecret.Create().SetSecretSealed([]byte("sealed")).ExecX(r.ctx)
	c.WordList.Create().SetWords([]string{"casino"}).ExecX(r.ctx)
	r.tag = c.Tag.Create().SetBoardID(r.board).SetName("UI").SetNameKey(unique("ui")).SetColor("#112233").SaveX(r.ctx).ID
	// The deletion of this contact leaves a tombstone.
	c.Contact.DeleteOne(c.Contact.Create().SetMetadata(json.RawMessage(`{}`)).SetSource("admin").SetConsentBasis("admin_created").
		SaveX(r.ctx)).ExecX(r.ctx)
	r.contact = c.Contact.Create().SetExternalUserID("acct-1").SetName("Ada").SetMetadata(json.RawMessage(`{}`)).
		SetMrrCents(4900).SetCurrency("EUR").SetSource("identify").SetConsentBasis("sdk_identify").SaveX(r.ctx).ID
	post := func(slug string) *db.PostCreate {
		return c.Post.Create().SetBoardID(r.board).SetTitle(slug).SetSlug(unique(slug)).SetContactID(r.contact).SetAuthorUserID(r.user)
	}
	r.target = post("target").SaveX(r.ctx).ID
	r.post = post("source").SetMergedIntoID(r.target).SaveX(r.ctx).ID
	r.postTag = c.PostTag.Create().SetPostID(r.post).SetTagID(r.tag).SaveX(r.ctx).ID
	r.vote = c.Vote.Create().SetPostID(r.post).SetUserID(r.user).SetContactID(r.contact).SaveX(r.ctx).ID
	r.comment = c.Comment.Create().SetPostID(r.post).SetAuthorUserID(r.user).SaveX(r.ctx).ID
	r.reply = c.Comment.Create().SetPostID(r.post).SetAuthorUserID(r.user).SetParentID(r.comment).SaveX(r.ctx).ID
	c.Submission.Create().SetKind("comment").SetReason("moderated").SetBoardID(r.board).SetPostID(r.post).SetBodyText("Me too").
		SetEmailHash([]byte("hash")).SetPersonSealed([]byte("sealed")).ExecX(r.ctx)
	r.entry = c.ChangelogEntry.Create().SetBoardID(r.board).SetTitle("v1").SetSlug(unique("v1")).SaveX(r.ctx).ID
	c.SubscriberUpdate.Create().SetEntryID(r.entry).ExecX(r.ctx)
	r.link = c.ChangelogLink.Create().SetEntryID(r.entry).SetPostID(r.post).SetPosition(0).SaveX(r.ctx).ID
}

func (r *rows) seedDeliveries(c *db.Client) {
	r.webhook = c.Webhook.Create().SetURL("https://example.com/hook").SetEvents([]string{"post.created"}).
		SetSecretSealed([]byte("sealed")).SaveX(r.ctx).ID
	r.event = c.Event.Create().SetType("post.created").SetPayload([]byte(`{"event":"post.created"}`)).SaveX(r.ctx).ID
	delivery := func() *db.DeliveryCreate {
		return c.Delivery.Create().SetWebhookID(r.webhook).SetEventID(r.event).SetEventType("post.created")
	}
	r.delivery = delivery().SaveX(r.ctx).ID
	r.replay = delivery().SetReplayOf(r.delivery).SaveX(r.ctx).ID
	r.attempt = c.Attempt.Create().SetDeliveryID(r.delivery).SetNumber(r.n).SetStartedAt(time.Unix(1_700_000_000, 0)).
		SetDurationMs(12).SaveX(r.ctx).ID
	c.Recovery.Create().SetStatus("completed").SetWebhookID(r.webhook).SetPosition(r.delivery).
		SetSince(time.Unix(1_700_000_000, 0)).SetUntil(time.Unix(1_700_000_060, 0)).ExecX(r.ctx)
	request := c.SubjectRequest.Create().SetKind("export").SetContactID(r.contact).SetStage("posts").SetPosition(r.post.UUID()).SaveX(r.ctx)
	c.SubjectRecord.Create().SetRequestID(request.ID).SetKind("contact").SetItemID(r.contact.UUID()).SetSealed([]byte("sealed")).ExecX(r.ctx)
	backfill := c.ContactBackfill.Create().SetActiveBefore(time.Unix(1_700_000_000, 0)).SetAddresses(1).SaveX(r.ctx)
	c.BackfillAddress.Create().SetBackfillID(backfill.ID).SetEmailHash([]byte("hash")).SetSealed([]byte("sealed")).ExecX(r.ctx)
	c.AuditEntry.Create().SetUserID(r.user).SetAPIKeyID(r.key).SetAction("createBoard").SetResourceKind("board").
		SetResourceID(r.board.String()).ExecX(r.ctx)
}
