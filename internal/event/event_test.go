package event_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
)

// parse reads the public id of an example.
func parse[T any, P interface {
	*T
	UnmarshalText([]byte) error
}](text string) T {
	id, err := publicid.Parse[T, P](text)
	if err != nil {
		panic(err)
	}
	return id
}

var (
	organization = parse[publicid.Organization]("org_01keee2dtpecdt9gxx2fc2wdz9")
	board        = event.BoardHead{BoardID: parse[publicid.Board]("brd_01kes98wr5ese9pysevh1fbnaz")}
	member       = parse[publicid.User]("usr_01keee2dtse16839j67pjda81z")
	post         = event.Post{
		ID:        parse[publicid.Post]("pst_01kkgt5hn1fpnv5e78weftw0p1"),
		Title:     "Export dashboards as PDF",
		Slug:      "export-dashboards-as-pdf",
		Status:    "open",
		CreatedAt: at("2026-03-12T10:41:07.233Z"),
	}
	contact = event.Contact{
		ID:             parse[publicid.Contact]("ctc_01kkgt1eawez4varc6y4t8d910"),
		ExternalUserID: new("acct-8412"),
		Email:          new("ines.marques@example.com"),
		Name:           new("Inês Marques"),
		Plan:           new("team"),
		MRRCents:       new(int64(4900)),
		Currency:       new("EUR"),
		Source:         "identify",
		ConsentBasis:   "sdk_identify",
		Metadata:       json.RawMessage(`{"seats":12,"role":"analyst"}`),
		FirstSeenAt:    at("2026-03-12T10:38:52.764Z"),
		LastSeenAt:     at("2026-03-14T08:00:03Z"),
		CreatedAt:      at("2026-03-12T10:38:52.764Z"),
		UpdatedAt:      at("2026-03-20T14:27:36.905001Z"),
	}
)

func at(text string) time.Time {
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return moment
}

const (
	headText    = `"organizationId":"org_01keee2dtpecdt9gxx2fc2wdz9"`
	boardText   = headText + `,"boardId":"brd_01kes98wr5ese9pysevh1fbnaz"`
	postText    = `"post":{"id":"pst_01kkgt5hn1fpnv5e78weftw0p1","title":"Export dashboards as PDF","slug":"export-dashboards-as-pdf","status":"open","createdAt":"2026-03-12T10:41:07.233Z"}`
	contactText = `"contact":{"id":"ctc_01kkgt1eawez4varc6y4t8d910","externalUserId":"acct-8412","email":"ines.marques@example.com","name":"Inês Marques","plan":"team","mrrCents":4900,"currency":"EUR","source":"identify","consentBasis":"sdk_identify","metadata":{"seats":12,"role":"analyst"},"firstSeenAt":"2026-03-12T10:38:52.764Z","lastSeenAt":"2026-03-14T08:00:03Z","createdAt":"2026-03-12T10:38:52.764Z","updatedAt":"2026-03-20T14:27:36.905001Z"}`
)

