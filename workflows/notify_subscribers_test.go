package workflows_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/contacts"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAParticipantGetsOneEmailAboutAllChangesInTenMinutes(t *testing.T) {
	t.Parallel()
	p := newMailedTenant(t, working.Start(t))
	writer := p.ID(t, "/v1/contacts/identify", fields{"externalUserId": "w", "email": "writer@example.com"})
	own := p.newPost(t, fields{"title": "Export to CSV", "contactId": writer})
	p.votes(t, "voter@example.com", p.post, "en")
	p.votes(t, "voter@example.com", own, "en")
	p.acts(t, "commenter@example.com", publicactions.Wanted{
		Kind: publicactions.Comment, Post: publicid.Read[publicid.Post](own), Text: "Yes", OptIn: true, Language: "de",
	})
	p.votes(t, "nobody@example.com", p.newPost(t, fields{"title": "Something else"}), "en")

	p.moves(t, own, "planned")
	p.moves(t, own, "in_progress")
	p.moves(t, p.post, "shipped")
	p.passes(t)
	p.isTold(t)

	all := p.letters(t)
	require.Len(t, all, 3)
	for _, of := range all {
		require.Len(t, of, 1, "one e-mail a person")
	}
	voter := all["voter@example.com"][0]
	require.Equal(t, "What’s new at Acme", voter.subject(t))
	for _, body := range []string{voter.text, voter.html} {
		require.Contains(t, body, "In progress")
		require.NotContains(t, body, "Planned", "a status that changed twice is told once")
		require.Contains(t, body, "Shipped")
		require.Contains(t, body, origin+"/b/"+*p.Organization.Slug+"/ideas/export-to-csv")
	}
	require.Equal(t, "Acme – In progress", all["writer@example.com"][0].subject(t))
	german := all["commenter@example.com"][0]
	require.Equal(t, "Acme – In Arbeit", german.subject(t), "in the language of the page")
	require.Contains(t, german.html, `<html lang="de">`)
	require.Contains(t, voter.html, `color-scheme" content="light dark"`)
	require.Contains(t, voter.html, "border-top-color: #ff8800")
	require.NotContains(t, voter.html, "<img")
	require.Contains(t, voter.Get("Message-ID"), "<sml_")
	require.NotEqual(t, voter.unsubscribe(t), german.unsubscribe(t))
	kept := historyOf(t, p.app.Temporal, p.Organization.ID.String())
	for _, secret := range []string{"example.com", "Quentin", "Dark mode"} {
		require.NotContains(t, kept, secret)
	}
}

func TestARevertedStatusOrAnUnavailablePostCausesNoEMail(t *testing.T) {
	t.Parallel()
	p := newMailedTenant(t, working.Start(t))
	posts := map[string]string{}
	for _, title := range []string{"back", "merged", "deleted"} {
		posts[title] = p.newPost(t, fields{"title": title})
		p.votes(t, "voter@example.com", posts[title], "en")
		p.moves(t, posts[title], "planned")
	}
	hidden := p.ID(t, "/v1/boards", fields{"name": "Hidden", "public": true})
	secret := p.ID(t, "/v1/boards/"+hidden+"/posts", fields{"title": "secret"})
	p.votes(t, "voter@example.com", secret, "en")
	p.Make(t, http.MethodPatch, "/v1/boards/"+hidden, fields{"public": false})
	p.moves(t, secret, "planned")
	p.moves(t, posts["back"], "open")
	p.Make(t, http.MethodPost, "/v1/posts/"+p.post+"/merge", fields{"sourceIds": []string{posts["merged"]}})
	require.Equal(t, http.StatusOK, p.Do(t, http.MethodDelete, "/v1/posts/"+posts["deleted"], nil).Status)
	p.passes(t)
	p.isTold(t)
	require.Empty(t, p.letters(t))
}

