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

// voter is a person who votes: a member or a contact. By the hash of the address it is the
// same person as a contact or a voter of the public flow who voted before; only members are
// told apart by their ids, because two of them may have one address.
type voter struct {
	user    *publicid.User
	contact *publicid.Contact
	// emailHash is nil for a contact without an address.
	emailHash *[]byte
	// spellings are further hashes by which a vote is the visitor's: other spellings of the address.
	spellings [][]byte
}

func (s *Service) member(u *db.User) voter {
	hash := s.emailHash(u.Email)
	return voter{user: &u.ID, emailHash: &hash}
}

func contactAsVoter(c *db.Contact) voter { return voter{contact: &c.ID, emailHash: contactsHash(c)} }

// contactsHash is nil for a contact without an address, whose hash Ent reads as a pointer to
// nothing.
func contactsHash(c *db.Contact) *[]byte {
	if c.EmailHash == nil || *c.EmailHash == nil {
		return nil
	}
	return c.EmailHash
}

// row is the voter's vote.
func (v voter) row(of publicid.Organization, on publicid.Post) *db.Vote {
	return &db.Vote{
		ID: publicid.NewVote(), OrganizationID: of, PostID: on, CreatedAt: store.Now(),
		UserID: v.user, ContactID: v.contact, EmailHash: v.emailHash,
	}
}

// own reports whether a vote is the voter's by the id.
func (v voter) own(of *db.Vote) bool {
	return v.user != nil && change.Same(v.user, of.UserID) || v.contact != nil && change.Same(v.contact, of.ContactID)
}

// cast reports whether a vote is the voter's, by the id or by the address.
func (v voter) cast(of *db.Vote) bool {
	sameAddress := of.EmailHash != nil && slices.ContainsFunc(v.hashes(), func(h []byte) bool { return bytes.Equal(h, *of.EmailHash) })
	return v.own(of) || sameAddress && (v.user == nil || of.UserID == nil)
}

// hashes are those by which a vote is the voter's.
func (v voter) hashes() [][]byte {
	if v.emailHash == nil {
		return v.spellings
	}
	return append([][]byte{*v.emailHash}, v.spellings...)
}

// votesOf are the votes of a person on a post, one by the own id first. There is one, unless they
// were put there before it was known that they are one person's: before an address was told, or
// by a program that took a member and a contact for two.
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

// shownOfVoter are the traits of a contact that the list of votes shows. Its metadata may be
// large.
func shownOfVoter(q *db.ContactQuery) {
	q.Select(contact.FieldID, contact.FieldExternalUserID, contact.FieldEmail, contact.FieldName, contact.FieldPlan,
		contact.FieldMrrCents, contact.FieldCurrency)
}
