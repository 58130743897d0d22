package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/go-faster/errors"
)

// Seen is what there is of a public board, by the API's lists.
type Seen struct {
	// Posts are ids by titles, and Comments by texts, of the post that is voted for.
	Posts, Comments map[string][]string
	Votes           []string
	// VoteCount and CommentCount are what that post says of itself.
	VoteCount, CommentCount int
}

// Look reads what there is of a board and of the post that is voted for and commented on.
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

// Made are the ids of what counts, by its kind.
type Made map[Kind][]string

// Judge holds what visitors know of their interactions against the letters, as they were when they came and
// as they are now, and against what there is. An interaction that was confirmed is there once, and any other
// one not at all; each that was accepted has a letter, and no letter has another link than before.
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
