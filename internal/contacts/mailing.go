package contacts

import (
	"maps"
	"slices"

	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
)

// Purpose is what an e-mail to a contact is for.
type Purpose string

// The purposes.
const (
	// Updates tell of what became of what the person wanted: a status, a published entry.
	Updates Purpose = "updates"
	// Marketing is all else that an organization would like to tell.
	Marketing Purpose = "marketing"
	// AccessRequest answers a data-subject access request.
	AccessRequest Purpose = "access_request"
)

// Permission says whether a contact may be e-mailed.
type Permission string

// The permissions. AdminsDecision is that somebody of the organization has to say so.
const (
	Allowed        Permission = "allowed"
	AdminsDecision Permission = "admins_decision"
	Refused        Permission = "refused"
)

// agreed is the specification's table of who may be e-mailed, by consent basis and source.
var agreed = map[string][]string{
	"sdk_identify": {"identify"},
	BasisOptIn:     {"public_post", "public_vote", "public_comment"},
}

// MayBeMailed says whether a contact of this provenance may be e-mailed for a purpose: the
// specification's table. Both lists are open; who came in some way that isn't known here may not,
// nor may who is of legacy_inferred: whoever was found in old data has agreed to nothing.
func MayBeMailed(source, consentBasis string, purpose Purpose) Permission {
	switch {
	case purpose == AccessRequest:
		// The person has asked for it, whatever else we may.
		return Allowed
	case slices.Contains(agreed[consentBasis], source):
		return Allowed
	case consentBasis == "admin_created" && source == "admin":
		return AdminsDecision
	}
	return Refused
}

// Mailable are the contacts whom MayBeMailed allows to be told what became of what they wanted.
func Mailable() predicate.Contact {
	var allowed []predicate.Contact
	for _, basis := range slices.Sorted(maps.Keys(agreed)) {
		allowed = append(allowed, contact.And(contact.ConsentBasis(basis), contact.SourceIn(agreed[basis]...)))
	}
	return contact.Or(allowed...)
}
