package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// groups enters until nobody is let in any more, each time with a group to the webhook.
func groups(l *lane, owner publicid.Organization, webhook publicid.Webhook) (entered int, leave func()) {
	var leaves []func()
	for {
		admitted, out := l.enter([]Due{{Webhook: webhook}}, map[publicid.Webhook]publicid.Organization{webhook: owner})
		leaves = append(leaves, out)
		if admitted[webhook] != shareFree {
			return len(leaves) - 1, func() {
				for _, out := range leaves {
					out()
				}
			}
		}
	}
}

func TestAWebhookHasAShareOfTheLaneAndNoMore(t *testing.T) {
	t.Parallel()
	l, owner, full, other := newLane(), publicid.NewOrganization(), publicid.NewWebhook(), publicid.NewWebhook()
	n, _ := groups(l, owner, full)
	require.Equal(t, laneOfWebhook, n)
	admitted, _ := l.enter([]Due{{Webhook: full}, {Webhook: other}, {Webhook: other}},
		map[publicid.Webhook]publicid.Organization{full: owner, other: owner})
	require.Equal(t, admission{full: shareOfWebhookUsed, other: shareFree}, admitted, "it keeps nobody else of its group back")
}

func TestAnOrganizationHasAShareOfTheLaneHoweverManyWebhooksFail(t *testing.T) {
	t.Parallel()
	l, owner, total := newLane(), publicid.NewOrganization(), 0
	for range 25 {
		n, _ := groups(l, owner, publicid.NewWebhook())
		total += n
	}
	require.Equal(t, laneOfOrganization, total)
	n, _ := groups(l, publicid.NewOrganization(), publicid.NewWebhook())
	require.Equal(t, laneOfWebhook, n)
}

func TestAnOrganizationWhoseShareIsUsedUpKeepsNobodyElseOfItsGroupBack(t *testing.T) {
	t.Parallel()
	l, busy, quiet := newLane(), publicid.NewOrganization(), publicid.NewOrganization()
	for range 2 {
		groups(l, busy, publicid.NewWebhook())
	}
	of, other := publicid.NewWebhook(), publicid.NewWebhook()
	admitted, leave := l.enter([]Due{{Webhook: of}, {Webhook: other}},
		map[publicid.Webhook]publicid.Organization{of: busy, other: quiet})
	require.Equal(t, admission{of: shareOfOrganizationUsed, other: shareFree}, admitted)
	require.Equal(t, 1, l.organizations[quiet], "each is charged for its own")
	require.Equal(t, laneOfOrganization, l.organizations[busy])
	leave()
	require.Zero(t, l.organizations[quiet])
}

func TestAGroupCountsOnceForAnOrganizationHoweverManyOfItsWebhooksAreInIt(t *testing.T) {
	t.Parallel()
	l, owner := newLane(), publicid.NewOrganization()
	var of []Due
	owners := map[publicid.Webhook]publicid.Organization{}
	for range 25 {
		webhook := publicid.NewWebhook()
		of, owners[webhook] = append(of, Due{Webhook: webhook}), owner
	}
	l.enter(of, owners)
	require.Equal(t, 1, l.organizations[owner])
}

func TestALaneThatIsEmptyAgainTakesNoMemory(t *testing.T) {
	t.Parallel()
	l := newLane()
	_, leave := groups(l, publicid.NewOrganization(), publicid.NewWebhook())
	leave()
	require.Empty(t, l.webhooks)
	require.Empty(t, l.organizations)
}
