package interactions

import (
	"context"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/problem"
	"earshot/internal/publicid"
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
}

// Check returns everything that is wrong with a form.
func (w *Wanted) Check(by *Visitor) error {
	by.Email, by.Name = strings.ToLower(strings.TrimSpace(by.Email)), strings.TrimSpace(by.Name)
	var bad problem.Fields
	bad.Line("name", by.Name, 1, maxName)
	bad.Email("email", by.Email)
	// A mailbox of the mail server's own network isn't an end-user's.
	if _, host, _ := strings.Cut(by.Email, "@"); !strings.Contains(host, ".") || strings.HasPrefix(host, "[") {
		bad.Add("email", "format", "must be an e-mail address on the internet")
	}
	w.check(&bad)
	return bad.Err()
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

// perform does what a visitor wants, in the transaction of its caller, and returns the post that
// it is about. Whatever else is to judge what end-users write belongs here.
func (s *Service) perform(ctx context.Context, c *change.Change, by Visitor, w Wanted) (*db.Post, error) {
	if c.Caller.Organization.PublicClosed {
		return nil, Closed()
	}
	who := feedback.Visitor{Email: by.Email, Name: by.Name, OptIn: w.OptIn}
	switch w.Kind {
	case Post:
		return s.feedback.CreateVisitorsPost(ctx, c, w.Board, w.Title, w.Text, who)
	case Vote:
		return s.feedback.CastVisitorsVote(ctx, c, w.Post, who)
	case Comment:
		return s.feedback.CreateVisitorsComment(ctx, c, w.Post, w.Text, who)
	}
	return nil, errors.Errorf("an interaction of the kind %q", w.Kind)
}

// Closed is the problem of an organization that takes nothing from end-users just now.
func Closed() error {
	return problem.New(problem.Forbidden, "The organization takes nothing from the public just now.").With("reason", "public_closed")
}
