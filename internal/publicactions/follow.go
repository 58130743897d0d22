package publicactions

import (
	"context"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/interaction"
	"earshot/internal/change"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/seal"
)

// This file holds the methods for the workflow of an interaction, which mails the link and waits for
// its use.

// followed loads an interaction for its workflow, which knows only its id. The returned context is limited
// to its organization.
func (s *Service) followed(ctx context.Context, id publicid.Interaction) (context.Context, *db.Interaction, error) {
	ctx, err := postgres.InOrganizationOf(ctx, s.store, id)
	if err != nil {
		return nil, nil, err
	}
	found, err := s.store.Client().Interaction.Get(ctx, id)
	return ctx, found, err
}

// Letter is an e-mail with a link.
type Letter struct {
	To            mail.Address
	Subject, Text string
}

// Letter returns the e-mail to send for an interaction, or nil if there is none to send.
func (s *Service) Letter(ctx context.Context, id publicid.Interaction) (*Letter, error) {
	ctx, found, err := s.followed(ctx, id)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the interaction")
	}
	if found.DueAt.Equal(found.ExpiresAt) || !found.ExpiresAt.After(postgres.Now()) {
		return nil, nil // it was sent before, or the link has expired
	}
	kept, err := s.open(found)
	if errors.Is(err, seal.ErrUnreadable) {
		s.log.ErrorContext(ctx, "an interaction is dropped: the key that it was sealed with is gone", "interaction", id)
		return nil, s.Remove(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	if kept.Mailing == nil {
		return nil, s.Remove(ctx, id)
	}
	link := kept.Mailing.Page + "?" + url.Values{"token": {s.token(id)}}.Encode()
	return &Letter{
		// Without the name, because a sender could put a message to a stranger into it.
		To: mail.Address{Address: kept.By.Email}, Subject: kept.Mailing.Subject,
		Text: strings.Replace(kept.Mailing.Text, LinkPlace, link, 1),
	}, nil
}

// Mailed records that the letter was sent. The interaction is then not due until it expires.
func (s *Service) Mailed(ctx context.Context, id publicid.Interaction) error {
	ctx, found, err := s.followed(ctx, id)
	if db.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = s.store.Client().Interaction.Update().Where(interaction.ID(id)).SetDueAt(found.ExpiresAt).Exec(ctx)
	}
	if err != nil {
		return errors.Wrap(err, "note that the link was mailed")
	}
	return nil
}

// Look returns the time until which an interaction can be confirmed. It removes an expired
// interaction. It returns nil if there is none.
func (s *Service) Look(ctx context.Context, id publicid.Interaction) (until *time.Time, err error) {
	ctx, found, err := s.followed(ctx, id)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the interaction")
	}
	if found.ExpiresAt.After(postgres.Now()) {
		return &found.ExpiresAt, nil
	}
	return nil, s.Remove(ctx, id)
}

// Remove removes an interaction that can no longer be confirmed.
func (s *Service) Remove(ctx context.Context, id publicid.Interaction) error {
	ctx, err := postgres.InOrganizationOf(ctx, s.store, id)
	if db.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := s.store.Client().Interaction.Delete().Where(interaction.ID(id)).Exec(ctx); err != nil {
		return errors.Wrap(err, "remove the interaction")
	}
	return nil
}

// Sweep finds interactions without a run whose link was not mailed, or whose time is up. A run that is
// open is left alone, for example while the mail server is away. There may be many.
func (s *Service) Sweep() jobs.Sweep {
	return jobs.Sweep{Ask: jobs.ListedRuns, Rows: s.overdue}
}

const overdueSQL = `
SELECT id, organization_id, due_at FROM interactions
WHERE due_at <= now() - make_interval(secs => $1) AND (due_at, id) > ($2, $3::uuid)
ORDER BY due_at, id LIMIT $4`

func (s *Service) overdue(ctx context.Context, grace time.Duration, after jobs.Overdue, limit int) ([]jobs.Overdue, error) {
	return change.Overdue(ctx, s.store.Across("find overdue interactions"), overdueSQL, grace, after, limit, Run)
}
