package event

import (
	"bytes"
	"encoding/json"

	"github.com/go-faster/errors"

	"earshot/internal/publicid"
)

// Erased stands where a text was that a person has erased, and that has to be one.
const Erased = "[erased]"

// ErasedSlug is the slug of a post whose title was erased: the one before was made of it.
func ErasedSlug(post publicid.Post) string { return "erased-" + post.String()[len("pst_"):] }

// SubjectBytes is how much of a payload's beginning has the id of what it is about, and a comment's
// author.
const SubjectBytes = 384

// Subject is the id of what a payload is about, as text, by its beginning: behind the heads, which
// have texts alone, stands the one object, which begins with its id.
func Subject(payload []byte) string {
	_, rest, _ := bytes.Cut(payload, []byte(`:{"id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

// Author is the id of who wrote the comment that a payload is about, as text, by its beginning: it
// stands before the comment's text.
func Author(payload []byte) string {
	_, rest, _ := bytes.Cut(payload, []byte(`"authorUserId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

// Erase is a payload without what it says of a contact, or of a text that somebody wrote: with the
// same members, of which those are null or empty. What tells that a contact is gone stays as it is,
// because its receivers delete by it.
func Erase(t Type, payload []byte) ([]byte, error) {
	switch t {
	case ContactCreated:
		return erased(payload, func(p *ContactCreatedPayload) { p.Contact.erase() })
	case ContactUpdated:
		return erased(payload, func(p *ContactUpdatedPayload) {
			p.Contact.erase()
			for name := range p.Changes {
				p.Changes[name] = Change{}
			}
		})
	case PostCreated:
		return erased(payload, func(p *PostCreatedPayload) { p.Post.erase() })
	case PostStatusChanged:
		return erased(payload, func(p *PostStatusChangedPayload) { p.Post.erase() })
	case CommentCreated:
		return erased(payload, func(p *CommentCreatedPayload) { p.Comment.BodyText = Erased })
	}
	return payload, nil
}

func erased[P any](payload []byte, erase func(*P)) ([]byte, error) {
	var p P
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, errors.New("a payload can't be read") // without the decoder's words, which quote it
	}
	erase(&p)
	out, err := json.Marshal(p)
	if err != nil {
		return nil, errors.Wrap(err, "encode the payload")
	}
	return out, nil
}

func (c *Contact) erase() {
	c.ExternalUserID, c.Email, c.Name, c.Plan, c.MRRCents, c.Currency = nil, nil, nil, nil, nil, nil
	c.Metadata = json.RawMessage("{}")
}

func (p *Post) erase() { p.Title, p.Slug = Erased, ErasedSlug(p.ID) }
