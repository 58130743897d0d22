package contacts

import (
	"context"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/ent/db/contact"
	"earshot/ent/db/organization"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/ent/db/vote"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// normalEmail returns an address in the form that contacts store and that is hashed.
func normalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// ContactDetail is a contact with the numbers of its posts, votes and comments. Votes and comments
// count if they name the contact or have its address.
type ContactDetail struct {
	*db.Contact
	PostCount, VoteCount, CommentCount int
}

// Contact loads one contact with its counts.
func (s *Service) Contact(ctx context.Context, id publicid.Contact) (*ContactDetail, error) {
	client := s.store.Client()
	found, err := OnlyContact(ctx, client.Contact.Query().Where(contact.ID(id)))
	if err != nil {
		return nil, err
	}
	return Detail(ctx, client, found)
}

// Detail adds the counts to a contact.
func Detail(ctx context.Context, client *db.Client, found *db.Contact) (d *ContactDetail, err error) {
	d = &ContactDetail{Contact: found}
	d.PostCount, err = client.Post.Query().Where(post.ContactID(found.ID), post.DeletedAtIsNil()).Count(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "count posts")
	}
	votes, comments := []predicate.Vote{vote.ContactID(found.ID)}, []predicate.Comment{comment.ContactID(found.ID)}
	if found.EmailHash != nil {
		votes, comments = append(votes, vote.EmailHash(*found.EmailHash)), append(comments, comment.EmailHash(*found.EmailHash))
	}
	if d.VoteCount, err = client.Vote.Query().Where(vote.Or(votes...)).Count(ctx); err != nil {
		return nil, errors.Wrap(err, "count votes")
	}
	d.CommentCount, err = client.Comment.Query().Where(comment.Or(comments...), comment.DeletedAtIsNil()).Count(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "count comments")
	}
	return d, nil
}

// mustHaveRoom returns problem.PlanLimit if the plan allows no further contact. It locks the
// organization, so the cap is exact under concurrent requests. An organization without a cap takes
// no lock.
func (s *Service) mustHaveRoom(ctx context.Context, c *change.Change) error {
	limit, n, err := s.lockAndCount(ctx, c)
	if err != nil {
		return err
	}
	if limit > 0 && n >= limit {
		return problem.OverPlan("contact", limit, n)
	}
	return nil
}

// lockAndCount locks the organization and returns the plan's cap and the number of contacts. Without
// a cap it returns zeros.
func (s *Service) lockAndCount(ctx context.Context, c *change.Change) (limit, n int, err error) {
	if limit = s.capOf(c.Caller.Organization.Plan); limit == 0 {
		return 0, 0, nil
	}
	if err := c.LockOrganization(ctx); err != nil {
		return 0, 0, err
	}
	if n, err = c.Contact.Query().Count(ctx); err != nil {
		return 0, 0, errors.Wrap(err, "count contacts")
	}
	return limit, n, nil
}

// capOf returns the maximum number of contacts on a plan, or 0 for no cap.
func (s *Service) capOf(plan organization.Plan) int {
	switch plan {
	case organization.PlanFree:
		return s.settings.CapFree
	case organization.PlanPro:
		return s.settings.CapPro
	default:
		return 0
	}
}

// Describe returns a contact as events contain it.
func Describe(c *db.Contact) event.Contact { return eventContact(c) }

func eventContact(c *db.Contact) event.Contact {
	return event.Contact{
		ID: c.ID, ExternalUserID: c.ExternalUserID, Email: c.Email, Name: c.Name, Plan: c.Plan,
		MRRCents: c.MrrCents, Currency: c.Currency, Source: c.Source, ConsentBasis: c.ConsentBasis,
		Metadata: c.Metadata, FirstSeenAt: c.FirstSeenAt, LastSeenAt: c.LastSeenAt,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}
