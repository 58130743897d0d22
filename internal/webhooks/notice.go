package webhooks

import (
	"context"
	"fmt"
	"net/mail"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// Notice is an e-mail to one person.
type Notice struct {
	To            mail.Address
	Subject, Text string
}

// DisabledNotice returns the e-mail that tells an admin about a webhook that the service has
// disabled. It returns nil if the webhook no longer exists, or if the user is no longer an admin.
func (s *Service) DisabledNotice(ctx context.Context, id publicid.Webhook, admin publicid.User) (*Notice, error) {
	ctx, err := postgres.InOrganizationOf(ctx, s.store, id)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
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
	// Only the host: path and query may hold tokens, and others can read mail in transit.
	return &Notice{
		To:      mail.Address{Name: to.Name, Address: to.Email},
		Subject: fmt.Sprintf("Your webhook to %s was disabled", change.HostOf(hook.URL)),
		// The text omits the member's name, because anyone who can add members can choose it.
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
