package feedback

import (
	"bytes"
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
	"earshot/ent/db/vote"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// voter is a member or a contact who votes. Votes with the same address hash belong to the same
// person: a member, a contact or a visitor. The exception: members are distinguished by id, because
// two members may share an address.
type voter struct {
	user    *publicid.User
	contact *publicid.Contact
	// emailHash is nil for a contact without an address.
	emailHash *[]byte
	// spellings are the hashes of other spellings of the visitor's address.
	spellings [][]byte
}

func (s *Service) member(u *db.User) voter {
	hash := s.emailHash(u.Email)
	return voter{user: &u.ID, emailHash: &hash}
}

func contactAsVoter(c *db.Contact) voter { return voter{contact: &c.ID, emailHash: contactsHash(c)} }

// contactsHash returns nil for a contact without an address. Ent reads its hash as a pointer to
// nil.
func contactsHash(c *db.Contact) *[]byte {
	if c.EmailHash == nil || *c.EmailHash == nil {
		return nil
	}
	return c.EmailHash
}

// row returns a vote of the voter.
func (v voter) row(of publicid.Organization, on publicid.Post) *db.Vote {
	return &db.Vote{
		ID: publicid.NewVote(), OrganizationID: of, PostID: on, CreatedAt: store.Now(),
		UserID: v.user, ContactID: v.contact, EmailHash: v.emailHash,
	}
}

// own reports whether a vote has the voter's id.
func (v voter) own(of *db.Vote) bool {
	return v.user != nil && change.Same(v.user, of.UserID) || v.contact != nil && change.Same(v.contact, of.ContactID)
}

// cast reports whether a vote is the voter's, by id or by address.
func (v voter) cast(of *db.Vote) bool {
	sameAddress := of.EmailHash != nil && slices.ContainsFunc(v.hashes(), func(h []byte) bool { return bytes.Equal(h, *of.EmailHash) })
	return v.own(of) || sameAddress && (v.user == nil || of.UserID == nil)
}

// hashes returns the hashes of all spellings of the voter's address.
func (v voter) hashes() [][]byte {
	if v.emailHash == nil {
		return v.spellings
	}
	return append([][]byte{*v.emailHash}, v.spellings...)
}

// votesOf returns a person's votes on a post, a vote by the person's own id first. There can be
// several if the votes were cast before the service could match them: the contact had no address
// yet, or an older release did not match members with contacts.
func votesOf(ctx context.Context, c *change.Change, on publicid.Post, by voter) ([]*db.Vote, error) {
	var either []predicate.Vote
	if by.user != nil {
		either = append(either, vote.UserID(*by.user))
	}
	if by.contact != nil {
		either = append(either, vote.ContactID(*by.contact))
	}
	if hashes := by.hashes(); len(hashes) > 0 {
		either = append(either, vote.EmailHashIn(hashes...))
	}
	found, err := c.Vote.Query().Where(vote.PostID(on), vote.Or(either...)).Order(db.Asc(vote.FieldID)).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for the vote")
	}
	found = slices.DeleteFunc(found, func(v *db.Vote) bool { return !by.cast(v) })
	if at := slices.IndexFunc(found, by.own); at > 0 {
		found[0], found[at] = found[at], found[0]
	}
	return found, nil
}

// shownOfVoter selects the columns of a contact that the list of votes shows. The metadata may be
// large.
func shownOfVoter(q *db.ContactQuery) {
	q.Select(contact.FieldID, contact.FieldExternalUserID, contact.FieldEmail, contact.FieldName, contact.FieldPlan,
		contact.FieldMrrCents, contact.FieldCurrency)
}
