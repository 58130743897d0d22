package change

import (
	"bytes"
	"slices"

	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// idText is the length of a public id: a prefix, an underscore and 26 characters.
const idText = len("ctc_") + 26

// subjectsOf returns the persons and texts in an answer: each contact that it names, and the
// members, posts and comments that it contains as objects. A member that is only named as an author
// is left out, because the answer has only that member's id.
func subjectsOf(body []byte) []uuid.UUID {
	var found []uuid.UUID
	for at := 0; ; {
		next := bytes.IndexByte(body[at:], '"')
		if next < 0 {
			// A user's text may contain thousands of ids, so sort them instead of comparing each
			// pair.
			slices.SortFunc(found, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
			return slices.Compact(found)
		}
		before := body[:at+next]
		at += next + 1
		if len(body)-at <= idText || body[at+idText] != '"' {
			continue
		}
		if id, ok := subjectOf(string(body[at:at+idText]), bytes.HasSuffix(before, []byte(`"id":`))); ok {
			found = append(found, id)
		}
	}
}

// subjectOf reads one text of an answer. Own is true if the text is an object's own id.
func subjectOf(text string, own bool) (uuid.UUID, bool) {
	if id, err := publicid.Parse[publicid.Contact](text); err == nil {
		return id.UUID(), true
	}
	if !own {
		return uuid.Nil, false
	}
	if id, err := publicid.Parse[publicid.Post](text); err == nil {
		return id.UUID(), true
	}
	if id, err := publicid.Parse[publicid.Comment](text); err == nil {
		return id.UUID(), true
	}
	id, err := publicid.Parse[publicid.User](text)
	return id.UUID(), err == nil
}
