package backfill_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/backfill"
	"earshot/internal/contacts"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestABackfill(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_CONTACT_CAP_FREE=2"}})
	for name, test := range map[string]func(*testing.T, *tenant){
		"makes contacts of people with activity before the moment, by their first action": firstActivity,
		"finds existing contacts, and doesn't change them":                                knownContacts,
		"ignores votes and comments of members and other organizations":                   othersActivity,
		"keeps to the cap of the plan, and goes on":                                       atTheCap,
		"goes on behind the last page, however often and by however many":                 pages,
		"doesn't recreate a contact that is erased before or during the run":              erased,
		"keeps nothing of an address when it is canceled":                                 canceled,
		"refuses invalid requests, and changes nothing":                                   refused,
		"is the operator's in the audit trail":                                            audited,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newTenant(t, app, "business"))
		})
	}
}

func firstActivity(t *testing.T, n *tenant) {
	receiver := testkit.NewReceiver(t)
	n.Register(t, receiver, "contact.created")
	n.acts(t, "vote", "ada@example.com", day(3))
	n.acts(t, "comment", "ada@example.com", day(2))
	n.acts(t, "post", "ada@example.com", day(4))
	n.acts(t, "post", "bo@example.com", day(5))
	n.acts(t, "vote", "cy@example.com", day(6))
	n.acts(t, "vote", "late@example.com", day(20))
	id := n.begin(t, people("ada@example.com", "bo@example.com", "cy@example.com", "late@example.com", "nobody@example.com"))
	require.Equal(t, backfill.Progress{Status: "completed", Addresses: 5, Matched: 3, Created: 3, Invalid: 7}, n.finish(t, id))
	require.Zero(t, n.left(t), "nothing is kept of an address")

	for email, wanted := range map[string]object{
		"ada@example.com": {"source": "public_comment", "firstSeenAt": "2026-01-02T00:00:00Z", "lastSeenAt": "2026-01-04T00:00:00Z"},
		"bo@example.com":  {"source": "public_post", "firstSeenAt": "2026-01-05T00:00:00Z", "lastSeenAt": "2026-01-05T00:00:00Z"},
		"cy@example.com":  {"source": "public_vote", "firstSeenAt": "2026-01-06T00:00:00Z", "lastSeenAt": "2026-01-06T00:00:00Z"},
	} {
		made := n.contact(t, email)
		require.Equal(t, "Somebody", made["name"])
		require.Equal(t, "legacy_inferred", made["consentBasis"])
		for member, value := range wanted {
			require.Equal(t, value, made[member], "%s of %s", member, email)
		}
		source, basis := made["source"].(string), made["consentBasis"].(string)
		for purpose, may := range map[contacts.Purpose]contacts.Permission{
			contacts.Updates: contacts.Refused, contacts.Marketing: contacts.Refused, contacts.AccessRequest: contacts.Allowed,
		} {
			require.Equal(t, may, contacts.MayBeMailed(source, basis, purpose), purpose)
		}
		require.Len(t, n.found(t, "?q="+email[:3]), 1, "it is searched for, as any")
	}
	require.Len(t, n.found(t, ""), 3)
	require.Equal(t, "3", fmt.Sprint(len(n.events(t, "contact.created"))))
	ada := n.Make(t, http.MethodGet, "/v1/contacts/"+n.contact(t, "ada@example.com")["id"].(string), nil)
	require.EqualValues(t, "1", fmt.Sprint(ada["voteCount"]))
	require.EqualValues(t, "1", fmt.Sprint(ada["commentCount"]))
}

func knownContacts(t *testing.T, n *tenant) {
	n.ID(t, "/v1/contacts", object{"email": "ada@example.com", "name": "Ada"})
	n.acts(t, "vote", "ada@example.com", day(1))
	before := n.contact(t, "ada@example.com")
	done := n.finish(t, n.begin(t, people("ada@example.com")))
	require.Equal(t, backfill.Progress{Status: "completed", Addresses: 1, Matched: 1, Existed: 1, Invalid: 7}, done)
	require.Equal(t, before, n.contact(t, "ada@example.com"))
	require.Len(t, n.events(t, "contact.created"), 1)
	again := n.finish(t, n.begin(t, people("ada@example.com")))
	require.Equal(t, done, again)
}

func othersActivity(t *testing.T, n *tenant) {
	n.Make(t, http.MethodPost, "/v1/posts/"+n.post.String()+"/votes", object{})
	n.Make(t, http.MethodPost, "/v1/posts/"+n.post.String()+"/comments", object{"body": object{"text": "Ours"}})
	for _, table := range []string{"votes", "comments"} {
		n.exec(t, "UPDATE "+table+" SET created_at = '2026-01-01' WHERE organization_id = $1")
	}
	done := n.finish(t, n.begin(t, people("owner@example.com")))
	require.Equal(t, backfill.Progress{Status: "completed", Addresses: 1, Invalid: 7}, done)

	theirs := newTenant(t, n.App, "business")
	theirs.acts(t, "vote", "ada@example.com", day(1))
	require.Zero(t, n.finish(t, n.begin(t, people("ada@example.com"))).Matched, "another organization's")
}

