package event

import (
	"bytes"
	"encoding/json"

	"github.com/go-faster/errors"

	"earshot/internal/publicid"
)

// Erased replaces an erased text where the payload requires a text.
const Erased = "[erased]"

// ErasedSlug is the slug of a post whose title was erased, because the old slug was derived from
// the title.
func ErasedSlug(post publicid.Post) string { return "erased-" + post.String()[len("pst_"):] }

// SubjectBytes is the length of a prefix of a payload that always contains the subject's id and,
// for a comment, the author's id.
const SubjectBytes = 384

// Subject reads the id of a payload's object from the beginning of the payload. The head has only
// texts, and the one object after it begins with its id.
func Subject(payload []byte) string {
	_, rest, _ := bytes.Cut(payload, []byte(`:{"id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

// Author reads the id of a comment's author from the beginning of the payload. It stands before the
// comment's text.
func Author(payload []byte) string {
	_, rest, _ := bytes.Cut(payload, []byte(`"authorUserId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

// Erase removes the data of a contact, or a text that a person wrote, from a payload. The members
// stay, but are null or empty. A contact.deleted event stays as it is, because receivers need it to
// delete their copy.
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
		return nil, errors.New("a payload can't be read") // without the decoder's message, which quotes the payload
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
