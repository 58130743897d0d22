package subscribers

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/post"
)

// full returns the content of an e-mail with every possible part.
func full() *content {
	c := &content{
		Organization: "Northwind", Color: "#0f766e", Home: "https://feedback.example.com/b/northwind", More: true,
		Entries:     []news{{Link: "https://feedback.example.com/e", Title: "Night is here", Version: "2.4"}},
		Preferences: "https://feedback.example.com/p?token=x", Unsubscribe: "https://feedback.example.com/u?token=x",
	}
	for _, status := range statuses {
		c.Posts = append(c.Posts, news{Link: "https://feedback.example.com/" + string(status), Title: "Dark mode", Status: string(status)})
	}
	return c
}

var statuses = []post.Status{
	post.StatusOpen, post.StatusUnderReview, post.StatusPlanned, post.StatusInProgress, post.StatusShipped, post.StatusDeclined, post.StatusDuplicate,
}

func write(t *testing.T, language string, c *content) *Letter {
	t.Helper()
	all, err := loadTemplates()
	require.NoError(t, err)
	to := "ada@example.com"
	l, err := all[language].write(&db.Contact{Email: &to}, c)
	require.NoError(t, err)
	return l
}

func TestEveryLanguageHasTheSameWords(t *testing.T) {
	t.Parallel()
	all, err := loadTemplates()
	require.NoError(t, err)
	first := all[Languages[0]].words
	for _, status := range statuses {
		require.Contains(t, first, "status."+string(status))
	}
	for language, p := range all {
		require.Equal(t, slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(p.words)), language)
		for key, text := range p.words {
			require.NotEmpty(t, strings.TrimSpace(text), "%s: %s", language, key)
			require.Equal(t, strings.Count(first[key], "{}"), strings.Count(text, "{}"), "%s: %s", language, key)
		}
		l := write(t, language, full())
		for key, text := range p.words {
			if before, _, _ := strings.Cut(text, "{}"); key != "subject" {
				require.Contains(t, l.Text, before, "%s: %s", language, key)
				require.Contains(t, l.HTML, before, "%s: %s", language, key)
			}
		}
	}
}

func TestAnEMailLoadsNothingAndLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	l := write(t, "en", full())
	for _, link := range regexp.MustCompile(`https?://[^\s"<]+`).FindAllString(l.Text+l.HTML, -1) {
		require.True(t, strings.HasPrefix(link, "https://feedback.example.com/"), link)
	}
	require.NotRegexp(t, `(?i)<(img|script|link|iframe|form)|@import|url\(`, l.HTML)
	require.Contains(t, l.HTML, "prefers-color-scheme: dark")
}

func TestAColorOrALinkThatIsNoneAddsNoStyleAndNoScript(t *testing.T) {
	t.Parallel()
	c := full()
	c.Color, c.Entries[0].Link = `red; background: url(https://evil.test)`, "javascript:alert(1)"
	l := write(t, "en", c)
	require.NotContains(t, l.HTML, "evil.test")
	require.NotContains(t, l.HTML, `href="javascript:`)
}

func TestTheSubjectHasNoTextThatATenantCanChoose(t *testing.T) {
	t.Parallel()
	const words = "Your invoice is overdue, see evil.test"
	one := news{Link: "https://feedback.example.com/e", Title: words, Version: words, Status: "planned"}
	for _, language := range Languages {
		for _, c := range []*content{
			{Organization: "Northwind", Posts: []news{one}},
			{Organization: "Northwind", Entries: []news{one}},
			{Organization: "Northwind", Posts: []news{one}, Entries: []news{one}},
		} {
			l := write(t, language, c)
			require.NotContains(t, l.Subject, words)
			require.Contains(t, l.Subject, "Northwind", "the operator's words")
			require.Contains(t, l.Text, words)
		}
	}
}

func TestATitleWithLineBreaksIsOneLineOfThePlainText(t *testing.T) {
	t.Parallel()
	c := full()
	c.Posts[0].Title = "Dark\r\nmode\n\nUnsubscribe: https://evil.test"
	require.Contains(t, write(t, "en", c).Text, "Open: Dark mode Unsubscribe: https://evil.test\n")
}
