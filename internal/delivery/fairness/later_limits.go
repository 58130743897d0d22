package fairness

import (
	"sync"
	"time"

	"earshot/internal/inflight"
	"earshot/internal/publicid"
)

// LaterLimits limits the groups of the later queue that this process has in flight, for each
// webhook and each organization. A group counts once for each webhook and each organization that
// has a delivery in it.
type LaterLimits struct {
	rules         rules
	mu            sync.Mutex
	webhooks      inflight.Counts[publicid.Webhook]
	organizations inflight.Counts[publicid.Organization]
}

// Admission holds the decision about each webhook of a group.
type Admission map[publicid.Webhook]Share

// Share is the decision about a webhook: it is admitted, or a share is used up.
type Share int

// The decisions of Admit.
const (
	Free Share = iota
	WebhookShareUsed
	OrganizationShareUsed
)

// NewLaterLimits makes the limits of a process.
func NewLaterLimits() *LaterLimits { return newLaterLimits(production()) }

func newLaterLimits(r rules) *LaterLimits {
	return &LaterLimits{rules: r, webhooks: inflight.Counts[publicid.Webhook]{}, organizations: inflight.Counts[publicid.Organization]{}}
}

// Wait is the minimum wait of deliveries that were refused because of their organization's share.
func (l *LaterLimits) Wait() time.Duration { return l.rules.jitter(l.rules.laterWait) }

// Admit admits the webhooks of a group whose own share, and whose organization's share, isn't used
// up. It also returns the function that ends the group. A webhook without an organization was
// deleted; its deliveries make no attempts.
func (l *LaterLimits) Admit(of []publicid.Webhook, owners map[publicid.Webhook]publicid.Organization) (Admission, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, charged := Admission{}, map[publicid.Organization]bool{}
	for _, webhook := range of {
		if _, known := all[webhook]; known {
			continue
		}
		owner, owned := owners[webhook]
		switch {
		case owned && !charged[owner] && l.organizations[owner] >= l.rules.laterPerOrganization:
			all[webhook] = OrganizationShareUsed
		case l.webhooks[webhook] >= l.rules.laterPerWebhook:
			all[webhook] = WebhookShareUsed
		default:
			all[webhook] = Free
			l.webhooks.Up(webhook)
			if owned && !charged[owner] {
				charged[owner] = true
				l.organizations.Up(owner)
			}
		}
	}
	return all, func() { l.end(all, charged) }
}

func (l *LaterLimits) end(all Admission, charged map[publicid.Organization]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for webhook, share := range all {
		if share == Free {
			l.webhooks.Down(webhook)
		}
	}
	for organization := range charged {
		l.organizations.Down(organization)
	}
}
