package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// groups begins groups to the webhook until none is admitted any more.
func groups(l *laterLimits, owner publicid.Organization, webhook publicid.Webhook) (begun int, end func()) {
	var ends []func()
	for {
		admitted, out := l.admit([]Due{{Webhook: webhook}}, map[publicid.Webhook]publicid.Organization{webhook: owner})
		ends = append(ends, out)
		if admitted[webhook] != shareFree {
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
	l, owner, full, other := newLaterLimits(), publicid.NewOrganization(), publicid.NewWebhook(), publicid.NewWebhook()
	n, _ := groups(l, owner, full)
	require.Equal(t, laterPerWebhook, n)
	admitted, _ := l.admit([]Due{{Webhook: full}, {Webhook: other}, {Webhook: other}},
		map[publicid.Webhook]publicid.Organization{full: owner, other: owner})
	require.Equal(t, admission{full: shareOfWebhookUsed, other: shareFree}, admitted, "it keeps nobody else of its group back")
}

func TestAnOrganizationHasAShareOfTheLaterQueueHoweverManyWebhooksFail(t *testing.T) {
	t.Parallel()
	l, owner, total := newLaterLimits(), publicid.NewOrganization(), 0
	for range 25 {
		n, _ := groups(l, owner, publicid.NewWebhook())
		total += n
	}
	require.Equal(t, laterPerOrganization, total)
	n, _ := groups(l, publicid.NewOrganization(), publicid.NewWebhook())
	require.Equal(t, laterPerWebhook, n)
}

func TestAnOrganizationWhoseShareIsUsedUpKeepsNobodyElseOfItsGroupBack(t *testing.T) {
	t.Parallel()
	l, busy, quiet := newLaterLimits(), publicid.NewOrganization(), publicid.NewOrganization()
	for range 2 {
		groups(l, busy, publicid.NewWebhook())
	}
	of, other := publicid.NewWebhook(), publicid.NewWebhook()
	admitted, end := l.admit([]Due{{Webhook: of}, {Webhook: other}},
		map[publicid.Webhook]publicid.Organization{of: busy, other: quiet})
	require.Equal(t, admission{of: shareOfOrganizationUsed, other: shareFree}, admitted)
	require.Equal(t, 1, l.organizations[quiet], "each is charged for its own")
	require.Equal(t, laterPerOrganization, l.organizations[busy])
	end()
	require.Zero(t, l.organizations[quiet])
}

func TestAGroupCountsOnceForAnOrganizationHoweverManyOfItsWebhooksAreInIt(t *testing.T) {
	t.Parallel()
	l, owner := newLaterLimits(), publicid.NewOrganization()
	var of []Due
	owners := map[publicid.Webhook]publicid.Organization{}
	for range 25 {
		webhook := publicid.NewWebhook()
		of, owners[webhook] = append(of, Due{Webhook: webhook}), owner
	}
	l.admit(of, owners)
	require.Equal(t, 1, l.organizations[owner])
}

func TestALaterQueueThatIsEmptyAgainTakesNoMemory(t *testing.T) {
	t.Parallel()
	l := newLaterLimits()
	_, end := groups(l, publicid.NewOrganization(), publicid.NewWebhook())
	end()
	require.Empty(t, l.webhooks)
	require.Empty(t, l.organizations)
}
