package web

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryLanguageHasTheSameMessages(t *testing.T) {
	t.Parallel()
	first := english(t)
	for _, tag := range languages {
		w, err := loadWords(tag)
		require.NoError(t, err)
		require.Equal(t, slices.Sorted(maps.Keys(first.texts)), slices.Sorted(maps.Keys(w.texts)), tag.String())
		for key, text := range w.texts {
			require.NotEmpty(t, strings.TrimSpace(text), "%s: %s", tag, key)
			require.Equal(t, strings.Count(first.texts[key], "{"), strings.Count(text, "{"), "%s: %s", tag, key)
		}
	}
}

// The messages that pages ask for by a key that is made of something.
func composed() (keys []string) {
	for _, s := range statuses {
		keys = append(keys, "status."+string(s))
	}
	for _, s := range []string{"relevance", "newest", "votes", "active"} {
		keys = append(keys, "sort."+s)
	}
	for _, what := range []string{"missing", "busy", "broken"} {
		keys = append(keys, what+".title", what+".text")
	}
	for _, kind := range []string{"post", "vote", "comment"} {
		keys = append(keys, "form."+kind, "form."+kind+".about", "confirm."+kind+".title", "confirm."+kind+".text",
			"confirmed."+kind+".title", "confirmed."+kind+".text", "mail."+kind+".subject", "mail."+kind+".text")
	}
	for _, what := range []string{"sent", "waits", "over", "closed", "full", "tooMuch", "large", "unsubscribed", "nobody"} {
		keys = append(keys, what+".title", what+".text")
	}
	for _, field := range []string{"title", "text", "name", "email"} {
		keys = append(keys, "bad."+field)
	}
	for m := time.January; m <= time.December; m++ {
		keys = append(keys, "month."+strings.TrimPrefix(time.Date(0, m, 1, 0, 0, 0, 0, time.UTC).Format("1"), "0"))
	}
	return keys
}

func TestPagesAskForTheMessagesThatThereAre(t *testing.T) {
	t.Parallel()
	w := english(t)
	asked := map[string]bool{"date": true, "author.customer": true, "author.former": true, "widget.title": true}
	for _, key := range composed() {
		asked[key] = true
	}
	note := func(text, single, counted string) {
		for _, m := range regexp.MustCompile(single).FindAllStringSubmatch(text, -1) {
			asked[m[1]] = true
		}
		for _, m := range regexp.MustCompile(counted).FindAllStringSubmatch(text, -1) {
			asked[m[1]+".one"], asked[m[1]+".other"] = true, true
		}
	}
	require.NoError(t, fs.WalkDir(templateFiles, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := templateFiles.ReadFile(path)
		note(string(file), `[{(]t "([^"]+)"`, `count "([^"]+)"`)
		return err
	}))
	for _, source := range []string{"body.go", "changelog.go", "board.go", "confirm.go", "feed.go", "forms.go", "post.go", "preferences.go", "preview.go", "show.go", "texts.go", "widget.go", "widget_forms.go", "widget_pages.go"} {
		note(read(t, source), `words\.text\("([a-z.A-Z]+)"\)`, `words\.count\("([^"]+)"`)
	}
	for _, m := range regexp.MustCompile(`add\("([a-z]+)"`).FindAllStringSubmatch(read(t, "show.go"), -1) {
		asked[m[1]] = true
	}
	for key := range asked {
		require.Contains(t, w.texts, key, "no such message")
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(asked)), slices.Collect(maps.Keys(w.texts)), "and for no others")
}

func TestMomentsAreToldInUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 1, 5, 0, 0, time.FixedZone("", 2*60*60))
	german, err := loadWords(languages[1])
	require.NoError(t, err)
	require.Equal(t, "28. Februar 2026, 23:05 UTC", german.date(at))
	require.Equal(t, "February 28, 2026, 23:05 UTC", english(t).date(at))
}
