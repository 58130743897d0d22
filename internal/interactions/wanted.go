package interactions

import (
	"context"
	"net/netip"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Kind is what somebody does on a public board.
type Kind string

// The kinds.
const (
	Post    Kind = "post"
	Vote    Kind = "vote"
	Comment Kind = "comment"
)

// Kinds are all of them.
var Kinds = []Kind{Post, Vote, Comment}

const (
	maxName  = 200 // a contact's
	maxTitle = 200 // a post's
	// MaxText is as long as three pages of a book: more than anybody writes into a form.
	MaxText = 10_000
)

// Visitor is an end-user of an organization's public boards.
type Visitor struct {
	Email string `json:"email"`
	Name  string `json:"name"`
	// From is the network of the present request. It is kept nowhere.
	From netip.Prefix `json:"-"`
}

// Wanted is what a visitor wants to do.
type Wanted struct {
	Kind Kind `json:"kind"`
	// Board is for a new post, Post for a vote and a comment.
	Board publicid.Board `json:"board"`
	Post  publicid.Post  `json:"post"`
	// Title is a post's, Text a post's or a comment's.
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`
	// OptIn is that the visitor has ticked the box. It isn't kept: it counts only from who is known
	// to have the address.
	OptIn bool `json:"-"`
	// Language is that of the page on which the box was ticked.
	Language string `json:"-"`
}

// Check returns everything that is wrong with a form, and with the address in it.
func (s *Service) Check(w *Wanted, by *Visitor) error {
	var bad problem.Fields
	w.checkBy(&bad, by)
	if _, host, _ := strings.Cut(by.Email, "@"); s.disposable.Has(host) {
		bad.Add("email", "disposable", "must not be a disposable address")
	}
	w.check(&bad)
	return bad.Err()
}

func (w *Wanted) checkBy(bad *problem.Fields, by *Visitor) {
	by.Email, by.Name = strings.ToLower(strings.TrimSpace(by.Email)), strings.TrimSpace(by.Name)
	bad.Line("name", by.Name, 1, maxName)
	bad.Email("email", by.Email)
	// A mailbox of the mail server's own network isn't an end-user's.
	if _, host, _ := strings.Cut(by.Email, "@"); !strings.Contains(host, ".") || strings.HasPrefix(host, "[") {
		bad.Add("email", "format", "must be an e-mail address on the internet")
	}
}

func (w *Wanted) check(bad *problem.Fields) {
	w.Title = strings.TrimSpace(w.Title)
	w.Text = strings.TrimSpace(strings.ReplaceAll(w.Text, "\r\n", "\n")) // as forms send the ends of lines
	switch w.Kind {
	case Post:
		bad.Line("title", w.Title, 1, maxTitle)
		bad.Text("text", w.Text, 0, MaxText)
	case Comment:
		bad.Text("text", w.Text, 1, MaxText)
	case Vote:
	}
}

// Done is what became of what a visitor wanted.
type Done struct {
	Board *db.Board
	// Post is what it is about: the new one, or that of a vote or comment. It is nil for a post that
	// waits.
	Post *db.Post
	// Comment is the one that was made, if one was.
	Comment *db.Comment
	// Waits is that somebody has to look at it first.
	Waits bool
}

// perform does what a visitor wants, in the transaction of its caller, or keeps it until somebody
// has looked at it. Whatever else is to judge what end-users write belongs here.
func (s *Service) perform(ctx context.Context, c *change.Change, by Visitor, w Wanted) (*Done, error) {
	if c.Caller.Organization.PublicClosed {
		return nil, Closed()
	}
	at, err := s.place(ctx, c, w)
	if err != nil {
		return nil, err
	}
	reason, err := s.mustWait(ctx, c, at.Board, w)
	if err != nil {
		return nil, err
	}
	who := feedback.Visitor{Spelled: s.feedback.Spelled(by.Email)}
	if w.OptIn {
		who.OptIn = &feedback.OptIn{Email: by.Email, Name: by.Name, Language: w.Language, At: store.Now()}
	}
	if reason != "" {
		return s.hold(ctx, c, at, who, w, reason)
	}
	return s.appear(ctx, c, at, who, w)
}

// place finds where something belongs, and keeps it there: a board, or a post with its board.
func (s *Service) place(ctx context.Context, c *change.Change, w Wanted) (*Done, error) {
	if w.Kind == Post {
		on, err := s.feedback.KeepPublicBoard(ctx, c, w.Board)
		return &Done{Board: on}, err
	}
	p, on, err := s.feedback.LockPublicPost(ctx, c, w.Post)
	return &Done{Board: on, Post: p}, err
}

// appear does it, at its place.
func (s *Service) appear(ctx context.Context, c *change.Change, at *Done, who feedback.Visitor, w Wanted) (_ *Done, err error) {
	switch w.Kind {
	case Post:
		at.Post, err = s.feedback.CreateVisitorsPost(ctx, c, at.Board, w.Title, w.Text, who)
	case Vote:
		err = s.feedback.CastVisitorsVote(ctx, c, at.Post, who)
	case Comment:
		at.Comment, err = s.feedback.CreateVisitorsComment(ctx, c, at.Post, w.Text, who)
	default:
		err = errors.Errorf("an interaction of the kind %q", w.Kind)
	}
	if err == nil && who.OptIn != nil {
		err = s.subscribers.OptIn(ctx, c, who.OptIn.Email, who.OptIn.Language, who.OptIn.At)
	}
	return at, err
}

// Closed is the problem of an organization that takes nothing from end-users just now.
func Closed() error {
	return problem.New(problem.Forbidden, "The organization takes nothing from the public just now.").With("reason", "public_closed")
}
