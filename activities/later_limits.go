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
// webhook and of one organization.
type laterLimits struct {
	mu            sync.Mutex
	webhooks      map[publicid.Webhook]int
	organizations map[string]int
}

func newLaterLimits() *laterLimits {
	return &laterLimits{webhooks: map[publicid.Webhook]int{}, organizations: map[string]int{}}
}

// admit returns those of the webhooks of a group whose share isn't used up. The
// organization is the one that the group is charged to, empty if it is nobody. When it
// is the organization's share that is used up, admitted is nil.
func (l *laterLimits) admit(organization string, of []Due) (admitted map[publicid.Webhook]bool, end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if organization != "" && l.organizations[organization] >= laterPerOrganization {
		return nil, func() {}
	}
	admitted = map[publicid.Webhook]bool{}
	for _, d := range of {
		if !admitted[d.Webhook] && l.webhooks[d.Webhook] < laterPerWebhook {
			l.webhooks[d.Webhook]++
			admitted[d.Webhook] = true
		}
	}
	if len(admitted) == 0 {
		return admitted, func() {}
	}
	l.organizations[organization]++
	return admitted, func() { l.end(organization, admitted) }
}

func (l *laterLimits) end(organization string, admitted map[publicid.Webhook]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for webhook := range admitted {
		if l.webhooks[webhook]--; l.webhooks[webhook] == 0 {
			delete(l.webhooks, webhook)
		}
	}
	if l.organizations[organization]--; l.organizations[organization] == 0 {
		delete(l.organizations, organization)
	}
}
