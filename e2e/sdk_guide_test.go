package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/webhook"
)

// sdkGuide is the guide's page about the SDKs. All samples of one language form one program.
var sdkGuide = filepath.Join(repository, "docs", "api", "sdks.md")

var sdkLanguages = []string{"ts", "python", "go"}

// followsTheGuide runs the program of a language, and the code that calls its receiver, in a
// temporary directory. It compares the output with the page.
func followsTheGuide(t *testing.T, run func(program, dir string, env []string) string, language, calls string) {
	t.Helper()
	const body = `{"event":"post.created","post":{"title":"Grüße"}}`
	dir := t.TempDir()
	said := run(sdkSamples(t, language)+calls, dir, []string{
		"WEBHOOK_SECRET=" + guideSecret, "BODY=" + body, "SIGNATURE=" + webhook.Sign(guideSecret, time.Now(), []byte(body)),
	})
	for _, line := range []string{
		"the same post: [Tt]rue", "Export dashboards as PDF 1", "Dark mode 0", `page of 1 and then (null|None|<nil>)`,
		`ERR_NOT_FOUND \S{8,}`, `\d+ vote\.created`, `Earshot\("identify", "eyJ\S+\.\S+\.\S+"\)`,
		"new: Grüße\nanswered 204\nanswered 400",
	} {
		require.Regexp(t, "(?m)^"+line+"$", said)
	}
	require.Equal(t, 1, strings.Count(said, "page of "), "the walk goes on behind the first page: %s", said)
	place, err := os.ReadFile(filepath.Join(dir, "place"))
	require.NoError(t, err)
	events := regexp.MustCompile(`(?m)^(\d+) \w+\.\w+$`).FindAllStringSubmatch(said, -1)
	require.GreaterOrEqual(t, len(events), 2, said)
	require.Equal(t, events[len(events)-2][1], string(place), "the event that the loop ended at counts as not worked on")
}

// sdkSamples returns the samples of a language. Each section has one for every language, or none.
func sdkSamples(t *testing.T, language string) string {
	t.Helper()
	source, err := os.ReadFile(sdkGuide)
	require.NoError(t, err)
	for _, section := range strings.Split(string(source), "\n## ")[1:] {
		var languages []string
		for _, block := range fenced.FindAllStringSubmatch(section, -1) {
			languages = append(languages, block[1])
		}
		if title, _, _ := strings.Cut(section, "\n"); len(languages) > 0 {
			require.Equal(t, sdkLanguages, languages, title)
		}
	}
	var program strings.Builder
	for _, s := range samples(t, sdkGuide) {
		if s.language == language {
			program.WriteString(s.code)
		}
	}
	require.NotEmpty(t, program.String())
	return program.String()
}
