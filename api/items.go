package api

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"earshot/internal/problem"
)

// An operation on many items judges each by itself (x-judged-alone in the contract): what is wrong
// with one stands in its result, as if it had been sent alone.

type refusedItemsKey struct{}

// refusedItems are the items of the request that don't fit the contract, by number.
func refusedItems(ctx context.Context) map[int]error {
	refused, _ := ctx.Value(refusedItemsKey{}).(map[int]error)
	return refused
}

// setApart takes the failures within items out of those of the body, and leaves them for the
// operation. It returns the body with an empty object for each such item, which decodes.
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
	_ = json.Unmarshal(body, &members) // an object with a list, as was judged
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

// inItem splits the name of what stands in an item of a list: contacts[3].email.
func inItem(list, field string) (n int, member string, ok bool) {
	rest, ok := strings.CutPrefix(field, list+"[")
	if !ok {
		return 0, "", false
	}
	number, member, ok := strings.Cut(rest, "].")
	n, err := strconv.Atoi(number)
	return n, member, ok && err == nil
}
