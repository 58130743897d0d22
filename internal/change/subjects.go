package change

import (
	"bytes"
	"slices"

	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// idText is the length of a prefix, an underscore and the 26 characters of a public id.
const idText = len("ctc_") + 26

// subjectsOf are the persons and the texts that an answer shows: every contact that it names, and the
// members, posts and comments that it holds as objects. A member who is only named as an author is none
// of them, because the answer tells nothing about that member but an id.
func subjectsOf(body []byte) []uuid.UUID {
	var found []uuid.UUID
	for at := 0; ; {
		next := bytes.IndexByte(body[at:], '"')
		if next < 0 {
			// A text of somebody may hold thousands of ids, so they are sorted and not compared one by one.
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

// subjectOf reads one text of an answer. Own says that it is the id of an object.
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
