package feedback

import (
	"bytes"
	"context"
	"slices"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// voter is a member or a contact who votes. Votes with the same address hash belong to the same
// person: a member, a contact or a visitor. The exception: members are distinguished by id, because
// two members may share an address.
type voter struct {
	user    *publicid.User
	contact *db.Contact
	// emailHash is nil for a contact without an address.
	emailHash *[]byte
	// spellings are the hashes of other spellings of the visitor's address.
	spellings [][]byte
	// visitor is set for an end-user on a public board.
	visitor bool
}

func (s *Service) member(u *db.User) voter {
	hash := s.emailHash(u.Email)
	return voter{user: &u.ID, emailHash: &hash}
}

func contactAsVoter(c *db.Contact) voter { return voter{contact: c, emailHash: contactsHash(c)} }

// contactID returns nil for a voter without a contact.
func (v voter) contactID() *publicid.Contact {
	if v.contact == nil {
		return nil
	}
	return &v.contact.ID
}

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
		ID: publicid.NewVote(), OrganizationID: of, PostID: on, CreatedAt: postgres.Now(),
		UserID: v.user, ContactID: v.contactID(), EmailHash: v.emailHash,
	}
}

// own reports whether a vote has the voter's id.
func (v voter) own(of *db.Vote) bool {
	return v.user != nil && change.Same(v.user, of.UserID) || v.contact != nil && change.Same(v.contactID(), of.ContactID)
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

// votesOf returns each person's votes on the post, a vote by the person's own id first. There can be
// several if the votes were cast before the service could match them: the contact had no address
// yet, or an older release did not match members with contacts.
func votesOf(ctx context.Context, c *change.Change, ballots []Ballot) ([][]*db.Vote, error) {
	looks := make([]VoteLook, len(ballots))
	for i, b := range ballots {
		looks[i] = VoteLook{Post: b.on.ID, Member: b.by.user, Contact: b.by.contactID(), Hashes: b.by.hashes()}
	}
	found, err := LookForVotes(ctx, c.Tx, looks)
	if err != nil {
		return nil, err
	}
	for i, b := range ballots {
		if at := slices.IndexFunc(found[i], b.by.own); at > 0 {
			found[i][0], found[i][at] = found[i][at], found[i][0]
		}
	}
	return found, nil
}

// shownOfVoter selects the columns of a contact that the list of votes shows. The metadata may be
// large.
func shownOfVoter(q *db.ContactQuery) {
	q.Select(contact.FieldID, contact.FieldExternalUserID, contact.FieldEmail, contact.FieldName, contact.FieldPlan,
		contact.FieldMrrCents, contact.FieldCurrency)
}