// frozen has, for each event, a payload and the exact bytes that receivers get. The keys are those
// of the specification, "Payload shapes", in its order.
var frozen = []struct {
	name    string
	of      event.Type
	payload event.Payload
	text    string
}{
	{
		"a post", event.PostCreated,
		&event.PostCreatedPayload{BoardHead: board, Post: post},
		`{"event":"post.created",` + boardText + `,` + postText + `}`,
	},
	{
		"a status", event.PostStatusChanged,
		&event.PostStatusChangedPayload{BoardHead: board, Post: post, PreviousStatus: "in_progress"},
		`{"event":"post.status_changed",` + boardText + `,` + postText + `,"previousStatus":"in_progress"}`,
	},
	{
		"a member's vote", event.VoteCreated,
		&event.VoteCreatedPayload{BoardHead: board, Vote: event.Vote{
			ID: parse[publicid.Vote]("vot_01kkgvd8tkfkr9k70x6txpt85e"), PostID: post.ID, UserID: &member, CreatedAt: post.CreatedAt,
		}},
		`{"event":"vote.created",` + boardText + `,"vote":{"id":"vot_01kkgvd8tkfkr9k70x6txpt85e","postId":"pst_01kkgt5hn1fpnv5e78weftw0p1","userId":"usr_01keee2dtse16839j67pjda81z","createdAt":"2026-03-12T10:41:07.233Z"}}`,
	},
	{
		"an anonymous vote", event.VoteCreated,
		&event.VoteCreatedPayload{BoardHead: board, Vote: event.Vote{
			ID: parse[publicid.Vote]("vot_01kkgvd8tkfkr9k70x6txpt85e"), PostID: post.ID, CreatedAt: post.CreatedAt,
		}},
		`{"event":"vote.created",` + boardText + `,"vote":{"id":"vot_01kkgvd8tkfkr9k70x6txpt85e","postId":"pst_01kkgt5hn1fpnv5e78weftw0p1","userId":null,"createdAt":"2026-03-12T10:41:07.233Z"}}`,
	},
	{
		"a top-level comment", event.CommentCreated,
		&event.CommentCreatedPayload{BoardHead: board, Comment: event.Comment{
			ID: parse[publicid.Comment]("cmt_01kkgwz22weqdtd7kb766kfw50"), PostID: post.ID, AuthorUserID: member,
			BodyText: "A4, in landscape.", CreatedAt: post.CreatedAt,
		}},
		`{"event":"comment.created",` + boardText + `,"comment":{"id":"cmt_01kkgwz22weqdtd7kb766kfw50","postId":"pst_01kkgt5hn1fpnv5e78weftw0p1","parentId":null,"authorUserId":"usr_01keee2dtse16839j67pjda81z","bodyText":"A4, in landscape.","createdAt":"2026-03-12T10:41:07.233Z"}}`,
	},
	{
		"a reply", event.CommentCreated,
		&event.CommentCreatedPayload{BoardHead: board, Comment: event.Comment{
			ID: parse[publicid.Comment]("cmt_01kkgxaktkf5q8hdmkddsqxwth"), PostID: post.ID, AuthorUserID: member,
			ParentID: new(parse[publicid.Comment]("cmt_01kkgwz22weqdtd7kb766kfw50")),
			BodyText: "Both!\n", CreatedAt: post.CreatedAt,
		}},
		`{"event":"comment.created",` + boardText + `,"comment":{"id":"cmt_01kkgxaktkf5q8hdmkddsqxwth","postId":"pst_01kkgt5hn1fpnv5e78weftw0p1","parentId":"cmt_01kkgwz22weqdtd7kb766kfw50","authorUserId":"usr_01keee2dtse16839j67pjda81z","bodyText":"Both!\n","createdAt":"2026-03-12T10:41:07.233Z"}}`,
	},
	{
		"an entry", event.ChangelogPublished,
		&event.ChangelogPublishedPayload{BoardHead: board, Entry: event.Entry{
			ID:    parse[publicid.ChangelogEntry]("chg_01kn6je530fb2rsmvpgrsf92p9"),
			Title: "Dashboards leave the building", Slug: "dashboards-leave-the-building", PublishedAt: at("2026-04-02T08:00:00Z"),
		}},
		`{"event":"changelog.published",` + boardText + `,"entry":{"id":"chg_01kn6je530fb2rsmvpgrsf92p9","title":"Dashboards leave the building","slug":"dashboards-leave-the-building","publishedAt":"2026-04-02T08:00:00Z"}}`,
	},
	{
		"a contact", event.ContactCreated,
		&event.ContactCreatedPayload{Contact: contact},
		`{"event":"contact.created",` + headText + `,` + contactText + `}`,
	},
	{
		"a contact without traits", event.ContactCreated,
		&event.ContactCreatedPayload{Contact: event.Contact{
			ID: contact.ID, Source: "admin", ConsentBasis: "admin_created", Metadata: json.RawMessage(`{}`),
			FirstSeenAt: post.CreatedAt, LastSeenAt: post.CreatedAt, CreatedAt: post.CreatedAt, UpdatedAt: post.CreatedAt,
		}},
		`{"event":"contact.created",` + headText + `,"contact":{"id":"ctc_01kkgt1eawez4varc6y4t8d910","externalUserId":null,"email":null,"name":null,"plan":null,"mrrCents":null,"currency":null,"source":"admin","consentBasis":"admin_created","metadata":{},"firstSeenAt":"2026-03-12T10:41:07.233Z","lastSeenAt":"2026-03-12T10:41:07.233Z","createdAt":"2026-03-12T10:41:07.233Z","updatedAt":"2026-03-12T10:41:07.233Z"}}`,
	},
	{
		"a contact's traits", event.ContactUpdated,
		&event.ContactUpdatedPayload{Contact: contact, Changes: map[string]event.Change{
			"plan":     {From: nil, To: "team"},
			"mrrCents": {From: int64(0), To: int64(4900)},
			"metadata": {From: json.RawMessage(`{"seats":12}`), To: contact.Metadata},
		}},
		`{"event":"contact.updated",` + headText + `,` + contactText + `,"changes":{"metadata":{"from":{"seats":12},"to":{"seats":12,"role":"analyst"}},"mrrCents":{"from":0,"to":4900},"plan":{"from":null,"to":"team"}}}`,
	},
	{
		"a contact that is gone", event.ContactDeleted,
		&event.ContactDeletedPayload{Contact: event.DeletedContact{ID: contact.ID, ExternalUserID: contact.ExternalUserID}},
		`{"event":"contact.deleted",` + headText + `,"contact":{"id":"ctc_01kkgt1eawez4varc6y4t8d910","externalUserId":"acct-8412"}}`,
	},
	{
		"a contact that is gone and had no id of the caller's", event.ContactDeleted,
		&event.ContactDeletedPayload{Contact: event.DeletedContact{ID: contact.ID}},
		`{"event":"contact.deleted",` + headText + `,"contact":{"id":"ctc_01kkgt1eawez4varc6y4t8d910","externalUserId":null}}`,
	},
	{
		"a test", event.WebhookTest,
		&event.WebhookTestPayload{Webhook: event.Webhook{
			ID: parse[publicid.Webhook]("whk_01kghp07asfkf9nsgqpjfrpzam"), CreatedAt: at("2026-02-03T12:00:27.481Z"),
		}},
		`{"event":"webhook.test",` + headText + `,"webhook":{"id":"whk_01kghp07asfkf9nsgqpjfrpzam","createdAt":"2026-02-03T12:00:27.481Z"}}`,
	},
}

