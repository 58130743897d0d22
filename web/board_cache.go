package web

import (
	"context"
	"time"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/web/pagecache"
)

// All pages of a board share some data: the organization with its logo, and the board with its
// tags. The cache reads this data once for all pages that are rendered within a moment. Requests of
// visitors who act bypass the cache.

// workspace is an organization with the time of its logo.
type workspace struct {
	*db.Organization
	// logo is the time of the logo's last change; nil if there is no logo.
	logo *time.Time
}

// shownOn is a board with its tags.
type shownOn struct {
	*db.Board
	tags []*db.Tag
}

// boardCache keeps the organizations and boards that pages show.
type boardCache struct {
	workspaces *pagecache.Expiring[workspace]
	// names has the ids of organizations by the names in addresses.
	names  *pagecache.Expiring[string]
	boards *pagecache.Expiring[shownOn]
}

const (
	// maxWorkspaces and maxBoards are in bytes, with room for some thousand of each.
	maxWorkspaces = 2 << 20
	maxBoards     = 6 << 20
	maxNames      = 1 << 20
	// nameLife is how long an organization's old slug may count with its id.
	nameLife = time.Hour
	// The approximate size of a loaded row.
	workspaceSize = 1 << 10
	boardSize     = 1 << 10
	tagSize       = 256
)

func newBoardCache() boardCache {
	return boardCache{
		workspaces: pagecache.NewExpiring(maxWorkspaces, func(workspace) (int, bool) { return workspaceSize, true }),
		names:      pagecache.NewExpiring(maxNames, func(id string) (int, bool) { return len(id), true }),
		boards:     pagecache.NewExpiring(maxBoards, func(b shownOn) (int, bool) { return boardSize + tagSize*len(b.tags), true }),
	}
}

// find loads the organization of the address, and the time of its logo's last change.
func (p *Pages) find(ctx context.Context, v *visit, name string) error {
	found, err := pagecache.Shared(ctx, p.workspaces, v.anew, name, func(ctx context.Context) (found workspace, err error) {
		if found.Organization, err = p.Access.Workspace(ctx, name); err != nil {
			return found, err
		}
		found.logo, err = p.Access.LogoChanged(change.WithCaller(ctx, &change.Caller{Organization: found.Organization}))
		return found, err
	})
	if err != nil {
		return err
	}
	v.org, v.logo = found.Organization, found.logo
	p.names.Put(name, v.org.ID.String(), time.Now().Add(nameLife))
	return nil
}

// onBoard loads the board of the address with its tags.
func (p *Pages) onBoard(ctx context.Context, v *visit) (*db.Board, error) {
	slug := v.path("board")
	found, err := pagecache.Shared(ctx, p.boards, v.anew, v.org.ID.String()+"/"+slug, func(ctx context.Context) (found shownOn, err error) {
		if found.Board, err = p.Feedback.PublicBoard(ctx, slug); err != nil {
			return found, err
		}
		tags, err := p.Feedback.Tags(ctx, found.ID, page.Query{})
		found.tags = tags.Items
		return found, err
	})
	v.tags = found.tags
	return found.Board, err
}
