package fairness

import (
	"sync"
	"time"

	"earshot/internal/publicid"
)

// LaterLimits bounds the groups of the later queue that this process has under way of one
// webhook and of one organization. A group counts for each webhook and each organization
// that has a delivery in it.
type LaterLimits struct {
	rules         rules
	mu            sync.Mutex
	webhooks      map[publicid.Webhook]int
	organizations map[publicid.Organization]int
}

// Admission says of the webhooks of a group which of them are admitted, and of the others whose
// share is used up.
type Admission map[publicid.Webhook]Share

// Share says whether a webhook is admitted.
type Share int

// What Admit says of a webhook.
const (
	Free Share = iota
	WebhookShareUsed
	OrganizationShareUsed
)

// NewLaterLimits are those of a process.
func NewLaterLimits() *LaterLimits { return newLaterLimits(production()) }

func newLaterLimits(r rules) *LaterLimits {
	return &LaterLimits{rules: r, webhooks: map[publicid.Webhook]int{}, organizations: map[publicid.Organization]int{}}
}

// Wait is how long what isn't admitted waits at least, because of its organization's share.
func (l *LaterLimits) Wait() time.Duration { return l.rules.jitter(l.rules.laterWait) }

// Admit admits those of the webhooks of a group whose share isn't used up, nor their
// organization's. A webhook that is in no organization was deleted; its deliveries make no
// attempts.
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
			l.webhooks[webhook]++
			if owned && !charged[owner] {
				charged[owner] = true
				l.organizations[owner]++
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
			countDown(l.webhooks, webhook)
		}
	}
	for organization := range charged {
		countDown(l.organizations, organization)
	}
}

func countDown[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}
