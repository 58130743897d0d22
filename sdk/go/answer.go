package earshot

import (
	"context"
	"encoding/json"
	"fmt"
)

// kind is the shape of an answer of the service.
type kind int

const (
	kindObject kind = iota // in `data`
	kindList
	kindPage // a list with nextCursor
	kindFeed // a list with nextAfter
)

// of reports whether body has the shape of the service's answer. A proxy's answer has not.
func (k kind) of(body []byte) bool {
	var answer map[string]json.RawMessage
	if json.Unmarshal(body, &answer) != nil || answer["data"] == nil {
		return false
	}
	if k == kindObject {
		return answer["data"][0] == '{'
	}
	if answer["data"][0] != '[' {
		return false
	}
	switch k {
	case kindPage:
		var cursor *string
		return json.Unmarshal(answer["nextCursor"], &cursor) == nil && (cursor == nil || *cursor != "")
	case kindFeed:
		var after *int64
		return json.Unmarshal(answer["nextAfter"], &after) == nil && after != nil
	}
	return true
}

// whole decodes a whole answer.
func whole[T any](ctx context.Context, c *core, r request, options []CallOption) (into T, err error) {
	body, err := c.do(ctx, r, options)
	if err != nil {
		return into, err
	}
	if err := json.Unmarshal(body, &into); err != nil {
		return into, fmt.Errorf("earshot: the answer of %s %s isn't as expected: %w", r.method, r.path, err)
	}
	return into, nil
}

// data decodes the `data` of an answer.
func data[T any](ctx context.Context, c *core, r request, options []CallOption) (into T, err error) {
	envelope, err := whole[struct {
		Data T `json:"data"`
	}](ctx, c, r, options)
	if err != nil {
		return into, err
	}
	return envelope.Data, nil
}
