// Story shows the first minutes with Earshot: a board, posts, a comment, a vote, and a webhook and the
// feed that report them. It needs EARSHOT_API_KEY and EARSHOT_BASE_URL, and a file that stores the
// position in the feed:
//
//	go run ./examples/story place.txt
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	earshot "earshot/sdk/go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: story FILE")
		os.Exit(2)
	}
	if err := run(ctx, place(os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, "story:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, at place) error {
	c, err := earshot.New(earshot.Options{}) // with EARSHOT_API_KEY and EARSHOT_BASE_URL
	if err != nil {
		return err
	}
	r, err := listen(ctx, c)
	if err != nil {
		return err
	}
	posts, err := write(ctx, c)
	if err != nil {
		return err
	}
	if err := read(ctx, c, posts[0]); err != nil {
		return err
	}
	for range 2 { // the second time simulates a restart after a crash
		if err := follow(ctx, c, at); err != nil {
			return err
		}
	}
	return r.end(ctx, c, len(posts)+1)
}

// write makes a board with posts. One of them gets a comment, a vote and a new status.
func write(ctx context.Context, c *earshot.Client) (posts []*earshot.Post, err error) {
	board, err := c.Boards.Create(ctx, earshot.CreateBoardRequest{Name: "Feature requests"})
	if err != nil {
		return nil, err
	}
	tag, err := c.Tags.Create(ctx, board.ID, earshot.CreateTagRequest{Name: "Export", Color: earshot.Ptr("#2563eb")})
	if err != nil {
		return nil, err
	}
	user := fmt.Sprintf("user-%d", time.Now().UnixNano())
	ada, err := c.Contacts.Identify(ctx, earshot.IdentifyContactRequest{
		ExternalUserID: user, Email: earshot.Some(user + "@example.com"), Plan: earshot.Some("pro"),
	})
	if err != nil {
		return nil, err
	}
	for _, title := range []string{"Export dashboards as PDF", "Dark mode", "Keyboard shortcuts"} {
		post, err := c.Posts.Create(ctx, board.ID, earshot.CreatePostRequest{
			Title: title, ContactID: earshot.Some(ada.ID), TagIDs: []string{tag.ID},
		}, earshot.IdempotencyKey(board.ID+" "+title))
		if err != nil {
			return nil, err
		}
		posts = append(posts, post)
	}
	return posts, discuss(ctx, c, posts[0], ada)
}

func discuss(ctx context.Context, c *earshot.Client, post *earshot.Post, ada *earshot.Contact) error {
	question := earshot.CommentBodyInput{Text: "Which paper size do your readers need?"}
	if _, err := c.Comments.Create(ctx, post.ID, earshot.CreateCommentRequest{Body: question}); err != nil {
		return err
	}
	if _, err := c.Votes.Cast(ctx, post.ID, earshot.CastVoteRequest{ContactID: &ada.ID}); err != nil {
		return err
	}
	var answer earshot.Answer
	if _, err := c.Posts.Get(ctx, post.ID, earshot.WithAnswer(&answer)); err != nil {
		return err
	}
	planned := earshot.UpdatePostRequest{Status: earshot.Ptr(earshot.PostStatusPlanned)}
	_, err := c.Posts.Update(ctx, post.ID, planned, earshot.IfMatch(answer.Header.Get("ETag")))
	return err
}

// read walks through the posts of a board, and requests a post that doesn't exist.
func read(ctx context.Context, c *earshot.Client, first *earshot.Post) error {
	pages := 0
	list := c.Posts.List(ctx, first.BoardID, earshot.ListPostsParams{Limit: 2})
	for _, err := range list.Pages() {
		if err != nil {
			return err
		}
		pages++
	}
	fmt.Println("pages of posts:", pages)
	for post, err := range list.All() {
		if err != nil {
			return err
		}
		fmt.Println("post:", post.Title, post.Status, post.VoteCount, post.CommentCount)
	}

	_, err := c.Posts.Get(ctx, "pst_gone")
	var e *earshot.Error
	if !errors.Is(err, earshot.ErrNotFound) || !errors.As(err, &e) {
		return fmt.Errorf("a post that isn't there: %w", err)
	}
	fmt.Println("not there:", e.Status, e.Code)
	return nil
}
