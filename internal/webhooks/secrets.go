package webhooks

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/publicid"
	"earshot/internal/seal"
)

// NewBox makes the box that seals webhook secrets and URLs. It seals with the first key and opens
// with all of them.
func NewBox(keys config.SecretKeys) (*seal.Box, error) {
	box := seal.New()
	for _, k := range keys {
		if err := box.Add(k.ID, k.Key); err != nil {
			return nil, err
		}
	}
	return box, nil
}

// ownerOfURL is the owner under which a URL is sealed. It differs from the secret's owner, so that
// neither value opens in place of the other.
func ownerOfURL(id publicid.Webhook) string { return id.String() + ".url" }

func (s *Service) sealURL(id publicid.Webhook, url string) []byte {
	return s.secrets.Seal(ownerOfURL(id), url)
}

// WebhookURL returns the whole URL of a webhook from its row. The row has the URL's origin in plain
// and the whole URL sealed. If the URL was never sealed, the row has the whole URL in plain.
// WebhookURL returns seal.ErrUnreadable if no key opens the URL.
func WebhookURL(box *seal.Box, id publicid.Webhook, plain string, sealed []byte) (string, error) {
	if len(sealed) == 0 {
		return plain, nil
	}
	return box.Open(ownerOfURL(id), sealed)
}

// openURL sets the whole URL in a webhook that was loaded.
func (s *Service) openURL(w *db.Webhook) error {
	whole, err := WebhookURL(s.secrets, w.ID, w.URL, w.URLSealed)
	if err != nil {
		return errors.Wrapf(err, "open the URL of %s", w.ID)
	}
	w.URL = whole
	return nil
}

// rotatePage is the number of webhooks that one transaction of a rotation seals again. The
// transaction takes a few milliseconds, so no delivery waits long for it.
const rotatePage = 100

// Rotation is the result of a rotation.
type Rotation struct {
	// KeyID is the key that should seal everything.
	KeyID string
	// Rotated counts the webhooks that were sealed again. Left counts those that still have a value
	// sealed with another key: the Unreadable ones, and webhooks that other processes made in the
	// meantime. A webhook is Unreadable if its key is unknown or its value is damaged.
	Rotated, Left int
	Unreadable    []publicid.Webhook
}

// RotateSecrets seals every webhook's secret and URL with the first key, unless they already are.
// It may run beside the service. It can be interrupted at any moment and repeated. Changes that a
// webhook gets in the meantime are kept. After each page it calls progress with the number of
// webhooks done so far.
func (s *Service) RotateSecrets(ctx context.Context, progress func(done int)) (Rotation, error) {
	r := Rotation{KeyID: s.secrets.KeyID()}
	for last := (publicid.Webhook{}); ; {
		stale, err := staleSecrets(ctx, s.store, r.KeyID, last, rotatePage)
		if err != nil {
			return r, err
		}
		if len(stale) == 0 {
			break
		}
		changed, missed, err := s.rotatePage(ctx, stale, &r)
		if err != nil {
			return r, err
		}
		if missed == 0 { // otherwise some were changed in the meantime: read the page again
			last = stale[len(stale)-1].Webhook
		}
		r.Rotated += changed
		progress(r.Rotated)
	}
	left, err := countStaleSecrets(ctx, s.store, r.KeyID)
	r.Left = left
	return r, err
}

func (s *Service) rotatePage(ctx context.Context, stale []sealed, r *Rotation) (changed, missed int, err error) {
	var old, fresh []sealed
	for _, o := range stale {
		n, err := s.reseal(o)
		if err != nil {
			if !slices.Contains(r.Unreadable, o.Webhook) {
				r.Unreadable = append(r.Unreadable, o.Webhook)
			}
			continue
		}
		old, fresh = append(old, o), append(fresh, n)
	}
	if len(old) == 0 {
		return 0, 0, nil
	}
	changed, err = reseal(ctx, s.store, old, fresh)
	return changed, len(old) - changed, err
}

func (s *Service) reseal(o sealed) (sealed, error) {
	secret, err := s.secrets.Open(o.Webhook.String(), o.Secret)
	if err != nil {
		return sealed{}, err
	}
	var former []byte
	if o.Former != nil {
		before, err := s.secrets.Open(o.Webhook.String(), o.Former)
		if err != nil {
			return sealed{}, err
		}
		former = s.secrets.Seal(o.Webhook.String(), before)
	}
	url, err := WebhookURL(s.secrets, o.Webhook, o.URL, o.URLSealed)
	if err != nil {
		return sealed{}, err
	}
	return sealed{
		Webhook: o.Webhook, Secret: s.secrets.Seal(o.Webhook.String(), secret), Former: former,
		URLSealed: s.sealURL(o.Webhook, url), URL: change.OriginOf(url),
	}, nil
}

// SecretKey counts the webhooks and the widget secrets that need a key. Readable reports whether this
// process has the key.
type SecretKey struct {
	KeyUse
	Readable bool
}

// SecretKeys lists the keys that the database needs, by name. The empty name stands for webhooks
// whose URL isn't sealed yet.
func (s *Service) SecretKeys(ctx context.Context) ([]SecretKey, error) {
	uses, err := KeyUses(ctx, s.store)
	if err != nil {
		return nil, err
	}
	all := make([]SecretKey, len(uses))
	for i, u := range uses {
		all[i] = SecretKey{KeyUse: u, Readable: u.Key == "" || s.secrets.Readable(u.Key)}
	}
	return all, nil
}

// warnOfUnreadable logs at startup which keys are missing. Otherwise the first sign of it would be
// a postponed delivery. It doesn't prevent the start, because everything else works.
func (s *Service) warnOfUnreadable(ctx context.Context) {
	uses, err := s.SecretKeys(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "didn't learn which sealing keys the database needs", "error", err)
		return
	}
	for _, u := range uses {
		if !u.Readable {
			s.log.WarnContext(ctx, "webhooks or secrets of the widget are sealed with a key that isn't in EARSHOT_SECRET_KEYS",
				"keyId", u.Key, "webhooks", u.Webhooks, "widgetSecrets", u.WidgetSecrets)
		}
	}
}
