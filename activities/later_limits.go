package activities

import (
	"sync"

	"earshot/internal/publicid"
	"earshot/internal/send"
)

// The worker of the later queue takes 80 groups at a time on a machine that is short of
// memory or processor time, and up to 200 otherwise. What these shares leave is enough for
// everybody else.
const (
	// A quarter of the 80: a receiver that hangs holds each of them for 10 s, so it
	// gets the retries of two groups a second.
	laterPerWebhook = 20
	// Half: an organization may have 25 webhooks.
	laterPerOrganization = 40
	// How long a group is put off at least whose organization has its share under way: as
	// long as an attempt may take, so that hundreds of groups don't ask again every second.
	// The backlog of its own webhook says nothing of when the groups of another end.
	laterWait = send.AttemptTimeout
)

// laterLimits bounds the groups of the later queue that this process has under way of one
// webhook and of one organization. A group counts for each webhook and each organization
// that has a delivery in it.
type laterLimits struct {
	mu            sync.Mutex
	webhooks      map[publicid.Webhook]int
	organizations map[publicid.Organization]int
}

// admission says of the webhooks of a group which of them are admitted, and of the others whose
// share is used up.
type admission map[publicid.Webhook]share

type share int

const (
	shareFree share = iota
	shareOfWebhookUsed
	shareOfOrganizationUsed
)

func newLaterLimits() *laterLimits {
	return &laterLimits{webhooks: map[publicid.Webhook]int{}, organizations: map[publicid.Organization]int{}}
}

// admit admits those of the webhooks of a group whose share isn't used up, nor their
// organization's. A webhook that is in no organization was deleted; its deliveries make no
// attempts.
func (l *laterLimits) admit(of []Due, owners map[publicid.Webhook]publicid.Organization) (admission, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, charged := admission{}, map[publicid.Organization]bool{}
	for _, d := range of {
		if _, known := all[d.Webhook]; known {
			continue
		}
		owner, owned := owners[d.Webhook]
		switch {
		case owned && !charged[owner] && l.organizations[owner] >= laterPerOrganization:
			all[d.Webhook] = shareOfOrganizationUsed
		case l.webhooks[d.Webhook] >= laterPerWebhook:
			all[d.Webhook] = shareOfWebhookUsed
		default:
			all[d.Webhook] = shareFree
			l.webhooks[d.Webhook]++
			if owned && !charged[owner] {
				charged[owner] = true
				l.organizations[owner]++
			}
		}
	}
	return all, func() { l.end(all, charged) }
}

func (l *laterLimits) end(all admission, charged map[publicid.Organization]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for webhook, share := range all {
		if share == shareFree {
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
