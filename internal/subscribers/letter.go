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
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// most is as many of a kind as anybody reads in an e-mail.
const most = 100

// Letter is an e-mail to an end-user.
type Letter struct {
	To                  mail.Address
	Subject, Text, HTML string
	// Unsubscribe is the address that ends such e-mails when it is posted to.
	Unsubscribe string
	// NotBefore is zero for an e-mail that may be sent now. Otherwise it is the time of its turn, and the
	// letter is empty: the organization has used up its rate of first e-mails to addresses that only a
	// program has told us.
	NotBefore time.Time
}

// Letter is what an e-mail says that is to be sent now; nil is that nobody is to have it any more. All
// that may keep somebody from being mailed is judged here, right before: who has left, unsubscribed or
// bounced meanwhile gets nothing of a window that had begun.
func (s *Service) Letter(ctx context.Context, of publicid.Organization, m *Pending) (*Letter, error) {
	ctx = store.WithOrganization(ctx, of)
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
	if err != nil || store.Now().Sub(later(m.CreatedAt, slot)) > tooLate {
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
		if slot, err = s.store.TakeFirstMailSlot(ctx, m.EmailHash, firstMailsPerHour); err != nil {
			return nil, err
		}
	}
	if slot.After(store.Now()) {
		return &Letter{NotBefore: slot}, nil
	}
	token := url.Values{"token": {s.token(of, m.EmailHash)}}.Encode()
	// By the id, which stays when the slug changes: these links have no end.
	own := s.settings.PublicOrigin + root + org.ID.String()
	content.Preferences, content.Unsubscribe = own+"/-/preferences?"+token, own+"/-/unsubscribe?"+token
	return s.templates[chosen.Language].write(to.Contact, content)
}

// firstMailsPerHour is how many addresses that only a program has told us an organization may e-mail for
// the first time within an hour. At this rate the operator hears of complaints and bounces long before a
// list of ten thousand strangers is through, and a customer base of a thousand waits for half a day.
const firstMailsPerHour = 100

// addressee is a contact that an e-mail goes to.
type addressee struct {
	*db.Contact
	// optedIn is that somebody has shown that the address is theirs and has agreed.
	optedIn bool
}

// slotOf is from when on the recipient may have the first e-mail; zero is that no slot was taken yet, or
// that the recipient needs none.
func (s *Service) slotOf(ctx context.Context, to *addressee, hash []byte) (time.Time, error) {
	if to.optedIn {
		return time.Time{}, nil
	}
	return s.store.FirstMailSlot(ctx, hash)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// recipient is the oldest contact with the address that may be mailed about what it wanted; nil is none.
func (s *Service) recipient(ctx context.Context, hash []byte) (*addressee, error) {
	suppressed, err := s.store.IsSuppressed(ctx, hash)
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

// sameAddress bounds how many contacts with one address are looked at.
const sameAddress = 100

// root is where the public boards are.
const root = "/b/"

// content is what is told; nil is nothing.
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
		posts, err := s.store.MovedPosts(ctx, m, most+1)
		if err != nil {
			return nil, err
		}
		for _, p := range posts {
			all.Posts = append(all.Posts, news{Link: home + "/" + p.Board + "/" + p.Slug, Title: p.Title, Status: p.Status})
		}
	}
	if chosen.Changelog {
		entries, err := s.store.PublishedEntries(ctx, m, most+1)
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
	all.Posts, all.Entries, all.More = cut(all.Posts), cut(all.Entries), len(all.Posts) > most || len(all.Entries) > most
	return all, nil
}

func cut(all []news) []news { return all[:min(len(all), most)] }

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
		To:      mail.Address{Address: *to.Email}, // without the name, which somebody else may have told us
		Subject: p.subject(c), Text: text.String(), HTML: html.String(), Unsubscribe: c.Unsubscribe,
	}, nil
}
