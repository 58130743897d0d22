package webhooks

import (
	"context"
	"fmt"
	"net/mail"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Notice is an e-mail to one person.
type Notice struct {
	To            mail.Address
	Subject, Text string
}

// DisabledNotice tells an admin that the service disabled a webhook. It is nil
// where the webhook is gone meanwhile, or the admin is none any more.
func (s *Service) DisabledNotice(ctx context.Context, id publicid.Webhook, admin publicid.User) (*Notice, error) {
	ctx = store.System(ctx, "a notice is the service's own")
	client := s.store.Client()
	hook, err := client.Webhook.Get(ctx, id)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the webhook")
	}
	to, err := client.User.Query().Where(user.ID(admin), isAdmin).Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the admin")
	}
	of, err := client.Organization.Get(ctx, hook.OrganizationID)
	if err != nil {
		return nil, errors.Wrap(err, "load the organization")
	}
	// The host alone: path and query may hold tokens, and mail is read on the way.
	return &Notice{
		To:      mail.Address{Name: to.Name, Address: to.Email},
		Subject: fmt.Sprintf("Your webhook to %s was disabled", change.HostOf(hook.URL)),
		// Without the member's name, which anybody may have chosen who adds members.
		Text: fmt.Sprintf(disabledText, MaxConsecutiveFailures, of.Name, change.HostOf(hook.URL), id,
			id, id, id),
	}, nil
}

const disabledText = `Hello,

%d deliveries in a row have failed at one of the webhooks of %s,
so it was disabled. It gets no further events until you enable it again.

  Endpoint  %s
  Webhook   %s

What failed, and why:
  GET /v1/webhooks/%s/deliveries?status=failed

When the endpoint is well again, enable the webhook and send it what it missed:
  PATCH /v1/webhooks/%s          {"enabled": true}
  POST  /v1/webhooks/%s/recover  {"since": "<an hour before it began to fail>"}

Events that happen while the webhook is disabled are not kept for it.
`
