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
	"earshot/internal/store"
)

// NewBox makes the box that webhook secrets and URLs are sealed in. The first key
// seals, all of them open.
func NewBox(keys config.SecretKeys) (*seal.Box, error) {
	box := seal.New()
	for _, k := range keys {
		if err := box.Add(k.ID, k.Key); err != nil {
			return nil, err
		}
	}
	return box, nil
}

// ownerOfURL is whom a sealed URL belongs to: not the secret's owner, so that neither
// opens in the other's place.
func ownerOfURL(id publicid.Webhook) string { return id.String() + ".url" }

func (s *Service) sealURL(id publicid.Webhook, url string) []byte {
	return s.secrets.Seal(ownerOfURL(id), url)
}

// WebhookURL is the whole URL of a webhook, from what its row has: the URL's beginning
// and the sealed one, or the whole one where none was sealed yet. It returns
// seal.ErrUnreadable.
func WebhookURL(box *seal.Box, id publicid.Webhook, plain string, sealed []byte) (string, error) {
	if len(sealed) == 0 {
		return plain, nil
	}
	return box.Open(ownerOfURL(id), sealed)
}

// openURL puts the whole URL into a webhook that was loaded.
func (s *Service) openURL(w *db.Webhook) error {
	whole, err := WebhookURL(s.secrets, w.ID, w.URL, w.URLSealed)
	if err != nil {
		return errors.Wrapf(err, "open the URL of %s", w.ID)
	}
	w.URL = whole
	return nil
}

// rotatePage is how many webhooks a rotation seals anew in one transaction: a few
// milliseconds, in which nothing that delivers waits for long.
const rotatePage = 100

// Rotation tells what a rotation did.
type Rotation struct {
	// KeyID is the key that everything is to be sealed with.
	KeyID string
	// Rotated webhooks were sealed anew, Left ones still have something sealed with
	// another key: those that are Unreadable, because their key isn't known or the
	// value is damaged, and those that other processes made meanwhile.
	Rotated, Left int
	Unreadable    []publicid.Webhook
}

// RotateSecrets seals anew, with the first key, every webhook's secret and URL that
// isn't sealed with it. It may run beside the service, end at any moment and be run
// again: what a webhook is changed to meanwhile stays. Progress gets the number of
// webhooks done so far, after each page.
func (s *Service) RotateSecrets(ctx context.Context, progress func(done int)) (Rotation, error) {
	r := Rotation{KeyID: s.secrets.KeyID()}
	for last := (publicid.Webhook{}); ; {
		stale, err := s.store.StaleSecrets(ctx, r.KeyID, last, rotatePage)
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
		if missed == 0 { // else some were changed meanwhile: the page is read again
			last = stale[len(stale)-1].Webhook
		}
		r.Rotated += changed
		progress(r.Rotated)
	}
	left, err := s.store.CountStaleSecrets(ctx, r.KeyID)
	r.Left = left
	return r, err
}

func (s *Service) rotatePage(ctx context.Context, stale []store.Sealed, r *Rotation) (changed, missed int, err error) {
	var old, fresh []store.Sealed
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
	changed, err = s.store.Reseal(ctx, old, fresh)
	return changed, len(old) - changed, err
}

func (s *Service) reseal(o store.Sealed) (store.Sealed, error) {
	secret, err := s.secrets.Open(o.Webhook.String(), o.Secret)
	if err != nil {
		return store.Sealed{}, err
	}
	var former []byte
	if o.Former != nil {
		before, err := s.secrets.Open(o.Webhook.String(), o.Former)
		if err != nil {
			return store.Sealed{}, err
		}
		former = s.secrets.Seal(o.Webhook.String(), before)
	}
	url, err := WebhookURL(s.secrets, o.Webhook, o.URL, o.URLSealed)
	if err != nil {
		return store.Sealed{}, err
	}
	return store.Sealed{
		Webhook: o.Webhook, Secret: s.secrets.Seal(o.Webhook.String(), secret), Former: former,
		URLSealed: s.sealURL(o.Webhook, url), URL: change.OriginOf(url),
	}, nil
}

// KeyUse is how many webhooks need a key, and whether this process has it.
type KeyUse struct {
	store.KeyUse
	Readable bool
}

// SecretKeys tells which keys the database needs, by their names. No key, "", stands
// for webhooks whose URL isn't sealed yet.
func (s *Service) SecretKeys(ctx context.Context) ([]KeyUse, error) {
	uses, err := s.store.KeyUses(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]KeyUse, len(uses))
	for i, u := range uses {
		all[i] = KeyUse{KeyUse: u, Readable: u.Key == "" || s.secrets.Readable(u.Key)}
	}
	return all, nil
}

// warnOfUnreadable says at the start which keys are missing: otherwise the first word
// of it is a delivery that is put off. It keeps nothing from starting, because
// everything else works.
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