func TestEveryPayloadHasTheBytesOfTheSpecification(t *testing.T) {
	t.Parallel()
	for _, f := range frozen {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			text, err := event.Freeze(f.of, organization, f.payload)
			require.NoError(t, err)
			require.Equal(t, f.text, string(text))
		})
	}
}

func TestTheFirstBytesOfEachPayloadHaveTheIDOfItsSubject(t *testing.T) {
	t.Parallel()
	for _, f := range frozen {
		_, rest, _ := strings.Cut(f.text, `:{"id":"`)
		require.Equal(t, rest[:30], event.Subject([]byte(f.text)), f.name)
		require.Equal(t, rest[:30], event.Subject([]byte(f.text[:min(len(f.text), event.SubjectBytes)])), f.name)
	}
	require.Empty(t, event.Subject(nil))
}

func TestAnErasedPayloadHasTheSameMembersAndNothingOfThePersonButItsID(t *testing.T) {
	t.Parallel()
	var members func(value any) any
	members = func(value any) any {
		if object, ok := value.(map[string]any); ok {
			names := map[string]any{}
			for name, inner := range object {
				if name != "metadata" && name != "from" && name != "to" {
					names[name] = members(inner)
				}
			}
			return names
		}
		return nil
	}
	for _, f := range frozen {
		out, err := event.Erase(f.of, []byte(f.text))
		require.NoError(t, err)
		again, err := event.Erase(f.of, out)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again), "twice is once")
		var before, after any
		require.NoError(t, json.Unmarshal([]byte(f.text), &before))
		require.NoError(t, json.Unmarshal(out, &after))
		require.Equal(t, members(before), members(after), f.name)
		require.Equal(t, event.Subject([]byte(f.text)), event.Subject(out), f.name)
		if f.of == event.ContactDeleted {
			require.Equal(t, f.text, string(out), "receivers delete by it")
			continue
		}
		for _, known := range []string{"ines", "Marques", "acct-8412", "team", "4900", "EUR", "analyst", "dashboards as PDF", "dashboards-as-pdf", "landscape", "Both"} {
			require.NotContains(t, string(out), known, f.name)
		}
	}
	_, err := event.Erase(event.ContactCreated, []byte(`{"contact":"ines"}`))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "ines")
}

