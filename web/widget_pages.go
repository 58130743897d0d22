package web

import "earshot/ent/db"

// frameView is the data of the frame's layout.
type frameView struct {
	// Origins are the origins that may embed the page.
	Origins []string
	// Board is the path of the whole board, which opens in a window of its own.
	Board string
	// Back is the path from a notice to the previous page; empty means no link.
	Back string
	// Newest is the time of the latest entry, on the page of the changelog.
	Newest string
}

// framePath is the path of the board in the widget.
func framePath(o *db.Organization, b *db.Board) string {
	return FrameRoot + workspacePath(o)[len(Root):] + "/" + b.Slug
}

// frameSite returns the common parts of the pages in the widget.
func (v *visit) frameSite(b *db.Board, current string) view {
	at := framePath(v.org, b)
	of := view{Title: b.Name + " – " + v.org.Name, Site: v.org.Name, Board: b.Name, Hidden: true}
	of.Frame = frameView{Origins: v.org.WidgetOrigins, Board: boardPath(v.org, b)}
	if v.org.Color != nil {
		of.Colors = colorsPath(*v.org.Color)
	}
	of.Views = append(of.Views, link{Path: at, Title: v.words.Text("posts"), Current: current == "posts"})
	if b.ShowChangelog {
		of.Views = append(of.Views, link{Path: at + "/-/changelog", Title: v.words.Text("changelog"), Current: current == "changelog"})
	}
	return of
}
