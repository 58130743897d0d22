package interactions

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/interaction"
	"earshot/internal/change"
	"earshot/internal/failpoint"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/store"
)

// LinkLife is how long a link counts.
const LinkLife = 24 * time.Hour

// LinkPlace is where the link goes in the text of an e-mail.
const LinkPlace = "{link}"

// Mailing is what the e-mail with a link says. Whoever asks for it knows the language.
type Mailing struct {
	Subject string `json:"subject"`
	// Text has LinkPlace where the link goes.
	Text string `json:"text"`
	// Page is the address that takes the link's token in its query.
	Page string `json:"page"`
}

// content is what is sealed of a pending interaction.
type content struct {
	By     Visitor `json:"by"`
	Wanted Wanted  `json:"wanted"`
	// Mailing is null where too many links went to the address already.
	Mailing *Mailing `json:"mailing"`
}

// Ask keeps what a visitor wants until the link in an e-mail is used. It does the same, in the same
// time, whoever's the address is and whether a link goes to it or too many went there already.
func (s *Service) Ask(ctx context.Context, by Visitor, w Wanted, m Mailing) error {
	if err := s.Check(&w, &by); err != nil {
		return err
	}
	if change.CallerOf(ctx).Organization.PublicClosed {
		return Closed()
	}
	organization := change.CallerOf(ctx).Organization.ID.UUID()
	if err := s.take(ctx, s.bucket("organization", organization[:], organizationLinks, organizationRefill)); err != nil {
		return err
	}
	hash := s.emailHash(by.Email)
	// Of all organizations together: it is one person's mailbox.
	mayMail, err := s.mayMail(ctx, by)
	if err != nil {
		return err
	}
	kept := content{By: by, Wanted: w, Mailing: &m}
	if !mayMail {
		kept.Mailing = nil
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return errors.Wrap(err, "encode the interaction")
	}
	id, at := publicid.NewInteraction(), store.Now()
	token := sha256.Sum256([]byte(s.token(id)))
	return s.changes.Run(ctx, func(c *change.Change) error {
		row := c.Interaction.Create().SetID(id).SetTokenHash(token[:]).SetEmailHash(hash).
			SetContentSealed(s.secrets.SealApart(id.String(), string(text))).SetCreatedAt(at).SetDueAt(at).SetExpiresAt(at.Add(LinkLife))
		if err := row.Exec(ctx); err != nil {
			return errors.Wrap(err, "insert the interaction")
		}
		c.AskToConfirm(change.PendingInteraction{Interaction: id, Organization: c.Caller.Organization.ID})
		return nil
	})
}

// token is what stands in the link to an interaction. It is kept nowhere.
func (s *Service) token(id publicid.Interaction) string {
	mac := hmac.New(sha256.New, s.linkKey)
	raw := id.UUID()
	mac.Write(raw[:])
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Pending is what a link is for, and by whom, as they said. One that was used, is over, or never was
// is problem.NotFound, as is one of another organization.
func (s *Service) Pending(ctx context.Context, token string) (*Wanted, *Visitor, error) {
	found, err := live(ctx, s.store.Client().Interaction.Query(), token)
	if err != nil {
		return nil, nil, err
	}
	kept, err := s.opened(found)
	if err != nil {
		return nil, nil, err
	}
	return &kept.Wanted, &kept.By, nil
}

// Confirmed is what became of a link.
type Confirmed struct {
	By   Visitor
	Kind Kind
	*Done
}

// Confirm does what a link is for, or keeps it until somebody has looked at it. The interaction is
// used up in the transaction of what it does, so it counts once or not at all. It is problem.NotFound as Pending is, and where the post or the
// board is gone or isn't public any more. The opt-in is given here and not before, by who has the
// mailbox: anybody may write an address into a form. Language is that of the page.
func (s *Service) Confirm(ctx context.Context, token string, optIn bool, language string) (*Confirmed, error) {
	var done *Confirmed
	err := s.changes.Run(ctx, func(c *change.Change) error {
		found, err := live(ctx, c.Interaction.Query().ForUpdate(), token)
		if err != nil {
			return err
		}
		kept, err := s.opened(found)
		if err != nil {
			return err
		}
		if err := c.Interaction.DeleteOneID(found.ID).Exec(ctx); err != nil {
			return errors.Wrap(err, "use the interaction up")
		}
		kept.Wanted.OptIn, kept.Wanted.Language = optIn, language
		became, err := s.perform(ctx, c, kept.By, kept.Wanted)
		if err != nil {
			return err
		}
		if optIn {
			if err := s.subscribers.Reached(ctx, c, kept.By.Email); err != nil {
				return err
			}
		}
		done = &Confirmed{By: kept.By, Kind: kept.Wanted.Kind, Done: became}
		c.Confirmed(change.PendingInteraction{Interaction: found.ID, Organization: found.OrganizationID})
		failpoint.Hit(failpoint.BeforeConfirmation)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// live finds the interaction of a token whose time isn't up.
func live(ctx context.Context, query *db.InteractionQuery, token string) (*db.Interaction, error) {
	hash := sha256.Sum256([]byte(token))
	found, err := query.Where(interaction.TokenHash(hash[:]), interaction.ExpiresAtGT(store.Now())).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("link")
	}
	if err != nil {
		return nil, errors.Wrap(err, "look for the interaction")
	}
	return found, nil
}

// opened is open for who uses a link. One that was sealed with a key that is gone is over.
func (s *Service) opened(i *db.Interaction) (content, error) {
	kept, err := s.open(i)
	if errors.Is(err, seal.ErrUnreadable) {
		return kept, problem.Missing("link")
	}
	return kept, err
}

func (s *Service) open(i *db.Interaction) (kept content, err error) {
	text, err := s.secrets.OpenApart(i.ID.String(), i.ContentSealed)
	if err != nil {
		return kept, errors.Wrap(err, "open the interaction")
	}
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return kept, errors.Wrap(err, "decode the interaction")
	}
	return kept, nil
}
