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
// webhook and of one organization.
type lane struct {
	mu            sync.Mutex
	webhooks      map[publicid.Webhook]int
	organizations map[string]int
}

func newLane() *lane {
	return &lane{webhooks: map[publicid.Webhook]int{}, organizations: map[string]int{}}
}

// enter lets those of the webhooks of a group in whose share isn't used up. The
// organization is the one that the group is charged to, empty if it is nobody. When it
// is the organization's share that is used up, in is nil.
func (l *lane) enter(organization string, of []Due) (in map[publicid.Webhook]bool, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if organization != "" && l.organizations[organization] >= laneOfOrganization {
		return nil, func() {}
	}
	in = map[publicid.Webhook]bool{}
	for _, d := range of {
		if !in[d.Webhook] && l.webhooks[d.Webhook] < laneOfWebhook {
			l.webhooks[d.Webhook]++
			in[d.Webhook] = true
		}
	}
	if len(in) == 0 {
		return in, func() {}
	}
	l.organizations[organization]++
	return in, func() { l.leave(organization, in) }
}

func (l *lane) leave(organization string, in map[publicid.Webhook]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for webhook := range in {
		if l.webhooks[webhook]--; l.webhooks[webhook] == 0 {
			delete(l.webhooks, webhook)
		}
	}
	if l.organizations[organization]--; l.organizations[organization] == 0 {
		delete(l.organizations, organization)
	}
}