func TestEveryEventOfTheCatalogueHasAPayload(t *testing.T) {
	t.Parallel()
	var shown []event.Type
	for _, f := range frozen {
		if len(shown) == 0 || shown[len(shown)-1] != f.of {
			shown = append(shown, f.of)
		}
	}
	require.Equal(t, event.Delivered, shown)
}

func TestTheCatalogueIsTheSpecifications(t *testing.T) {
	t.Parallel()
	require.Equal(t, []event.Type{
		"post.created", "post.status_changed", "vote.created", "comment.created",
		"changelog.published", "contact.created", "contact.updated", "contact.deleted",
	}, event.Types)
	require.NotContains(t, event.Types, event.WebhookTest, "nobody can subscribe to it")
}

func TestNumbersBeyondADoublesPrecisionStayExact(t *testing.T) {
	t.Parallel()
	const numbers = `{"big":9007199254740993,"huge":123456789012345678901234567890,"long":0.10000000000000000000001,"exponent":1E400,"zero":-0}`
	c := contact
	c.Metadata = json.RawMessage(numbers)
	text, err := event.Freeze(event.ContactUpdated, organization, &event.ContactUpdatedPayload{
		Contact: c, Changes: map[string]event.Change{"metadata": {From: json.RawMessage(`{}`), To: c.Metadata}},
	})
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(text, []byte(numbers)))
}

// The delivery log shows the payload inside a document of its own. The encoder of this document
// must neither undo nor repeat the escapes, so that the log shows the signed bytes.
func TestAFrozenPayloadIsTheSameInsideAnotherDocument(t *testing.T) {
	t.Parallel()
	p := post
	p.Title = "<b>Q&A</b> \u2028\u2029 \"\\ \x00 \xff é 😀"
	c := contact
	c.Metadata = json.RawMessage(`{"<b>":"&\u003c\/","sep":"` + "\u2028" + `"}`)
	for _, payload := range []event.Payload{
		&event.PostCreatedPayload{BoardHead: board, Post: p}, &event.ContactCreatedPayload{Contact: c},
	} {
		text, err := event.Freeze(event.PostCreated, organization, payload)
		require.NoError(t, err)
		for _, escape := range []bool{true, false} {
			var out bytes.Buffer
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(escape)
			require.NoError(t, encoder.Encode(map[string]json.RawMessage{"payload": text}))
			require.Equal(t, `{"payload":`+string(text)+"}\n", out.String())
		}
	}
}

func TestMarkupIsEscapedTheSameWayInEveryVersion(t *testing.T) {
	t.Parallel()
	p := post
	p.Title = "<b>Q&A</b>\u2028é😀"
	text, err := event.Freeze(event.PostCreated, organization, &event.PostCreatedPayload{BoardHead: board, Post: p})
	require.NoError(t, err)
	require.Contains(t, string(text), `"title":"\u003cb\u003eQ\u0026A\u003c/b\u003e\u2028é😀"`)
}

func TestThePayloadOfOneOrganizationNeverNamesAnother(t *testing.T) {
	t.Parallel()
	other := publicid.NewOrganization()
	text, err := event.Freeze(event.PostCreated, organization, &event.PostCreatedPayload{
		BoardHead: event.BoardHead{Head: event.Head{Event: event.VoteCreated, OrganizationID: other}, BoardID: board.BoardID},
		Post:      post,
	})
	require.NoError(t, err)
	require.Equal(t, frozen[0].text, string(text))
}

func TestAPayloadThatIsNoJSONIsNotFrozen(t *testing.T) {
	t.Parallel()
	c := contact
	c.Metadata = json.RawMessage(`{"seats":`)
	_, err := event.Freeze(event.ContactCreated, organization, &event.ContactCreatedPayload{Contact: c})
	require.ErrorContains(t, err, "encode the payload")
}
