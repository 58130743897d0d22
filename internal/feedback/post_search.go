package feedback

import (
	"context"
	"slices"

	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// Relevance has two steps. The first step finds the posts with all words in the title. The second
// step finds the posts that have the words only in the title and the text together. Within a step, a
// page is a page by id, however many posts match.
const (
	titleTier int64 = iota + 1
	textTier
)

// search returns the search in one part of a board's posts.
func (s *Service) search(on publicid.Board, in checkedPostQuery, part part) page.Search[predicate.Post, *listedPost] {
	list := in.rows(on)
	return page.Search[predicate.Post, *listedPost]{
		List: list.Where, Order: list.Order, Match: postMatches(in.q, part),
		Query: func(ctx context.Context, limit, offset int, where ...predicate.Post) ([]*listedPost, error) {
			return s.readPosts(ctx, page.Selection[predicate.Post]{
				Where: where, Order: list.Order, Also: list.Also, Limit: limit, Offset: offset, Most: page.FirstRead,
			})
		},
		Holding: func(ctx context.Context, limit int) (postgres.UuidArray, error) {
			return PostsHolding(ctx, s.store, on, in.q, part, limit)
		},
	}
}

// relevance is a page of the list by relevance, as far as the search got.
type relevance struct {
	rows []*listedPost
	// stopped is the post at which a step stopped before the end of the list.
	stopped **listedPost
	tier    int64
}

// relevant runs the steps of relevance until the page is full.
func (s *Service) relevant(ctx context.Context, on publicid.Board, in checkedPostQuery) (page.Page[*listedPost], postPlace, error) {
	var found relevance
	var err error
	if in.tier == titleTier && in.last == nil {
		found, err = s.mostRelevant(ctx, on, in)
	} else {
		found, err = s.relevantFrom(ctx, on, in, nil)
	}
	if err != nil {
		return page.Page[*listedPost]{}, nil, err
	}
	place := func(p *listedPost) []string {
		if p.InTitle {
			return inTier(titleTier, p)
		}
		return inTier(textTier, p)
	}
	if found.stopped != nil {
		next := page.Cursor(in.list, inTier(found.tier, *found.stopped))
		return page.Page[*listedPost]{Items: found.rows, NextCursor: next}, place, nil
	}
	return page.Cut(in.list, found.rows, in.limit, place), place, nil
}

// relevantFrom continues at the query's tier and place, after the rows of earlier tiers.
func (s *Service) relevantFrom(ctx context.Context, on publicid.Board, in checkedPostQuery, rows []*listedPost) (relevance, error) {
	for ; in.tier <= textTier && len(rows) <= in.limit; in.tier, in.last = in.tier+1, nil {
		more, stopped, err := s.search(on, in, partOf(in.tier)).First(ctx, in.limit+1-len(rows))
		if err != nil {
			return relevance{}, err
		}
		rows = append(rows, ofTier(in.tier, more)...)
		if stopped != nil {
			return relevance{rows, stopped, in.tier}, nil
		}
	}
	return relevance{rows: rows}, nil
}

// mostRelevant is relevantFrom from the beginning. One look at the newest posts finds the matches
// of both steps. In most cases this is the whole page, or the part of one step.
func (s *Service) mostRelevant(ctx context.Context, on publicid.Board, in checkedPostQuery) (relevance, error) {
	wanted := in.limit + 1
	list := in.rows(on)
	seen, err := s.readPosts(ctx, page.Selection[predicate.Post]{
		Where: []predicate.Post{firstFound(page.FirstLook, list.Where, list.Order, in.q)},
		Order: titlesFirst + list.Order, Also: []string{inTitle}, Limit: wanted, Most: page.FirstRead,
	})
	if err != nil {
		return relevance{}, err
	}
	titles := slices.IndexFunc(seen, func(p *listedPost) bool { return !p.InTitle })
	if titles < 0 {
		titles = len(seen)
	}
	byTitle := s.search(on, in, title)
	if len(seen) < wanted {
		if end, err := byTitle.At(ctx, page.FirstLook); err != nil || end == nil {
			return relevance{rows: seen}, err
		}
	}
	if titles == wanted {
		return relevance{rows: seen}, nil
	}
	rows, stopped, err := byTitle.Further(ctx, wanted, titles)
	rows = ofTier(titleTier, rows)
	if err != nil || stopped != nil || len(rows) >= wanted {
		return relevance{rows, stopped, titleTier}, err
	}
	texts, lacking := seen[titles:], wanted-len(rows)
	if len(texts) < lacking {
		texts, stopped, err = s.search(on, in, notTitle).Further(ctx, lacking, len(texts))
	}
	rows = append(rows, ofTier(textTier, texts[:min(len(texts), lacking)])...)
	return relevance{rows, stopped, textTier}, err
}

func partOf(tier int64) part {
	if tier == titleTier {
		return title
	}
	return notTitle
}

// ofTier marks the posts with the step that found them.
func ofTier(tier int64, rows []*listedPost) []*listedPost {
	for _, p := range rows {
		p.InTitle = tier == titleTier
	}
	return rows
}

func inTier(tier int64, p *listedPost) []string {
	return []string{page.ByNumber.Write(tier), p.ID.String()}
}
