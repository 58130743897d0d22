package api

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"earshot/internal/problem"
)

// An operation on many items validates each item separately (x-judged-alone in the contract). The
// result of a bad item has the error that a separate request would get.

type refusedItemsKey struct{}

// refusedItems returns the errors of the items that don't fit the contract, by index.
func refusedItems(ctx context.Context) map[int]error {
	refused, _ := ctx.Value(refusedItemsKey{}).(map[int]error)
	return refused
}

// setApart moves the failures of single items into the request's context, where the operation reads
// them. It returns the body with an empty object for each such item, which can be decoded.
func (o operation) setApart(c *gin.Context, bad *problem.Fields, body []byte) []byte {
	var whole problem.Fields
	within := map[int]problem.Fields{}
	for _, f := range *bad {
		if n, member, ok := inItem(o.Alone, f.Field); ok {
			f.Field = member
			within[n] = append(within[n], f)
		} else {
			whole = append(whole, f)
		}
	}
	if *bad = whole; len(within) == 0 || len(whole) > 0 {
		return body
	}
	var members map[string]json.RawMessage
	var items []json.RawMessage
	_ = json.Unmarshal(body, &members) // the body is valid apart from its items
	_ = json.Unmarshal(members[o.Alone], &items)
	refused := map[int]error{}
	for n, failures := range within {
		refused[n], items[n] = failures.Err(), json.RawMessage("{}")
	}
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), refusedItemsKey{}, refused))
	members[o.Alone], _ = json.Marshal(items)
	body, _ = json.Marshal(members)
	return body
}

// inItem splits the name of a field in a list item, for example contacts[3].email.
func inItem(list, field string) (n int, member string, ok bool) {
	rest, ok := strings.CutPrefix(field, list+"[")
	if !ok {
		return 0, "", false
	}
	number, member, ok := strings.Cut(rest, "].")
	n, err := strconv.Atoi(number)
	return n, member, ok && err == nil
}
