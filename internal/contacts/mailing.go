package contacts

import "slices"

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

// MayBeMailed says whether a contact of this provenance may be e-mailed for a purpose: the
// specification's table. Both lists are open; who came in some way that isn't known here may not.
func MayBeMailed(source, consentBasis string, purpose Purpose) Permission {
	if purpose == AccessRequest {
		// The person has asked for it, whatever else we may.
		return Allowed
	}
	switch consentBasis {
	case "sdk_identify":
		return allowedFrom(source, "identify")
	case BasisOptIn:
		return allowedFrom(source, "public_post", "public_vote", "public_comment")
	case "admin_created":
		if source == "admin" {
			return AdminsDecision
		}
	}
	// legacy_inferred among them: whoever was found in old data has agreed to nothing.
	return Refused
}

func allowedFrom(source string, sources ...string) Permission {
	if slices.Contains(sources, source) {
		return Allowed
	}
	return Refused
}
