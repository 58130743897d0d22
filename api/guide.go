package api

import (
	"cmp"
	"slices"

	"github.com/gin-gonic/gin"

	"earshot/api/contract"
	"earshot/internal/guide"
)

// serveGuide serves the guide beside the reference. All pages are made at the start, except the
// results of a search.
func (s *server) serveGuide(r gin.IRouter) error {
	g, err := guide.New(described(s.contract))
	if err != nil {
		return err
	}
	pages, err := g.Pages()
	if err != nil {
		return err
	}
	for path, page := range pages {
		r.GET(path, public, document(typeHTML, guidePolicy, page))
	}
	r.GET(guide.Style, public, document(typeCSS, guidePolicy, guide.Stylesheet))
	r.GET(guide.Search, public, func(c *gin.Context) {
		page, err := g.Find(c.Query("q"))
		if err != nil {
			s.refuse(c, err)
			return
		}
		document(typeHTML, guidePolicy, page)(c)
	})
	return nil
}

// described returns the contract's operations for the guide's search, sorted by path.
func described(c *contract.Contract) []guide.Operation {
	type placed struct {
		place string
		guide.Operation
	}
	var all []placed
	for path, item := range c.Doc.Paths.Map() {
		for method, o := range item.Operations() {
			all = append(all, placed{path + " " + method, guide.Operation{
				ID: o.OperationID, Summary: o.Summary, Text: method + " " + path + " " + o.Description,
			}})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	operations := make([]guide.Operation, len(all))
	for i, p := range all {
		operations[i] = p.Operation
	}
	return operations
}
