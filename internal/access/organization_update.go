package access

import (
	"bytes"
	"context"
	"image"
	_ "image/jpeg" // what a logo may be
	_ "image/png"
	"regexp"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/logo"
	"earshot/ent/db/organization"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

const (
	maxOrganizationName = 100
	maxOrganizationSlug = 60 // as that of a board, beside which it stands in addresses
	// A logo is on every page, so it has to be small: 64 KiB and twice the pixels of what the
	// densest screens show of it.
	maxLogoBytes  = 64 << 10
	maxLogoPixels = 1024
)

var (
	organizationSlugPattern  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	organizationColorPattern = regexp.MustCompile(`^#[0-9a-f]{6}$`)
)

// OrganizationPatch is what to change of an organization; a nil member stays as it is, and an
// empty slug, colour or logo takes it away.
type OrganizationPatch struct {
	Name, Slug, Color *string
	// Logo is the file.
	Logo []byte
	// PublicClosed has nobody post, vote or comment on the public boards.
	PublicClosed *bool
}

func (in *OrganizationPatch) check() (mediaType string, err error) {
	var bad problem.Fields
	if in.Name != nil {
		trimmed := strings.TrimSpace(*in.Name)
		in.Name = &trimmed
		bad.Text("name", trimmed, 1, maxOrganizationName)
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
	return mediaType, bad.Err()
}

func checkOrganizationSlug(bad *problem.Fields, slug string) {
	bad.Text("slug", slug, 1, maxOrganizationSlug)
	if !organizationSlugPattern.MatchString(slug) {
		bad.Add("slug", "pattern", "must be lower-case letters and digits in groups joined by single hyphens")
	}
}

// checkLogo returns the media type of a picture. Pictures that could hold a script, as SVG, are none.
func checkLogo(bad *problem.Fields, file []byte) (mediaType string) {
	if len(file) > maxLogoBytes {
		bad.Add("logo", "maxLength", "must have at most %d bytes, not %d", maxLogoBytes, len(file))
		return ""
	}
	picture, format, err := image.DecodeConfig(bytes.NewReader(file))
	switch {
	case err != nil, format != "png" && format != "jpeg": // others may be known to the program
		bad.Add("logo", "format", "must be a PNG or a JPEG")
	case picture.Width > maxLogoPixels || picture.Height > maxLogoPixels:
		bad.Add("logo", "maximum", "must be at most %d pixels wide and high, not %d by %d", maxLogoPixels, picture.Width, picture.Height)
	}
	return "image/" + format
}

// UpdateOrganization changes what its operator may change of the organization in the context. A
// slug that another one has is problem.Conflict.
func (s *Service) UpdateOrganization(ctx context.Context, in OrganizationPatch) (*db.Organization, error) {
	mediaType, err := in.check()
	if err != nil {
		return nil, err
	}
	var changed *db.Organization
	err = s.asOperator(ctx, func(ctx context.Context, c *change.Change) error {
		old, err := c.Organization.Query().ForUpdate(store.NoKeyUpdate).Only(ctx)
		if err != nil {
			return errors.Wrap(err, "load the organization")
		}
		logo, err := putLogo(ctx, c, mediaType, in.Logo)
		if err != nil {
			return err
		}
		update := c.Organization.UpdateOne(old)
		change.Differs(in.Name, old.Name, update.SetName)
		change.Differs(in.PublicClosed, old.PublicClosed, update.SetPublicClosed)
		setOrClear(in.Slug, old.Slug, update.SetSlug, update.ClearSlug)
		setOrClear(in.Color, old.Color, update.SetColor, update.ClearColor)
		if changed = old; !logo && change.Unchanged(update.Mutation()) {
			return nil
		}
		c.Audit("updateOrganization", old.ID)
		changed, err = update.SetUpdatedAt(store.Now()).Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return slugTaken()
		}
		if err != nil {
			return errors.Wrap(err, "update the organization")
		}
		return nil
	})
	return changed, err
}

func slugTaken() error {
	return problem.New(problem.Conflict, "The slug is already taken.").With("field", "slug")
}

// setOrClear writes nothing where the value is there already.
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

// putLogo replaces the logo; an empty file takes it away, and nil leaves it. Changed says that another
// one was there, or none.
func putLogo(ctx context.Context, c *change.Change, mediaType string, file []byte) (changed bool, err error) {
	if file == nil {
		return false, nil
	}
	old, err := c.Logo.Query().Only(ctx)
	if err != nil && !db.IsNotFound(err) {
		return false, errors.Wrap(err, "load the logo")
	}
	if old == nil && len(file) == 0 || old != nil && old.MediaType == mediaType && bytes.Equal(old.Content, file) {
		return false, nil
	}
	if _, err := c.Logo.Delete().Exec(ctx); err != nil {
		return false, errors.Wrap(err, "remove the logo")
	}
	if len(file) == 0 {
		return true, nil
	}
	if err := c.Logo.Create().SetMediaType(mediaType).SetContent(file).Exec(ctx); err != nil {
		return false, errors.Wrap(err, "insert the logo")
	}
	return true, nil
}

// Workspace loads the organization that an address names, by its slug or its id. It returns
// problem.NotFound for one that isn't there.
func (s *Service) Workspace(ctx context.Context, name string) (*db.Organization, error) {
	ctx = store.System(ctx, "an address names its organization")
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

// Logo is the logo of the organization in the context; nil is none.
func (s *Service) Logo(ctx context.Context) (*db.Logo, error) {
	found, err := s.store.Client().Logo.Query().Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the logo")
	}
	return found, nil
}

// LogoChanged is when the logo of the organization in the context was set; nil is that there is none.
func (s *Service) LogoChanged(ctx context.Context) (*time.Time, error) {
	found, err := s.store.Client().Logo.Query().Select(logo.FieldUpdatedAt).Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "look for the logo")
	}
	return &found.UpdatedAt, nil
}
