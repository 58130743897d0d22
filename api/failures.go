package api

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"earshot/internal/feedback"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// A request is judged in steps: its query and path, the form of its body, and
// what the domain makes of it. A step that refuses keeps the later ones from
// being taken. So that the answer still names every failure at once, the part
// that was wrong is taken out and the operation is run again on what is left,
// with a context in which it only checks; what it refuses then is added.

// failures are what is wrong with a request so far.
type failures struct {
	fields problem.Fields
	// parts are the parameters and members that the fields belong to.
	parts []string
	// noBody: the body as a whole was refused, so nothing in it is missing.
	noBody bool
	rounds int
}

const (
	failuresKey = "failures"
	// Each round takes at least one part out. No operation has more parameters
	// than this, and the members of a body are taken out together.
	maxRounds = 12
)

func gathered(c *gin.Context) (*failures, bool) {
	v, ok := c.Get(failuresKey)
	if !ok {
		return nil, false
	}
	return v.(*failures), true
}

// gather adds what a step refused and goes on with the next, or answers when
// there is none. Form says that the body wasn't decoded, so that the domain
// hasn't seen it. A problem of another kind, as an id that was put in only to go
// on and leads nowhere, ends it too.
func (s *server) gather(c *gin.Context, p *problem.Error, form bool) {
	all, ok := gathered(c)
	if !ok {
		all = &failures{}
		c.Set(failuresKey, all)
		c.Request = c.Request.WithContext(feedback.CheckOnly(c.Request.Context()))
	}
	all.rounds++
	fresh := all.add(c, p)
	if all.rounds < maxRounds && takeOut(c, fresh, form) {
		c.Handler()(c)
		return
	}
	answer, _ := problem.As(all.fields.Err())
	s.answer(c, answer)
}

// add notes the fields of parts that weren't refused before, and returns the
// names of these parts.
func (f *failures) add(c *gin.Context, p *problem.Error) []string {
	if p == nil || p.Code != problem.Validation {
		return nil
	}
	fields, _ := p.Details["fields"].([]problem.Field)
	var fresh []string
	for _, field := range fields {
		part := partOf(field.Field)
		if slices.Contains(f.parts, part) || (f.noBody && !isParameter(c, part)) {
			continue
		}
		f.fields = append(f.fields, field)
		fresh = append(fresh, part)
	}
	f.parts = append(f.parts, fresh...)
	f.noBody = f.noBody || slices.Contains(fresh, "")
	return fresh
}

// partOf is the parameter or the body's member that a field belongs to:
// events[1] is of events, body.text of body.
func partOf(field string) string {
	if i := strings.IndexAny(field, ".["); i >= 0 {
		return field[:i]
	}
	return field
}

func isParameter(c *gin.Context, name string) bool {
	_, inPath := c.Params.Get(name)
	return inPath || c.Request.URL.Query().Has(name)
}

// wellFormed stands in the path for an id that isn't one. It is nobody's.
var wellFormed = map[string]string{
	"boardId": publicid.Board{}.String(), "tagId": publicid.Tag{}.String(),
	"postId": publicid.Post{}.String(), "contactId": publicid.Contact{}.String(),
	"webhookId": publicid.Webhook{}.String(), "deliveryId": publicid.Delivery{}.String(),
	"commentId": publicid.Comment{}.String(), "entryId": publicid.ChangelogEntry{}.String(),
	"keyId": publicid.APIKey{}.String(), "recoveryId": publicid.Recovery{}.String(),
}

// takeOut leaves a request without the parts, as far as that opens the way to a
// later step, and reports whether it does.
func takeOut(c *gin.Context, parts []string, form bool) bool {
	query := c.Request.URL.Query()
	further := form && len(parts) > 0
	for _, part := range parts {
		if i := slices.IndexFunc(c.Params, func(p gin.Param) bool { return p.Key == part }); i >= 0 {
			c.Params[i].Value, further = wellFormed[part], true
		} else if query.Has(part) {
			query.Del(part)
			further = true
		}
	}
	c.Request.URL.RawQuery = query.Encode()
	raw, _ := c.Get(bodyKey)
	body, _ := raw.([]byte)
	if form {
		body = without(body, parts)
	}
	keepBody(c, body)
	return further
}

// without is a JSON object without some members.
func without(body []byte, names []string) []byte {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(body, &members) != nil {
		return []byte("{}")
	}
	for _, name := range names {
		delete(members, name)
	}
	rest, _ := json.Marshal(members) // of raw messages that were just read
	return rest
}

// keepBody lets the body be read, once more where it was before.
func keepBody(c *gin.Context, body []byte) {
	c.Set(bodyKey, body)
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
}
