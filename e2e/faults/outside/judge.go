package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/go-faster/errors"
)

// Seen is the content of a public board in the API's lists.
type Seen struct {
	// Posts maps titles to ids. Comments maps texts to ids, on the post that visitors vote for.
	Posts, Comments map[string][]string
	Votes           []string
	// VoteCount and CommentCount are that post's own counters.
	VoteCount, CommentCount int
}

// Look reads a board, and the post that visitors vote for and comment on.
func (a *API) Look(ctx context.Context, board, post string) (Seen, error) {
	seen := Seen{Posts: map[string][]string{}, Comments: map[string][]string{}}
	var one struct{ VoteCount, CommentCount int }
	if err := a.data(ctx, http.MethodGet, "/v1/posts/"+post, "", nil, &one); err != nil {
		return seen, err
	}
	seen.VoteCount, seen.CommentCount = one.VoteCount, one.CommentCount
	for path, note := range map[string]func(id, title, text string){
		"/v1/boards/" + board + "/posts": func(id, title, _ string) { seen.Posts[title] = append(seen.Posts[title], id) },
		"/v1/posts/" + post + "/comments": func(id, _, text string) {
			seen.Comments[text] = append(seen.Comments[text], id)
		},
		"/v1/posts/" + post + "/votes": func(id, _, _ string) { seen.Votes = append(seen.Votes, id) },
	} {
		err := a.each(ctx, path+"?limit=100", func(raw json.RawMessage) error {
			var row struct {
				ID, Title string
				Body      struct{ Text string }
			}
			if err := json.Unmarshal(raw, &row); err != nil {
				return errors.Wrapf(err, "read a row of %s", path)
			}
			note(row.ID, row.Title, row.Body.Text)
			return nil
		})
		if err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// Made has the ids of the interactions that count, by kind.
type Made map[Kind][]string

// Judge compares the visitors' interactions with the letters and the board. first are the letters
// as they arrived, and now as they are at present. It checks these rules:
//   - A confirmed interaction exists exactly once, and any other one doesn't exist.
//   - Each accepted interaction has a letter.
//   - The link of a letter never changes.
func Judge(interactions []Interaction, first, now map[string]Letter, seen Seen) (made Made, violations []string) {
	complain := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	made = Made{Vote: seen.Votes}
	letters := judgeLetters(first, now, complain)
	votes, comments := 0, 0
	for _, w := range interactions {
		if n := letters[w.Email]; w.Accepted && n == 0 {
			complain("link lost: the form of %s was accepted, and no link was mailed", w.Email)
		} else if n > w.Sent {
			complain("links made up: %s sent the form %d times and got %d links", w.Email, w.Sent, n)
		}
		var found []string
		switch w.Kind {
		case Vote:
			if w.Confirmed {
				votes++
			}
			continue
		case Post:
			found = seen.Posts[w.Words]
		case Comment:
			found, comments = seen.Comments[w.Words], comments+len(seen.Comments[w.Words])
		}
		made[w.Kind] = append(made[w.Kind], found...)
		if w.Confirmed && len(found) != 1 {
			complain("interaction lost: the %s of %s was confirmed and is there %d times", w.Kind, w.Email, len(found))
		} else if !w.Confirmed && len(found) > 0 {
			complain("interaction made up: the %s of %s was not confirmed and is there %d times", w.Kind, w.Email, len(found))
		}
	}
	if len(seen.Votes) != votes {
		complain("votes: %d were confirmed and %d are there", votes, len(seen.Votes))
	}
	if seen.VoteCount != votes || seen.CommentCount != comments {
		complain("counts: the post says %d votes and %d comments, and has %d and %d", seen.VoteCount, seen.CommentCount, votes, comments)
	}
	return made, violations
}

// judgeLetters counts the links that went to each address.
func judgeLetters(first, now map[string]Letter, complain func(format string, args ...any)) map[string]int {
	count, of := map[string]int{}, map[string]string{}
	for name, letter := range now {
		if letter.Link == "" {
			continue
		}
		count[letter.To]++
		if before, ok := first[name]; ok && before != letter {
			complain("link changed: the e-mail %s to %s was sent again with another link", letter.ID, letter.To)
		}
		if other, ok := of[letter.Link]; ok {
			complain("link twice: the e-mails %s and %s have one link", other, letter.ID)
		}
		of[letter.Link] = letter.ID
	}
	for name, letter := range first {
		if _, ok := now[name]; !ok {
			complain("e-mail gone: %s to %s", letter.ID, letter.To)
		}
	}
	return count
}
