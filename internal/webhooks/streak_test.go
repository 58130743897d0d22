package webhooks_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/user"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
	"earshot/internal/webhooks"
)

// failing makes a webhook with a streak of failures.
func (n *tenant) failing(t *testing.T, failures int) publicid.Webhook {
	t.Helper()
	id, err := publicid.Parse[publicid.Webhook](n.Listen(t))
	require.NoError(t, err)
	require.NoError(t, n.App.Store.Client().Webhook.UpdateOneID(id).SetConsecutiveFailures(failures).Exec(n.Context(t.Context())))
	return id
}

func (n *tenant) disable(t *testing.T, id publicid.Webhook, run string) (admins []publicid.User, disabled bool) {
	t.Helper()
	admins, disabled, err := n.App.Webhooks.DisableFailing(t.Context(), id, run)
	require.NoError(t, err)
	return admins, disabled
}

func TestAStreakDisablesAWebhookOnce(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"at fifty failures": func(t *testing.T, n *tenant) {
			id := n.failing(t, webhooks.MaxConsecutiveFailures)
			admins, disabled := n.disable(t, id, "run")
			require.True(t, disabled)
			require.Equal(t, []publicid.User{n.Owner.ID}, admins)
			hook := n.Make(t, http.MethodGet, "/v1/webhooks/"+id.String(), nil)
			require.Equal(t, false, hook["enabled"])
			require.Equal(t, "failures", hook["disabledReason"])
		},
		"and tells owners and admins, but no members or removed admins": func(t *testing.T, n *tenant) {
			add := func(role string) publicid.User {
				id := n.ID(t, "/v1/members", object{"email": role + "@example.com", "name": "x", "role": role})
				return publicid.Read[publicid.User](id)
			}
			admin, _ := add("admin"), add("member")
			gone := n.ID(t, "/v1/members", object{"email": "gone@example.com", "name": "x", "role": "admin"})
			n.Make(t, http.MethodDelete, "/v1/members/"+gone, nil)
			id := n.failing(t, webhooks.MaxConsecutiveFailures)
			admins, _ := n.disable(t, id, "run")
			require.Equal(t, []publicid.User{n.Owner.ID, admin}, admins)

			n.Make(t, http.MethodPatch, "/v1/members/"+admin.String(), object{"role": "member"})
			notice, err := n.App.Webhooks.DisabledNotice(t.Context(), id, admin)
			require.NoError(t, err)
			require.Nil(t, notice, "who is no admin any more when the mail goes out")
		},
		"and mails the 50 oldest of many admins, in a text without their names": func(t *testing.T, n *tenant) {
			n.App.Store.Client().User.MapCreateBulk(make([]struct{}, 60), func(c *db.UserCreate, i int) {
				c.SetEmail(fmt.Sprintf("%d@example.com", i)).SetName("You have won").SetRole(user.RoleAdmin)
			}).ExecX(n.Context(t.Context()))
			id := n.failing(t, webhooks.MaxConsecutiveFailures)
			admins, _ := n.disable(t, id, "run")
			require.Len(t, admins, 50)
			require.Equal(t, n.Owner.ID, admins[0])
			require.True(t, slices.IsSortedFunc(admins, func(a, b publicid.User) int { return strings.Compare(a.String(), b.String()) }))
			notice, err := n.App.Webhooks.DisabledNotice(t.Context(), id, admins[1])
			require.NoError(t, err)
			require.NotContains(t, notice.Text, "You have won")
		},
		"not below": func(t *testing.T, n *tenant) {
			_, disabled := n.disable(t, n.failing(t, webhooks.MaxConsecutiveFailures-1), "run")
			require.False(t, disabled)
		},
		"and a run that asks again, after a kill, hears the same": func(t *testing.T, n *tenant) {
			id := n.failing(t, webhooks.MaxConsecutiveFailures)
			n.disable(t, id, "run")
			// The owner has enabled it in the meantime.
			n.Make(t, http.MethodPatch, "/v1/webhooks/"+id.String(), object{"enabled": true})
			admins, disabled := n.disable(t, id, "run")
			require.True(t, disabled)
			require.Len(t, admins, 1)
			require.Equal(t, true, n.Make(t, http.MethodGet, "/v1/webhooks/"+id.String(), nil)["enabled"])
		},
		"but not for two runs": func(t *testing.T, n *tenant) {
			id := n.failing(t, webhooks.MaxConsecutiveFailures)
			var did [8]bool
			var all sync.WaitGroup
			for i := range did {
				all.Go(func() { _, did[i] = n.disable(t, id, string(rune('a'+i))) })
			}
			all.Wait()
			count := 0
			for _, d := range did {
				if d {
					count++
				}
			}
			require.Equal(t, 1, count)
		},
		"unless it is deleted": func(t *testing.T, n *tenant) {
			_, disabled := n.disable(t, publicid.NewWebhook(), "run")
			require.False(t, disabled)
			found, err := n.App.Webhooks.Streak(t.Context(), publicid.NewWebhook())
			require.NoError(t, err)
			require.False(t, found.Open)
		},
	})
}

func TestTheNoticeOfADisabledWebhookHoldsNoURL(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := &tenant{app.Tenant(t)}
	id := n.failing(t, webhooks.MaxConsecutiveFailures)
	n.Make(t, http.MethodPatch, "/v1/webhooks/"+id.String(), object{"url": "https://hooks.example.com/in?token=very-secret"})
	notice, err := app.Webhooks.DisabledNotice(t.Context(), id, n.Owner.ID)
	require.NoError(t, err)
	require.Equal(t, "owner@example.com", notice.To.Address)
	require.Contains(t, notice.Subject, "hooks.example.com")
	for _, text := range []string{"Acme", "hooks.example.com", id.String(), "/recover"} {
		require.Contains(t, notice.Text, text)
	}
	for _, text := range []string{"very-secret", "Olive Owner"} {
		require.NotContains(t, notice.Text, text)
	}
	gone, err := app.Webhooks.DisabledNotice(t.Context(), publicid.NewWebhook(), n.Owner.ID)
	require.NoError(t, err)
	require.Nil(t, gone)
}
