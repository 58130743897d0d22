package activities

import (
	"sync"

	"earshot/internal/publicid"
	"earshot/internal/send"
)

// The lane of later attempts takes 80 groups at a time on a machine that is short of
// everything, and 200 otherwise. What the shares leave is enough for everybody else.
const (
	// A quarter of the 80: a receiver that hangs holds each of them for 10 s, so it
	// gets the retries of two groups a second.
	laneOfWebhook = 20
	// Half: an organization may have 25 webhooks.
	laneOfOrganization = 40
	// How long a group waits at least whose organization has its share under way, because
	// the pace of its own webhook says nothing of when another's groups end: as long as an
	// attempt may take, so that hundreds of groups don't ask again every second.
	laneWait = send.AttemptTimeout
)

// lane bounds the groups of later attempts that this process has under way of one
// webhook and of one organization. A group counts for each webhook and each organization
// that has a delivery in it.
type lane struct {
	mu            sync.Mutex
	webhooks      map[publicid.Webhook]int
	organizations map[publicid.Organization]int
}

// admission says of the webhooks of a group which of them are let in, and of the others whose
// share is used up.
type admission map[publicid.Webhook]share

type share int

const (
	shareFree share = iota
	shareOfWebhookUsed
	shareOfOrganizationUsed
)

func newLane() *lane {
	return &lane{webhooks: map[publicid.Webhook]int{}, organizations: map[publicid.Organization]int{}}
}

// enter lets those of the webhooks of a group in whose share isn't used up, nor their
// organization's. A webhook that is in no organization was deleted; its deliveries make no
// attempts.
func (l *lane) enter(of []Due, owners map[publicid.Webhook]publicid.Organization) (admission, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, charged := admission{}, map[publicid.Organization]bool{}
	for _, d := range of {
		if _, known := all[d.Webhook]; known {
			continue
		}
		owner, owned := owners[d.Webhook]
		switch {
		case owned && !charged[owner] && l.organizations[owner] >= laneOfOrganization:
			all[d.Webhook] = shareOfOrganizationUsed
		case l.webhooks[d.Webhook] >= laneOfWebhook:
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
	return all, func() { l.leave(all, charged) }
}

func (l *lane) leave(all admission, charged map[publicid.Organization]bool) {
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
