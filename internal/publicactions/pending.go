package publicactions

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/interaction"
	"earshot/internal/change"
	"earshot/internal/failpoint"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
)

// LinkLife is the lifetime of a link.
const linkLife = 24 * time.Hour

// LinkPlace is the placeholder for the link in the text of an e-mail.
const LinkPlace = "{link}"

// Mailing is the content of the e-mail with a link, in the language of the caller's page.
type Mailing struct {
	Subject string `json:"subject"`
	// Text contains LinkPlace.
	Text string `json:"text"`
	// Page is the address of the page that the link opens. The token is added to its query.
	Page string `json:"page"`
}

// content is the sealed part of a pending interaction.
type content struct {
	By     Sender `json:"by"`
	Wanted Wanted `json:"wanted"`
	// Mailing is null if too many links were sent to the address already.
	Mailing *Mailing `json:"mailing"`
}

// Ask stores a visitor's action until the link in an e-mail is used. Its behaviour and duration do not
// depend on the address, so they do not reveal whether a link is sent.
func (s *Service) Ask(ctx context.Context, by Sender, w Wanted, m Mailing) error {
	if err := s.Check(&w, &by); err != nil {
		return err
	}
	if change.CallerOf(ctx).Organization.PublicClosed {
		return problem.PublicClosed.Problem()
	}
	organization := change.CallerOf(ctx).Organization.ID.UUID()
	if err := s.take(ctx, s.bucket("organization", organization[:], organizationLinks, organizationRefill)); err != nil {
		return err
	}
	hash := s.emailHash(by.Email)
	// The limit spans all organizations, because they mail to the same mailbox.
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
	id, at := publicid.NewInteraction(), postgres.Now()
	token := sha256.Sum256([]byte(s.token(id)))
	_, err = change.Run(ctx, s.changes, change.Request[publicid.Interaction]{}, func(c *change.Change) (publicid.Interaction, error) {
		row := c.Interaction.Create().SetID(id).SetTokenHash(token[:]).SetEmailHash(hash).
			SetContentSealed(s.secrets.SealApart(id.String(), string(text))).SetCreatedAt(at).SetDueAt(at).SetExpiresAt(at.Add(linkLife))
		if err := row.Exec(ctx); err != nil {
			return id, errors.Wrap(err, "insert the interaction")
		}
		c.After(Run(id, c.Caller.Organization.ID))
		return id, nil
	})
	return err
}

const confirmWorkflow = "confirm_interaction"

// Run starts the run of an interaction: it mails the link and waits for the confirmation.
func Run(id publicid.Interaction, of publicid.Organization) jobs.Request {
	return jobs.Request{
		Workflow: confirmWorkflow, ID: id.String(), Argument: "interaction",
		Summary: "has somebody confirm a vote, post or comment by e-mail", Organization: of,
	}
}

// ConfirmedRun tells the run of an interaction that it was confirmed.
func ConfirmedRun(id publicid.Interaction) jobs.Request {
	return jobs.Request{
		How: jobs.Tell, Workflow: confirmWorkflow, Signal: "confirmed", ID: id.String(),
	}
}

// token returns the token in the link to an interaction. It is derived and never stored.
func (s *Service) token(id publicid.Interaction) string {
	mac := hmac.New(sha256.New, s.linkKey)
	raw := id.UUID()
	mac.Write(raw[:])
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Pending returns the action of a link and the visitor as entered in the form. A used, expired or
// unknown link is problem.NotFound, and so is one of another organization.
func (s *Service) Pending(ctx context.Context, token string) (*Wanted, *Sender, error) {
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

// Confirmed is the result of a confirmed link.
type Confirmed struct {
	By   Sender
	Kind Kind
	*Done
}

// Confirm performs the action of a link, or puts it into the moderation queue. The same transaction
// deletes the interaction, so the action counts at most once. It returns problem.NotFound as Pending
// does, and if the post or board is gone or no longer public. The opt-in is given here, by the owner
// of the mailbox, because a form accepts any address. The parameter from is the network of the
// request, and language is the language of the page.
func (s *Service) Confirm(ctx context.Context, token string, from netip.Prefix, optIn bool, language string) (*Confirmed, error) {
	return change.Run(ctx, s.changes, change.Request[*Confirmed]{}, func(c *change.Change) (*Confirmed, error) {
		found, err := live(ctx, c.Interaction.Query().ForUpdate(), token)
		if err != nil {
			return nil, err
		}
		kept, err := s.opened(found)
		if err != nil {
			return nil, err
		}
		if err := c.Interaction.DeleteOneID(found.ID).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "use the interaction up")
		}
		kept.Wanted.OptIn, kept.Wanted.Language, kept.By.From = optIn, language, from
		became, err := s.perform(ctx, c, kept.By, kept.Wanted)
		if err != nil {
			return nil, err
		}
		if optIn {
			if err := s.subscribers.Reached(ctx, c, kept.By.Email); err != nil {
				return nil, err
			}
		}
		c.After(ConfirmedRun(found.ID))
		failpoint.Hit(failpoint.BeforeConfirmation)
		return &Confirmed{By: kept.By, Kind: kept.Wanted.Kind, Done: became}, nil
	})
}

// live finds the unexpired interaction of a token.
func live(ctx context.Context, query *db.InteractionQuery, token string) (*db.Interaction, error) {
	hash := sha256.Sum256([]byte(token))
	found, err := query.Where(interaction.TokenHash(hash[:]), interaction.ExpiresAtGT(postgres.Now())).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("link")
	}
	if err != nil {
		return nil, errors.Wrap(err, "look for the interaction")
	}
	return found, nil
}

// opened is open for the user of a link. If the sealing key is gone, the link is no longer valid.
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
