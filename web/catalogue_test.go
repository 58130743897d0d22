package web_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/schema"
)

// statuses returns the statuses of posts.
func statuses() (all []string) {
	for _, f := range (schema.Post{}).Fields() {
		if d := f.Descriptor(); d.Name == "status" {
			for _, one := range d.Enums {
				all = append(all, one.V)
			}
		}
	}
	return all
}

// words returns the messages of the pages, by key.
func words(t *testing.T) (texts map[string]string) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(read(t, "messages/en.json")), &texts))
	return texts
}

// composed returns the message keys that the code builds from parts.
func composed() (keys []string) {
	for _, s := range statuses() {
		keys = append(keys, "status."+s)
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
	for _, what := range []string{"sent", "waits", "over", "closed", "refused", "changed", "full", "tooMuch", "large", "unsubscribed", "nobody"} {
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
	texts := words(t)
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
	templates := os.DirFS("templates")
	require.NoError(t, fs.WalkDir(templates, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := fs.ReadFile(templates, path)
		note(string(file), `[{(]t "([^"]+)"`, `count "([^"]+)"`)
		return err
	}))
	for _, source := range []string{"markup/markup.go", "changelog.go", "board.go", "confirm.go", "feed.go", "forms.go", "post.go", "preferences.go", "preview.go", "show.go", "texts.go", "widget.go", "widget_forms.go", "widget_pages.go"} {
		note(read(t, source), `[wW]ords\.Text\("([a-z.A-Z]+)"\)`, `[wW]ords\.Count\("([^"]+)"`)
	}
	for _, m := range regexp.MustCompile(`add\("([a-z]+)"`).FindAllStringSubmatch(read(t, "show.go"), -1) {
		asked[m[1]] = true
	}
	for key := range asked {
		require.Contains(t, texts, key, "no such message")
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(asked)), slices.Collect(maps.Keys(texts)), "and for no others")
}
