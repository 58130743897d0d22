package interactions

import (
	"context"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/interaction"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/store"
)

// What whoever follows an interaction needs, who mails its link and waits for its use.

// Letter is an e-mail with a link.
type Letter struct {
	To            mail.Address
	Subject, Text string
}

// Letter is the e-mail that is to be sent for an interaction; nil where none is, any more.
func (s *Service) Letter(ctx context.Context, id publicid.Interaction) (*Letter, error) {
	ctx = store.System(ctx, "whoever follows an interaction knows its id")
	found, err := s.store.Client().Interaction.Get(ctx, id)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the interaction")
	}
	if found.DueAt.Equal(found.ExpiresAt) || !found.ExpiresAt.After(store.Now()) {
		return nil, nil // it was sent before, or it would be too late
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
		// Without the name, which anybody may have made up to have us send it.
		To: mail.Address{Address: kept.By.Email}, Subject: kept.Mailing.Subject,
		Text: strings.Replace(kept.Mailing.Text, LinkPlace, link, 1),
	}, nil
}

// Mailed notes that the letter was sent: nobody has to look after the interaction until its time is
// up.
func (s *Service) Mailed(ctx context.Context, id publicid.Interaction) error {
	ctx = store.System(ctx, "whoever follows an interaction knows its id")
	found, err := s.store.Client().Interaction.Get(ctx, id)
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

// Look is until when an interaction may be confirmed. One whose time is up it removes; nil is that
// there is none.
func (s *Service) Look(ctx context.Context, id publicid.Interaction) (until *time.Time, err error) {
	ctx = store.System(ctx, "whoever follows an interaction knows its id")
	found, err := s.store.Client().Interaction.Get(ctx, id)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the interaction")
	}
	if found.ExpiresAt.After(store.Now()) {
		return &found.ExpiresAt, nil
	}
	return nil, s.Remove(ctx, id)
}

// Remove removes an interaction that nobody will confirm.
func (s *Service) Remove(ctx context.Context, id publicid.Interaction) error {
	ctx = store.System(ctx, "whoever follows an interaction knows its id")
	if _, err := s.store.Client().Interaction.Delete().Where(interaction.ID(id)).Exec(ctx); err != nil {
		return errors.Wrap(err, "remove the interaction")
	}
	return nil
}
