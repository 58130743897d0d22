package fairness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// groups begins groups with the webhook until one isn't admitted. It returns the number of admitted
// groups.
func groups(l *LaterLimits, owner publicid.Organization, webhook publicid.Webhook) (begun int, end func()) {
	var ends []func()
	for {
		admitted, out := l.Admit([]publicid.Webhook{webhook}, map[publicid.Webhook]publicid.Organization{webhook: owner})
		ends = append(ends, out)
		if admitted[webhook] != Free {
			return len(ends) - 1, func() {
				for _, out := range ends {
					out()
				}
			}
		}
	}
}

func TestAWebhookHasAShareOfTheLaterQueueAndNoMore(t *testing.T) {
	t.Parallel()
	l, owner, full, other := NewLaterLimits(), publicid.NewOrganization(), publicid.NewWebhook(), publicid.NewWebhook()
	n, _ := groups(l, owner, full)
	require.Equal(t, production().laterPerWebhook, n)
	admitted, _ := l.Admit([]publicid.Webhook{full, other, other},
		map[publicid.Webhook]publicid.Organization{full: owner, other: owner})
	require.Equal(t, Admission{full: WebhookShareUsed, other: Free}, admitted, "it keeps nobody else of its group back")
}

func TestAnOrganizationHasAShareOfTheLaterQueueHoweverManyWebhooksFail(t *testing.T) {
	t.Parallel()
	l, owner, total := NewLaterLimits(), publicid.NewOrganization(), 0
	for range 25 {
		n, _ := groups(l, owner, publicid.NewWebhook())
		total += n
	}
	require.Equal(t, production().laterPerOrganization, total)
	n, _ := groups(l, publicid.NewOrganization(), publicid.NewWebhook())
	require.Equal(t, production().laterPerWebhook, n)
}

func TestAnOrganizationAtItsLimitBlocksNoOtherOrganizationInItsGroup(t *testing.T) {
	t.Parallel()
	l, busy, quiet := NewLaterLimits(), publicid.NewOrganization(), publicid.NewOrganization()
	for range 2 {
		groups(l, busy, publicid.NewWebhook())
	}
	of, other := publicid.NewWebhook(), publicid.NewWebhook()
	admitted, end := l.Admit([]publicid.Webhook{of, other},
		map[publicid.Webhook]publicid.Organization{of: busy, other: quiet})
	require.Equal(t, Admission{of: OrganizationShareUsed, other: Free}, admitted)
	require.Equal(t, 1, l.organizations[quiet], "each is charged for its own")
	require.Equal(t, production().laterPerOrganization, l.organizations[busy])
	end()
	require.Zero(t, l.organizations[quiet])
}

func TestAGroupCountsOnceForAnOrganizationHoweverManyOfItsWebhooksAreInIt(t *testing.T) {
	t.Parallel()
	l, owner := NewLaterLimits(), publicid.NewOrganization()
	var of []publicid.Webhook
	owners := map[publicid.Webhook]publicid.Organization{}
	for range 25 {
		webhook := publicid.NewWebhook()
		of, owners[webhook] = append(of, webhook), owner
	}
	l.Admit(of, owners)
	require.Equal(t, 1, l.organizations[owner])
}

func TestALaterQueueThatIsEmptyAgainTakesNoMemory(t *testing.T) {
	t.Parallel()
	l := NewLaterLimits()
	_, end := groups(l, publicid.NewOrganization(), publicid.NewWebhook())
	end()
	require.Empty(t, l.webhooks)
	require.Empty(t, l.organizations)
}
