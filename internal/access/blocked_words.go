package access

import (
	"context"
	"slices"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/wordlist"
)

const (
	// maxBlockedWords is more than people maintain by hand. Each text of an end-user is compared
	// with the whole list.
	maxBlockedWords = 200
	// maxBlockedWord is the length of a short sentence.
	maxBlockedWord = 80
)

// checkBlockedWords validates the words and removes duplicates.
func checkBlockedWords(bad *problem.Fields, words []string) []string {
	if len(words) > maxBlockedWords {
		bad.Add("blockedWords", "maxItems", "must have at most %d items, not %d", maxBlockedWords, len(words))
	}
	kept, known := []string{}, map[string]bool{}
	for i, word := range words {
		word = strings.TrimSpace(word)
		field, folded := problem.Item("blockedWords", i), wordlist.Folded(word)
		bad.Line(field, word, 1, maxBlockedWord)
		if !known[folded] {
			kept, known[folded] = append(kept, word), true
		}
	}
	return kept
}

// blockedWords returns the words of the organization in the context, in the order in which they
// were given.
func blockedWords(ctx context.Context, lists *db.WordListClient) ([]string, error) {
	found, err := lists.Query().Only(ctx)
	if db.IsNotFound(err) {
		return []string{}, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the blocked words")
	}
	return found.Words, nil
}

// putBlockedWords replaces the words under the lock of the organization. Nil keeps them. Changed
// reports whether the list differs from the old one.
func putBlockedWords(ctx context.Context, c *change.Change, old []string, words *[]string) (changed bool, err error) {
	if words == nil || slices.Equal(old, *words) {
		return false, nil
	}
	n, err := c.WordList.Update().SetWords(*words).SetUpdatedAt(postgres.Now()).Save(ctx)
	if err == nil && n == 0 {
		err = c.WordList.Create().SetWords(*words).Exec(ctx)
	}
	if err != nil {
		return false, errors.Wrap(err, "replace the blocked words")
	}
	return true, nil
}
