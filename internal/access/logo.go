package access

import (
	"bytes"
	"context"
	"image"
	_ "image/jpeg" // formats that a logo may have
	_ "image/png"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/logo"
	"earshot/internal/change"
	"earshot/internal/problem"
)

const (
	// A logo is on every page, so it has to be small: at most 64 KiB, and twice the pixels that the
	// densest screens display.
	maxLogoBytes  = 64 << 10
	maxLogoPixels = 1024
)

// checkLogo returns the media type of a picture. It refuses formats that can contain scripts, such
// as SVG.
func checkLogo(bad *problem.Fields, file []byte) (mediaType string) {
	if len(file) > maxLogoBytes {
		bad.Add("logo", "maxLength", "must have at most %d bytes, not %d", maxLogoBytes, len(file))
		return ""
	}
	picture, format, err := image.DecodeConfig(bytes.NewReader(file))
	switch {
	case err != nil, format != "png" && format != "jpeg": // other packages may register more formats
		bad.Add("logo", "format", "must be a PNG or a JPEG")
	case picture.Width > maxLogoPixels || picture.Height > maxLogoPixels:
		bad.Add("logo", "maximum", "must be at most %d pixels wide and high, not %d by %d", maxLogoPixels, picture.Width, picture.Height)
	}
	return "image/" + format
}

// putLogo replaces the logo. An empty file removes it, and nil keeps it. Changed reports whether
// the new logo differs from the old one.
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

// Logo returns the logo of the organization in the context, or nil.
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

// LogoChanged returns the time at which the organization's logo was set, or nil without a logo.
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