func TestAPersonWithoutConsentOrAfterUnsubscribingIsNeverMailed(t *testing.T) {
	t.Parallel()
	p := newMailedTenant(t, working.Start(t))
	p.ID(t, "/v1/contacts", fields{"email": "admin@example.com"})
	p.app.Store.Client().Contact.Create().SetEmail("legacy@example.com").
		SetEmailHash(contacts.HashEmail(p.app.Config.EmailHashKey, "legacy@example.com")).SetMetadata(json.RawMessage("{}")).
		SetSource("public_vote").SetConsentBasis("legacy_inferred").ExecX(p.Context(t.Context()))
	bounced := "bounced-" + *p.Organization.Slug // an address that bounced is mailed by no organization
	for _, who := range []string{"legacy", "admin", "erased", "deleted", bounced, "away", "happy"} {
		p.votes(t, who+"@example.com", p.post, "en")
	}
	p.moves(t, p.post, "planned")
	// The changes below happen in the middle of the window.
	id := func(who string) string {
		var found publicid.Contact
		p.query(t, "SELECT id FROM contacts WHERE organization_id = $1 AND email = '"+who+"@example.com'", &found)
		return found.String()
	}
	require.Less(t, p.Do(t, http.MethodPost, "/v1/contacts/"+id("erased")+"/erase", fields{}).Status, 300)
	require.Equal(t, http.StatusOK, p.Do(t, http.MethodDelete, "/v1/contacts/"+id("deleted"), nil).Status)
	n, err := p.app.Subscribers.Bounced(t.Context(), []string{strings.ToUpper(bounced) + "@example.com "})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	p.run(t, `INSERT INTO subscriptions (id, organization_id, created_at, updated_at, email_hash, status_updates)
		SELECT gen_random_uuid(), organization_id, now(), now(), email_hash, false FROM contacts WHERE organization_id = $1 AND email LIKE 'away@%'
		ON CONFLICT (organization_id, email_hash) DO UPDATE SET status_updates = false`)
	p.passes(t)
	p.isTold(t)
	all := p.letters(t)
	require.Len(t, all, 1)
	require.Contains(t, all, "happy@example.com")
}

func TestSubscribersGetNoEMailUnlessTheOrganizationHasEnabledIt(t *testing.T) {
	t.Parallel()
	p := newMailedTenant(t, working.Start(t))
	p.votes(t, "voter@example.com", p.post, "en")
	p.moves(t, p.post, "planned")
	off := false
	_, err := p.app.Access.ArrangeOrganization(p.Context(t.Context()), access.OrganizationPatch{SubscriberMails: &off})
	require.NoError(t, err)
	p.passes(t)
	p.isTold(t)
	require.Empty(t, p.letters(t), "also where it is switched off in the middle of a window")
	other := p.app.Tenant(t)
	board := other.ID(t, "/v1/boards", fields{"name": "Ideas", "public": true})
	post := other.ID(t, "/v1/boards/"+board+"/posts", fields{"title": "Dark mode"})
	other.Make(t, http.MethodPatch, "/v1/posts/"+post, fields{"status": "planned"})
	require.Zero(t, (&mailedTenant{Tenant: other, app: p.app}).left(t))
}

func TestSubscribersGetNoEMailWithoutTheOperatorsPermission(t *testing.T) {
	t.Parallel()
	p := newMailedTenant(t, working.Start(t))
	p.votes(t, "voter@example.com", p.post, "en")
	p.moves(t, p.post, "planned")
	off := false
	_, err := p.app.Access.ArrangeOrganization(p.Context(t.Context()), access.OrganizationPatch{SubscriberMailsAllowed: &off})
	require.NoError(t, err)
	p.passes(t)
	p.isTold(t)
	require.Empty(t, p.letters(t), "also where the permission ends in the middle of a window")
	p.moves(t, p.post, "shipped")
	p.passes(t)
	p.isTold(t)
	require.Empty(t, p.letters(t))
}

func TestFirstEMailsToAddressesThatAProgramHasToldAreSentAtARateAndLaterOnesAreNot(t *testing.T) {
	t.Parallel()
	p := newMailedTenant(t, working.Start(t))
	// 99 other people had their first e-mail within the hour, so one slot is left.
	p.run(t, `INSERT INTO first_mails (organization_id, email_hash, slot_at)
		SELECT $1, uuid_send(gen_random_uuid()), now() FROM generate_series(1, 99)`)
	for _, who := range []string{"ada", "bo", "cy"} {
		contact := p.ID(t, "/v1/contacts/identify", fields{"externalUserId": who, "email": who + "@example.com"})
		p.Make(t, http.MethodPost, "/v1/posts/"+p.post+"/votes", fields{"contactId": contact})
	}
	p.votes(t, "opted-in@example.com", p.post, "en")
	p.moves(t, p.post, "planned")
	p.passes(t)
	require.Eventually(t, func() bool { return p.left(t) == 3 }, testkit.Wait, testkit.Tick)
	all := p.letters(t)
	require.Len(t, all, 2, "one stranger, and the one who agreed")
	require.Contains(t, all, "opted-in@example.com")
	require.Eventually(t, func() bool {
		var waiting int
		p.query(t, "SELECT count(*) FROM subscriber_mails WHERE organization_id = $1 AND due_at > now() + interval '59 minutes'", &waiting)
		return waiting == 2
	}, testkit.Wait, testkit.Tick)

	// The first e-mails are now an hour old, and the others a week. An e-mail that waited for its
	// turn must not expire.
	p.run(t, "UPDATE first_mails SET slot_at = slot_at - interval '61 minutes' WHERE organization_id = $1")
	p.run(t, "UPDATE subscriber_mails SET due_at = now(), created_at = created_at - interval '7 days' WHERE organization_id = $1")
	p.looks(t)
	p.isTold(t)
	require.Len(t, p.letters(t), 4, "nothing is lost")

	// All slots of this hour are taken, and these end-users need none.
	p.run(t, `INSERT INTO first_mails (organization_id, email_hash, slot_at)
		SELECT organization_id, uuid_send(gen_random_uuid()), now() FROM first_mails WHERE organization_id = $1 LIMIT 100`)
	p.moves(t, p.post, "shipped")
	p.passes(t)
	p.isTold(t)
	for who, letters := range p.letters(t) {
		require.Len(t, letters, 2, who)
	}
}

