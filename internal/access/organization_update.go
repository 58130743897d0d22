package access

import (
	"context"
	"regexp"
	"strings"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/organization"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const (
	maxOrganizationName = 100
	maxOrganizationSlug = 60 // as for a board, which follows it in addresses
)

var (
	organizationSlugPattern  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	organizationColorPattern = regexp.MustCompile(`^#[0-9a-f]{6}$`)
)

// OrganizationPatch has the changes of an organization. A nil field keeps the value. An empty slug,
// colour or logo removes it.
type OrganizationPatch struct {
	Name, Slug, Color *string
	// Logo is the content of the file.
	Logo []byte
	// PublicClosed stops posts, votes and comments on the public boards.
	PublicClosed *bool
	// BlockedWords are words that send an end-user's text to moderation.
	BlockedWords *[]string
	// SubscriberMails switches on e-mails that tell end-users about the progress of their posts.
	SubscriberMails *bool
	// SubscriberMailsAllowed lets the organization switch these e-mails on. Only the operator sets
	// it, because the e-mails use the operator's mail server.
	SubscriberMailsAllowed *bool
}

// Organization is an organization's row together with its blocked words.
type Organization struct {
	*db.Organization
	BlockedWords []string
}

func (in *OrganizationPatch) check() (mediaType string, err error) {
	var bad problem.Fields
	if in.Name != nil {
		trimmed := strings.TrimSpace(*in.Name)
		in.Name = &trimmed
		bad.Shown("name", trimmed, 1, maxOrganizationName)
	}
	if in.Slug != nil && *in.Slug != "" {
		checkOrganizationSlug(&bad, *in.Slug)
	}
	if in.Color != nil && *in.Color != "" {
		lower := strings.ToLower(*in.Color)
		in.Color = &lower
		if !organizationColorPattern.MatchString(lower) {
			bad.Add("color", "pattern", "must look like #1d4ed8")
		}
	}
	if len(in.Logo) > 0 {
		mediaType = checkLogo(&bad, in.Logo)
	}
	if in.BlockedWords != nil {
		words := checkBlockedWords(&bad, *in.BlockedWords)
		in.BlockedWords = &words
	}
	return mediaType, bad.Err()
}

func checkOrganizationSlug(bad *problem.Fields, slug string) {
	bad.Text("slug", slug, 1, maxOrganizationSlug)
	if !organizationSlugPattern.MatchString(slug) {
		bad.Add("slug", "pattern", "must be lower-case letters and digits in groups joined by single hyphens")
	}
}

// Organization loads the organization in the context.
func (s *Service) Organization(ctx context.Context) (*Organization, error) {
	return organizationOf(ctx, s.store.Client().Organization, s.store.Client().WordList)
}

func organizationOf(ctx context.Context, organizations *db.OrganizationClient, lists *db.WordListClient) (*Organization, error) {
	row, err := organizations.Query().Only(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the organization")
	}
	words, err := blockedWords(ctx, lists)
	return &Organization{row, words}, err
}

// UpdateOrganization applies the patch to the caller's organization. Only owners and admins may do
// this. A slug of another organization is problem.Conflict.
func (s *Service) UpdateOrganization(
	ctx context.Context, in OrganizationPatch, q change.Request[*Organization],
) (*Organization, error) {
	mediaType, err := in.check()
	if err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*Organization, error) {
		return updateOrganization(ctx, c, in, mediaType, q)
	})
}

// ArrangeOrganization is UpdateOrganization for the operator, in the organization in the context.
func (s *Service) ArrangeOrganization(ctx context.Context, in OrganizationPatch) (changed *Organization, err error) {
	mediaType, err := in.check()
	if err != nil {
		return nil, err
	}
	err = s.asOperator(ctx, func(ctx context.Context, c *change.Change) (err error) {
		changed, err = updateOrganization(ctx, c, in, mediaType, change.Request[*Organization]{})
		return err
	})
	return changed, err
}

func updateOrganization(
	ctx context.Context, c *change.Change, in OrganizationPatch, mediaType string, q change.Request[*Organization],
) (*Organization, error) {
	if err := LockForAdmin(ctx, c); err != nil {
		return nil, err
	}
	old, err := organizationOf(ctx, c.Organization, c.WordList)
	if err != nil {
		return nil, err
	}
	if err := q.CheckIfMatch(c, old); err != nil {
		return nil, err
	}
	if err := in.checkMails(old.Organization); err != nil {
		return nil, err
	}
	logo, err := putLogo(ctx, c, mediaType, in.Logo)
	if err != nil {
		return nil, err
	}
	words, err := putBlockedWords(ctx, c, old.BlockedWords, in.BlockedWords)
	if err != nil {
		return nil, err
	}
	update := c.Organization.UpdateOne(old.Organization)
	change.Differs(in.Name, old.Name, update.SetName)
	change.Differs(in.PublicClosed, old.PublicClosed, update.SetPublicClosed)
	change.Differs(in.SubscriberMails, old.SubscriberMails, update.SetSubscriberMails)
	change.Differs(in.SubscriberMailsAllowed, old.SubscriberMailsAllowed, update.SetSubscriberMailsAllowed)
	setOrClear(in.Slug, old.Slug, update.SetSlug, update.ClearSlug)
	setOrClear(in.Color, old.Color, update.SetColor, update.ClearColor)
	if !logo && !words && change.Unchanged(update.Mutation()) {
		return old, nil
	}
	c.Audit("updateOrganization", old.ID)
	changed := &Organization{BlockedWords: old.BlockedWords}
	if words {
		changed.BlockedWords = *in.BlockedWords
	}
	changed.Organization, err = update.SetUpdatedAt(postgres.Now()).Save(ctx)
	if sqlgraph.IsUniqueConstraintError(err) {
		return nil, slugTaken()
	}
	if err != nil {
		return nil, errors.Wrap(err, "update the organization")
	}
	return changed, nil
}

// checkMails returns problem.Forbidden if a patch switches on e-mails to end-users without the
// operator's permission. A patch that repeats the present setting passes.
func (in *OrganizationPatch) checkMails(old *db.Organization) error {
	allowed := old.SubscriberMailsAllowed
	if in.SubscriberMailsAllowed != nil {
		allowed = *in.SubscriberMailsAllowed
	}
	if in.SubscriberMails == nil || !*in.SubscriberMails || old.SubscriberMails || allowed {
		return nil
	}
	return problem.SubscriberMailsNotAllowed.Problem()
}

func slugTaken() error {
	return problem.New(problem.Conflict, "The slug is already taken.").With("field", "slug")
}

// setOrClear writes only a value that differs from the old one. An empty value clears it.
func setOrClear[Update any](to, old *string, set func(string) Update, unset func() Update) {
	switch {
	case to == nil:
	case *to == "":
		if old != nil {
			unset()
		}
	case old == nil || *old != *to:
		set(*to)
	}
}

// Workspace loads the organization that an address names by slug or id. If there is none, it
// returns problem.NotFound.
func (s *Service) Workspace(ctx context.Context, name string) (*db.Organization, error) {
	ctx = s.store.Across("an address names its organization").Context(ctx)
	query := s.store.Client().Organization.Query()
	if id := publicid.Read[publicid.Organization](name); !id.IsZero() {
		query.Where(organization.ID(id))
	} else if organizationSlugPattern.MatchString(name) {
		query.Where(organization.Slug(name))
	} else {
		return nil, problem.Missing("organization")
	}
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("organization")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the organization")
	}
	return found, nil
}
