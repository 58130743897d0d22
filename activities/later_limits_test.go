package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// groups begins groups to the webhook until none is admitted any more.
func groups(l *laterLimits, organization string, webhook publicid.Webhook) (begun int, end func()) {
	var ends []func()
	for {
		in, out := l.admit(organization, []Due{{Webhook: webhook}})
		ends = append(ends, out)
		if !in[webhook] {
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
	l, full, other := newLaterLimits(), publicid.NewWebhook(), publicid.NewWebhook()
	n, _ := groups(l, "", full)
	require.Equal(t, laterPerWebhook, n)
	in, _ := l.admit("", []Due{{Webhook: full}, {Webhook: other}, {Webhook: other}})
	require.Equal(t, map[publicid.Webhook]bool{other: true}, in, "it keeps nobody else of its group back")
}

func TestAnOrganizationHasAShareOfTheLaterQueueHoweverManyWebhooksFail(t *testing.T) {
	t.Parallel()
	l, total := newLaterLimits(), 0
	for range 25 {
		n, _ := groups(l, "org_a", publicid.NewWebhook())
		total += n
	}
	require.Equal(t, laterPerOrganization, total)
	in, _ := l.admit("org_a", []Due{{Webhook: publicid.NewWebhook()}})
	require.Nil(t, in, "and hears that it isn't the webhook's share")
	n, _ := groups(l, "org_b", publicid.NewWebhook())
	require.Equal(t, laterPerWebhook, n)
}

func TestALaterQueueThatIsEmptyAgainTakesNoMemory(t *testing.T) {
	t.Parallel()
	l := newLaterLimits()
	_, end := groups(l, "org_a", publicid.NewWebhook())
	end()
	require.Empty(t, l.webhooks)
	require.Empty(t, l.organizations)
}