func TestAFollowerOfTheChangelogIsMailedAboutPublicEntriesOnly(t *testing.T) {
	t.Parallel()
	p := newMailedTenant(t, working.Start(t))
	p.votes(t, "follower@example.com", p.post, "en")
	p.votes(t, "voter@example.com", p.post, "en")
	p.run(t, `UPDATE subscriptions s SET changelog = true FROM contacts c WHERE c.email_hash = s.email_hash AND c.email LIKE 'follower@%' AND s.organization_id = $1 AND c.organization_id = $1`)
	quiet := p.ID(t, "/v1/boards", fields{"name": "Quiet", "public": true})
	p.Make(t, http.MethodPatch, "/v1/boards/"+quiet, fields{"showChangelog": false})
	now := time.Now().UTC().Format(time.RFC3339)
	night := p.ID(t, "/v1/boards/"+p.board+"/changelog", fields{"title": "Night is here", "version": "2.0", "publishedAt": now})
	p.Make(t, http.MethodPatch, "/v1/changelog/"+night, fields{"publishedAt": nil})
	p.Make(t, http.MethodPatch, "/v1/changelog/"+night, fields{"publishedAt": now})
	p.ID(t, "/v1/boards/"+quiet+"/changelog", fields{"title": "Nobody reads this", "publishedAt": now})
	p.passes(t)
	p.isTold(t)
	all := p.letters(t)
	require.Len(t, all, 1)
	got := all["follower@example.com"][0]
	require.Equal(t, "Acme – New in the changelog", got.subject(t))
	require.Contains(t, got.text, origin+"/b/"+*p.Organization.Slug+"/ideas/-/changelog/night-is-here")
	require.NotContains(t, got.html, "Nobody reads")
}

func TestTenantTextAddsNoElementAndNoHeaderToAnEmail(t *testing.T) {
	t.Parallel()
	p := newMailedTenant(t, working.Start(t))
	name := "Acme <script>alert(1)</script>\r\nBcc: eve@evil.test"
	_, err := p.app.Access.ArrangeOrganization(p.Context(t.Context()), access.OrganizationPatch{Name: &name})
	require.NoError(t, err)
	title := `<img src=x onerror=alert(1)> "quoted" {{.}}`
	post := p.newPost(t, fields{"title": title})
	p.votes(t, "voter@example.com", post, "en")
	p.moves(t, post, "planned")
	p.passes(t)
	p.isTold(t)
	got := p.letters(t)["voter@example.com"][0]
	require.Empty(t, got.Get("Bcc"))
	require.NotContains(t, got.subject(t), "quoted", "a title is the tenant's words")
	for _, raw := range []string{"<script", "<img", "onerror=alert(1)>"} {
		require.NotContains(t, got.html, raw)
	}
	require.Contains(t, got.html, "&lt;img src=x")
	require.False(t, strings.Contains(got.text, "\nBcc:"), got.text)
}

func TestAWindowThatItsProcessLeftBehindIsToldByTheNext(t *testing.T) {
	t.Parallel()
	database, temporal := testkit.Database(t), testkit.Namespace(t)
	// The process can't reach Temporal and starts nothing, like one that dies right after the
	// commit.
	away := temporal
	away.HostPort = "127.0.0.1:1"
	dying := newMailedTenant(t, mailing(t, apptest.Options{DatabaseURL: database, Temporal: &away}))
	dying.votes(t, "ada@example.com", dying.post, "en")
	dying.votes(t, "bo@example.com", dying.post, "en")
	dying.moves(t, dying.post, "planned")
	dying.run(t, "UPDATE subscriber_updates SET created_at = created_at - interval '11 minutes' WHERE organization_id = $1")
	dying.app = apptest.Start(t, apptest.Options{
		DatabaseURL: database, Temporal: &temporal, Worker: true,
		Environ: []string{"EARSHOT_MAIL_DIR=" + dying.app.Config.MailDir, "EARSHOT_PUBLIC_ORIGIN=" + origin},
	})
	dying.isTold(t)
	all := dying.letters(t)
	require.Len(t, all, 2)
	require.Len(t, all["ada@example.com"], 1)
	require.Len(t, all["bo@example.com"], 1)
}
