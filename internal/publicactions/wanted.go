package publicactions

import (
	"context"
	"net/netip"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Kind is the kind of a visitor's action on a public board.
type Kind string

// The kinds.
const (
	Post    Kind = "post"
	Vote    Kind = "vote"
	Comment Kind = "comment"
)

// Kinds lists all kinds.
var Kinds = []Kind{Post, Vote, Comment}

const (
	maxName  = 200 // a contact's
	maxTitle = 200 // a post's
	// MaxText is the maximum length of a text, about three pages of a book. It is ample for a form.
	MaxText = 10_000
)

// Sender is an end-user of an organization's public boards.
type Sender struct {
	Email string `json:"email"`
	Name  string `json:"name"`
	// From is the network of the current request. It is stored only as the hash in a submission.
	From netip.Prefix `json:"-"`
}

// Wanted is an action that a visitor requests.
type Wanted struct {
	Kind Kind `json:"kind"`
	// Board is set for a new post, Post for a vote or comment.
	Board publicid.Board `json:"board"`
	Post  publicid.Post  `json:"post"`
	// Title is set for a post, Text for a post or comment.
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`
	// OptIn is true if the visitor has ticked the box. It is not stored, because it counts only from a
	// visitor with a verified address.
	OptIn bool `json:"-"`
	// Language is the language of the page with the box.
	Language string `json:"-"`
}

// Check returns all problems of a form and of the address in it.
func (s *Service) Check(w *Wanted, by *Sender) error {
	var bad problem.Fields
	w.checkBy(&bad, by)
	if _, host, _ := strings.Cut(by.Email, "@"); s.disposable.Has(host) {
		bad.Add("email", "disposable", "must not be a disposable address")
	}
	w.check(&bad)
	return bad.Err()
}

func (w *Wanted) checkBy(bad *problem.Fields, by *Sender) {
	by.Email, by.Name = strings.ToLower(strings.TrimSpace(by.Email)), strings.TrimSpace(by.Name)
	bad.Line("name", by.Name, 1, maxName)
	bad.Email("email", by.Email)
	// An address without a public domain belongs to the mail server's own network and to no end-user.
	if _, host, _ := strings.Cut(by.Email, "@"); !strings.Contains(host, ".") || strings.HasPrefix(host, "[") {
		bad.Add("email", "format", "must be an e-mail address on the internet")
	}
}

func (w *Wanted) check(bad *problem.Fields) {
	w.Title = strings.TrimSpace(w.Title)
	w.Text = strings.TrimSpace(strings.ReplaceAll(w.Text, "\r\n", "\n")) // forms send lines with \r\n
	switch w.Kind {
	case Post:
		bad.Line("title", w.Title, 1, maxTitle)
		bad.Text("text", w.Text, 0, MaxText)
	case Comment:
		bad.Text("text", w.Text, 1, MaxText)
	case Vote:
	}
}

// Done is the result of a visitor's action.
type Done struct {
	Board *db.Board
	// Post is the new post, or the post of a vote or comment. It is nil for a post that waits for
	// moderation.
	Post *db.Post
	// Comment is the new comment, if any.
	Comment *db.Comment
	// Waits is true if the action waits for moderation.
	Waits bool
}

// perform executes a visitor's action in the caller's transaction, or puts it into the moderation
// queue. Further checks on the texts of end-users belong here.
func (s *Service) perform(ctx context.Context, c *change.Change, by Sender, w Wanted) (*Done, error) {
	if c.Caller.Organization.PublicClosed {
		return nil, problem.PublicClosed.Problem()
	}
	who := feedback.Visitor{Spelled: s.feedback.Spelled(by.Email)}
	if w.OptIn {
		who.OptIn = &feedback.OptIn{Email: by.Email, Name: by.Name, Language: w.Language, At: postgres.Now()}
	}
	at, err := s.place(ctx, c, w, who)
	if err != nil {
		return nil, err
	}
	reason, err := s.mustWait(ctx, c, at.Board, w)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return s.hold(ctx, c, at, who, by.From, w, reason)
	}
	return s.appear(ctx, c, at, who, w)
}

// target is the locked place of an action, which passed the gate of its kind.
type target struct {
	Done
	board   feedback.PostableBoard
	ballot  feedback.Ballot
	comment feedback.CommentablePost
}

// place locks the target of an action: a board, or a post.
func (s *Service) place(ctx context.Context, c *change.Change, w Wanted, who feedback.Visitor) (at *target, err error) {
	at = &target{}
	switch w.Kind {
	case Post:
		at.board, err = s.feedback.KeepForPost(ctx, c, w.Board)
		at.Board = at.board.Shown()
	case Vote:
		at.ballot, err = s.feedback.LockForVote(ctx, c, w.Post, who)
		at.Post, at.Board = at.ballot.Shown()
	case Comment:
		at.comment, err = s.feedback.LockForComment(ctx, c, w.Post)
		at.Post, at.Board = at.comment.Shown()
	default:
		err = errors.Errorf("an interaction of the kind %q", w.Kind)
	}
	return at, err
}

// appear executes the action at its place.
func (s *Service) appear(ctx context.Context, c *change.Change, at *target, who feedback.Visitor, w Wanted) (_ *Done, err error) {
	switch w.Kind {
	case Post:
		at.Post, err = s.feedback.CreateVisitorsPost(ctx, c, at.board, w.Title, w.Text, who)
	case Vote:
		err = s.feedback.CastVisitorsVote(ctx, c, at.ballot)
	case Comment:
		at.Comment, err = s.feedback.CreateVisitorsComment(ctx, c, at.comment, w.Text, who)
	}
	if err == nil && who.OptIn != nil {
		err = s.subscribers.OptIn(ctx, c, who.OptIn.Email, who.OptIn.Language, who.OptIn.At)
	}
	return &at.Done, err
}
