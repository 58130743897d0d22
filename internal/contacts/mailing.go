package contacts

import (
	"maps"
	"slices"

	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
)

// Purpose is the purpose of an e-mail to a contact.
type Purpose string

// The purposes.
const (
	// Updates are e-mails about progress that the person asked for: a status, a published entry.
	Updates Purpose = "updates"
	// Marketing is all other e-mail of an organization.
	Marketing Purpose = "marketing"
	// AccessRequest answers a data-subject access request.
	AccessRequest Purpose = "access_request"
)

// Permission is the answer of MayBeMailed.
type Permission string

// The permissions. AdminsDecision means that a member of the organization must decide.
const (
	Allowed        Permission = "allowed"
	AdminsDecision Permission = "admins_decision"
	Refused        Permission = "refused"
)

// agreed is the specification's table of the contacts that may be e-mailed, by consent basis and
// source.
var agreed = map[string][]string{
	"sdk_identify": {"identify"},
	BasisOptIn:     {"public_post", "public_vote", "public_comment"},
}

// MayBeMailed returns whether a contact of this provenance may be e-mailed for a purpose, by the
// specification's table. Both lists are open: an unknown source or basis is refused. So is
// legacy_inferred, because a person found in old data has not agreed.
func MayBeMailed(source, consentBasis string, purpose Purpose) Permission {
	switch {
	case purpose == AccessRequest:
		// The person has asked for this e-mail, so it needs no other permission.
		return Allowed
	case slices.Contains(agreed[consentBasis], source):
		return Allowed
	case consentBasis == "admin_created" && source == "admin":
		return AdminsDecision
	}
	return Refused
}

// Mailable matches the contacts that MayBeMailed allows to get updates.
func Mailable() predicate.Contact {
	var allowed []predicate.Contact
	for _, basis := range slices.Sorted(maps.Keys(agreed)) {
		allowed = append(allowed, contact.And(contact.ConsentBasis(basis), contact.SourceIn(agreed[basis]...)))
	}
	return contact.Or(allowed...)
}
