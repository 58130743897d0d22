package feedback

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"strings"

	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/ent/db/contact"
	"earshot/ent/db/organization"
	"earshot/ent/db/post"
	"earshot/ent/db/vote"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// given calls fn where the member has a value, neither left out nor null.
func given[T any](n nullable.Nullable[T], fn func(T)) {
	if v, err := n.Get(); err == nil {
		fn(v)
	}
}

// normalEmail is an address as contacts have it, and as it is hashed.
func normalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// emailHash is what votes and comments are matched with contacts by.
func (s *Service) emailHash(email string) []byte {
	mac := hmac.New(sha256.New, s.settings.EmailHashKey)
	mac.Write([]byte(normalEmail(email)))
	return mac.Sum(nil)
}

// HashAuthors gives votes and comments the hash of their author's address that members
// wrote before they carried it. The database can't: it doesn't have the key. It may be
// stopped and run again at any moment, also in several processes at once.
func (s *Service) HashAuthors(ctx context.Context) error {
	hashed, err := s.store.HashAuthors(ctx, s.emailHash)
	if hashed > 0 {
		s.log.InfoContext(ctx, "hashed the addresses of votes' and comments' authors", "rows", hashed)
	}
	return err
}

// ContactDetail is a contact with what it has done. The vote and comment
// counts are by e-mail address, so they are approximate.
type ContactDetail struct {
	*db.Contact
	PostCount, VoteCount, CommentCount int
}

// Contact loads one contact with its counts.
func (s *Service) Contact(ctx context.Context, id publicid.Contact) (*ContactDetail, error) {
	client := s.store.Client()
	found, err := onlyContact(ctx, client.Contact.Query().Where(contact.ID(id)))
	if err != nil {
		return nil, err
	}
	d := &ContactDetail{Contact: found}
	d.PostCount, err = client.Post.Query().Where(post.ContactID(id), post.DeletedAtIsNil()).Count(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "count posts")
	}
	if found.EmailHash == nil {
		return d, nil
	}
	if d.VoteCount, err = client.Vote.Query().Where(vote.EmailHash(*found.EmailHash)).Count(ctx); err != nil {
		return nil, errors.Wrap(err, "count votes")
	}
	d.CommentCount, err = client.Comment.Query().
		Where(comment.EmailHash(*found.EmailHash), comment.DeletedAtIsNil()).Count(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "count comments")
	}
	return d, nil
}

// mustHaveRoom returns problem.PlanLimit when the plan allows no further
// contact. It locks the organization, so that the cap is exact however many
// come at once; an organization without a cap pays nothing.
func (s *Service) mustHaveRoom(ctx context.Context, c *change) error {
	limit := 0
	switch c.caller.Organization.Plan {
	case organization.PlanFree:
		limit = s.settings.ContactCapFree
	case organization.PlanPro:
		limit = s.settings.ContactCapPro
	default:
		return nil
	}
	if err := c.lockOrganization(ctx); err != nil {
		return err
	}
	n, err := c.Contact.Query().Count(ctx)
	if err != nil {
		return errors.Wrap(err, "count contacts")
	}
	if n >= limit {
		return planLimit("contact", limit, n)
	}
	return nil
}

func (c *change) lockOrganization(ctx context.Context) error {
	if _, err := c.Organization.Query().ForUpdate(noKeyUpdate).Only(ctx); err != nil {
		return errors.Wrap(err, "lock the organization")
	}
	return nil
}

func planLimit(resource string, limit, current int) error {
	return problem.New(problem.PlanLimit, "The organization's plan allows no further "+resource+".").
		With("resource", resource).With("limit", limit).With("current", current)
}

func eventContact(c *db.Contact) event.Contact {
	return event.Contact{
		ID: c.ID, ExternalUserID: c.ExternalUserID, Email: c.Email, Name: c.Name, Plan: c.Plan,
		MRRCents: c.MrrCents, Currency: c.Currency, Source: c.Source, ConsentBasis: c.ConsentBasis,
		Metadata: c.Metadata, FirstSeenAt: c.FirstSeenAt, LastSeenAt: c.LastSeenAt,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

// byExternalID finds a contact by the caller's own id for it, locked.
func (c *change) byExternalID(ctx context.Context, id string) (*db.Contact, error) {
	found, err := c.Contact.Query().Where(contact.ExternalUserID(id)).ForUpdate().Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the contact")
	}
	return found, nil
}
