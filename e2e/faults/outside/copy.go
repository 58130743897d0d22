package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-faster/errors"
)

// maxDiffering bounds how many rows a comparison lists.
const maxDiffering = 5

// Copy is a copy of a list that its sync cursor keeps in step.
type Copy struct {
	api    *API
	path   string
	cursor string
	rows   map[string]string
	// Pages counts the pages that were read.
	Pages int
}

// Copy returns an empty copy of the list at a path without a query.
func (a *API) Copy(path string) *Copy { return &Copy{api: a, path: path, rows: map[string]string{}} }

// Rows returns the number of rows.
func (c *Copy) Rows() int { return len(c.rows) }

// CatchUp applies the changes since the last call.
func (c *Copy) CatchUp(ctx context.Context) error {
	for {
		query := url.Values{"limit": {"100"}, "includeDeleted": {"true"}}
		if c.cursor != "" {
			query.Set("cursor", c.cursor)
		}
		var page struct {
			Data                   []json.RawMessage
			Deleted                []struct{ ID string }
			NextCursor, SyncCursor *string
		}
		if _, err := c.api.send(ctx, http.MethodGet, c.path+"?"+query.Encode(), "", nil, &page); err != nil {
			return err
		}
		if page.SyncCursor == nil {
			return errors.Errorf("a page of %s has no syncCursor", c.path)
		}
		c.Pages++
		for _, row := range page.Data {
			id, err := idOf(row)
			if err != nil {
				return err
			}
			c.rows[id] = string(row)
		}
		for _, gone := range page.Deleted {
			delete(c.rows, gone.ID)
		}
		if c.cursor = *page.SyncCursor; page.NextCursor == nil {
			return nil
		}
	}
}

func idOf(row json.RawMessage) (string, error) {
	var one struct{ ID string }
	if err := json.Unmarshal(row, &one); err != nil {
		return "", errors.Wrap(err, "read a row")
	}
	return one.ID, nil
}

// Differs reads the whole list and returns the differences from the copy.
func (c *Copy) Differs(ctx context.Context) ([]string, error) {
	list := map[string]string{}
	err := c.api.each(ctx, c.path+"?limit=100", func(row json.RawMessage) error {
		id, err := idOf(row)
		list[id] = string(row)
		return err
	})
	if err != nil {
		return nil, err
	}
	return differing(c.rows, list), nil
}

// differing returns the first rows in which a copy differs from a list.
func differing(rows, list map[string]string) (lines []string) {
	for _, id := range slices.Sorted(maps.Keys(list)) {
		if mine, ok := rows[id]; !ok {
			lines = append(lines, fmt.Sprintf("copy: %s is missing", id))
		} else if mine != list[id] {
			lines = append(lines, fmt.Sprintf("copy: %s is %s and not %s", id, mine, list[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		if _, ok := list[id]; !ok {
			lines = append(lines, fmt.Sprintf("copy: %s isn't in the list", id))
		}
	}
	if n := len(lines); n > maxDiffering {
		lines = append(lines[:maxDiffering], fmt.Sprintf("copy: … and %d more", n-maxDiffering))
	}
	return lines
}
