package subscribers

import (
	"bytes"
	"context"
	"net/mail"
	"net/url"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/ratelimit"
)

// maxNews is the maximum number of posts and of entries in an e-mail. Longer lists are not read.
const maxNews = 100

// Letter is an e-mail to an end-user.
type Letter struct {
	To                  mail.Address
	Subject, Text, HTML string
	// Unsubscribe is the URL for a one-click unsubscribe by POST.
	Unsubscribe string
	// NotBefore is zero for an e-mail that may be sent now. Otherwise the letter is empty, and NotBefore
	// is the time of its slot. The organization has then used up its hourly rate of first e-mails to
	// unverified addresses.
	NotBefore time.Time
}

// Letter returns the e-mail to send now, or nil if it is no longer wanted. All checks happen here, right
// before sending. A person who has left, unsubscribed or bounced since the window began therefore gets
// no e-mail.
func (s *Service) Letter(ctx context.Context, of publicid.Organization, m *Pending) (*Letter, error) {
	ctx = postgres.WithOrganization(ctx, of)
	org, err := s.store.Client().Organization.Get(ctx, of)
	if err != nil {
		return nil, errors.Wrap(err, "load the organization")
	}
	if !change.TellsSubscribers(org) || s.settings.PublicOrigin == "" {
		return nil, nil
	}
	to, err := s.recipient(ctx, m.EmailHash)
	if to == nil || err != nil {
		return nil, err
	}
	slot, err := s.slotOf(ctx, to, m.EmailHash)
	if err != nil || postgres.Now().Sub(later(m.CreatedAt, slot)) > tooLate {
		return nil, err
	}
	chosen, err := chosenBy(ctx, s.store.Client(), m.EmailHash)
	if err != nil {
		return nil, err
	}
	content, err := s.content(ctx, org, m, chosen)
	if content == nil || err != nil {
		return nil, err
	}
	if slot.IsZero() && !to.optedIn {
		if slot, err = ratelimit.TakeFirstMailSlot(ctx, s.store, m.EmailHash, firstMailsPerHour); err != nil {
			return nil, err
		}
	}
	if slot.After(postgres.Now()) {
		return &Letter{NotBefore: slot}, nil
	}
	token := url.Values{"token": {s.token(of, m.EmailHash)}}.Encode()
	// These links never expire, so they use the id, which stays when the slug changes.
	own := s.settings.PublicOrigin + root + org.ID.String()
	content.Preferences, content.Unsubscribe = own+"/-/preferences?"+token, own+"/-/unsubscribe?"+token
	return s.templates[chosen.Language].write(to.Contact, content)
}

// firstMailsPerHour is an organization's maximum number of first e-mails to unverified addresses per
// hour. Complaints and bounces then reach the operator long before an organization has e-mailed ten
// thousand strangers. A customer base of a thousand waits for half a day.
const firstMailsPerHour = 100

// addressee is the contact that receives an e-mail.
type addressee struct {
	*db.Contact
	// optedIn is true if the owner of the address has verified it and opted in.
	optedIn bool
}

// slotOf returns the start of the recipient's first-e-mail slot. It is zero if no slot was taken yet, or
// if the recipient needs none.
func (s *Service) slotOf(ctx context.Context, to *addressee, hash []byte) (time.Time, error) {
	if to.optedIn {
		return time.Time{}, nil
	}
	return ratelimit.FirstMailSlot(ctx, s.store, hash)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// recipient returns the oldest contact with the address that may get updates, or nil.
func (s *Service) recipient(ctx context.Context, hash []byte) (*addressee, error) {
	suppressed, err := isSuppressed(ctx, s.store, hash)
	if suppressed || err != nil {
		return nil, err
	}
	found, err := s.store.Client().Contact.Query().Where(contact.EmailHash(hash), contact.EmailNotNil()).
		Order(db.Asc(contact.FieldID)).Limit(sameAddress).
		Select(contact.FieldID, contact.FieldEmail, contact.FieldSource, contact.FieldConsentBasis).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for whom to tell")
	}
	var to *addressee
	for _, c := range found {
		if contacts.MayBeMailed(c.Source, c.ConsentBasis, contacts.Updates) != contacts.Allowed {
			continue
		}
		if to == nil {
			to = &addressee{Contact: c}
		}
		to.optedIn = to.optedIn || c.ConsentBasis == contacts.BasisOptIn
	}
	return to, nil
}

// sameAddress is the maximum number of contacts with one address that a query reads.
const sameAddress = 100

// root is the path of the public boards.
const root = "/b/"

// content returns the content of an e-mail, or nil if there is no news.
func (s *Service) content(ctx context.Context, org *db.Organization, m *Pending, chosen Choice) (*content, error) {
	home := s.settings.PublicOrigin + root + org.ID.String()
	if org.Slug != nil {
		home = s.settings.PublicOrigin + root + *org.Slug
	}
	all := &content{Organization: org.Name, Home: home}
	if org.Color != nil {
		all.Color = *org.Color
	}
	if chosen.StatusUpdates {
		posts, err := movedPosts(ctx, s.store, m, maxNews+1)
		if err != nil {
			return nil, err
		}
		for _, p := range posts {
			all.Posts = append(all.Posts, news{Link: home + "/" + p.Board + "/" + p.Slug, Title: p.Title, Status: p.Status})
		}
	}
	if chosen.Changelog {
		entries, err := publishedEntries(ctx, s.store, m, maxNews+1)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			one := news{Link: home + "/" + e.Board + "/-/changelog/" + e.Slug, Title: e.Title}
			if e.Version != nil {
				one.Version = *e.Version
			}
			all.Entries = append(all.Entries, one)
		}
	}
	if len(all.Posts)+len(all.Entries) == 0 {
		return nil, nil
	}
	all.Posts, all.Entries, all.More = cut(all.Posts), cut(all.Entries), len(all.Posts) > maxNews || len(all.Entries) > maxNews
	return all, nil
}

func cut(all []news) []news { return all[:min(len(all), maxNews)] }

// write fills the templates.
func (p *digestTemplate) write(to *db.Contact, c *content) (*Letter, error) {
	var text, html bytes.Buffer
	if err := p.text.Execute(&text, c); err != nil {
		return nil, errors.Wrap(err, "write an e-mail")
	}
	if err := p.html.Execute(&html, c); err != nil {
		return nil, errors.Wrap(err, "write an e-mail's HTML")
	}
	return &Letter{
		To:      mail.Address{Address: *to.Email}, // without the name, which may not come from the recipient
		Subject: p.subject(c), Text: text.String(), HTML: html.String(), Unsubscribe: c.Unsubscribe,
	}, nil
}
