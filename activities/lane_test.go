package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// groups enters until nobody is let in any more, each time with a group to the webhook.
func groups(l *lane, organization string, webhook publicid.Webhook) (entered int, leave func()) {
	var leaves []func()
	for {
		in, out := l.enter(organization, []Due{{Webhook: webhook}})
		leaves = append(leaves, out)
		if !in[webhook] {
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
	l, full, other := newLane(), publicid.NewWebhook(), publicid.NewWebhook()
	n, _ := groups(l, "", full)
	require.Equal(t, laneOfWebhook, n)
	in, _ := l.enter("", []Due{{Webhook: full}, {Webhook: other}, {Webhook: other}})
	require.Equal(t, map[publicid.Webhook]bool{other: true}, in, "it keeps nobody else of its group back")
}

func TestAnOrganizationHasAShareOfTheLaneHoweverManyWebhooksFail(t *testing.T) {
	t.Parallel()
	l, total := newLane(), 0
	for range 25 {
		n, _ := groups(l, "org_a", publicid.NewWebhook())
		total += n
	}
	require.Equal(t, laneOfOrganization, total)
	in, _ := l.enter("org_a", []Due{{Webhook: publicid.NewWebhook()}})
	require.Nil(t, in, "and hears that it isn't the webhook's share")
	n, _ := groups(l, "org_b", publicid.NewWebhook())
	require.Equal(t, laneOfWebhook, n)
}

func TestALaneThatIsEmptyAgainTakesNoMemory(t *testing.T) {
	t.Parallel()
	l := newLane()
	_, leave := groups(l, "org_a", publicid.NewWebhook())
	leave()
	require.Empty(t, l.webhooks)
	require.Empty(t, l.organizations)
}