func atTheCap(t *testing.T, n *tenant) {
	n = newTenant(t, n.App, "free")
	n.ID(t, "/v1/contacts", object{"email": "known@example.com"})
	for i, email := range []string{"known@example.com", "a@example.com", "b@example.com", "c@example.com"} {
		n.acts(t, "vote", email, day(1+i))
	}
	done := n.finish(t, n.begin(t, people("a@example.com", "b@example.com", "c@example.com", "known@example.com")))
	require.Equal(t, backfill.Progress{Status: "completed", Addresses: 4, Matched: 4, Created: 1, Existed: 1, LeftOut: 2, Invalid: 7}, done)
	require.Len(t, n.found(t, ""), 2)
	require.Len(t, n.events(t, "contact.created"), 2)
}

func pages(t *testing.T, n *tenant) {
	var emails []string
	for i := range 230 {
		emails = append(emails, fmt.Sprintf("p%d@example.com", i))
	}
	n.votes(t, emails, day(1))
	id := n.begin(t, people(emails...))
	first, err := n.App.Backfills.Continue(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, backfill.Progress{Status: "running", Addresses: 230, Left: 130, Matched: 100, Created: 100, Invalid: 7}, first)
	require.Equal(t, 130, n.left(t))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				p, err := n.App.Backfills.Continue(t.Context(), id)
				if err != nil || p.Status != "running" {
					return
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, backfill.Progress{Status: "completed", Addresses: 230, Matched: 230, Created: 230, Invalid: 7}, n.finish(t, id))
	require.Equal(t, []int{230}, query[int](t, n, "SELECT count(*)::int FROM contacts WHERE organization_id = $1"))
	require.Equal(t, []int{230}, query[int](t, n, "SELECT count(*)::int FROM events WHERE organization_id = $1 AND type = 'contact.created'"))
}

func erased(t *testing.T, n *tenant) {
	n.acts(t, "vote", "ada@example.com", day(1))
	n.acts(t, "comment", "ada@example.com", day(1))
	n.acts(t, "post", "ada@example.com", day(1))
	n.acts(t, "vote", "bo@example.com", day(1))
	ada := n.ID(t, "/v1/contacts", object{"email": "ada@example.com"})
	id := n.begin(t, people("ada@example.com", "bo@example.com"))
	n.Finished(t, n.ID(t, "/v1/contacts/"+ada+"/erase", object{}))
	require.Equal(t, 1, n.left(t), "nobody looks for the address any more")
	done := n.finish(t, id)
	require.Equal(t, 1, done.Created)
	require.Nil(t, n.contact(t, "ada@example.com"))
	again := n.finish(t, n.begin(t, people("ada@example.com", "bo@example.com")))
	require.Equal(t, backfill.Progress{Status: "completed", Addresses: 2, Matched: 1, Existed: 1, Invalid: 7}, again)
	require.Nil(t, n.contact(t, "ada@example.com"))
}

func canceled(t *testing.T, n *tenant) {
	n.acts(t, "vote", "ada@example.com", day(1))
	id := n.begin(t, people("ada@example.com"))
	require.Equal(t, 1, n.left(t))
	require.NoError(t, n.App.Backfills.Cancel(t.Context(), id))
	require.Zero(t, n.left(t))
	require.Equal(t, backfill.Progress{Status: "canceled", Addresses: 1, Invalid: 7}, n.finish(t, id))
	require.Nil(t, n.contact(t, "ada@example.com"))
	ended := n.begin(t, people("ada@example.com"))
	require.Equal(t, "completed", n.finish(t, ended).Status)
	require.NoError(t, n.App.Backfills.Cancel(t.Context(), ended))
	require.Equal(t, "completed", n.finish(t, ended).Status, "what is over stays so")
}

func refused(t *testing.T, n *tenant) {
	unchanged := n.Watch(t)
	for what, wanted := range map[string]backfill.Wanted{
		"the future":        {Before: time.Now().Add(time.Hour), People: people("ada@example.com")},
		"no people":         {Before: day(1)},
		"too many":          {Before: day(1), People: make([]backfill.Person, backfill.MaxAddresses+1)},
		"no moment of ours": {Before: time.Date(-3, 1, 1, 0, 0, 0, 0, time.UTC), People: people("ada@example.com")},
	} {
		_, err := n.App.Backfills.Begin(n.Context(t.Context()), wanted)
		require.True(t, problem.Is(err, problem.Validation), "%s: %v", what, err)
	}
	unchanged(t)
	_, err := n.App.Backfills.Backfill(t.Context(), publicid.NewContactBackfill())
	require.True(t, problem.Is(err, problem.NotFound))
}

func audited(t *testing.T, n *tenant) {
	id := n.begin(t, people("ada@example.com"))
	resource := id.String()
	found, err := n.App.Access.Audit(n.Context(t.Context()), access.AuditQuery{Resource: &resource})
	require.NoError(t, err)
	require.Len(t, found.Items, 1)
	require.Equal(t, "backfillContacts", found.Items[0].Action)
	require.Equal(t, "contact_backfill", found.Items[0].ResourceKind)
	require.Nil(t, found.Items[0].UserID, "the operator")
}
