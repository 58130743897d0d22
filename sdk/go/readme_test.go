package earshot

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goSample = regexp.MustCompile("(?s)```go\n(.*?)```")
	indent   = regexp.MustCompile(`(?m)^\s+`)
)

func TestTheReadmeShowsTheProgramThatIsRun(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	files, err := filepath.Glob("examples/story/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	for _, file := range files {
		program.WriteString(read(file))
	}
	samples := goSample.FindAllStringSubmatch(read("README.md"), -1)
	if len(samples) < 8 {
		t.Fatalf("there are %d samples", len(samples))
	}
	code := indent.ReplaceAllString(program.String(), "")
	for _, sample := range samples {
		if !strings.Contains(code, indent.ReplaceAllString(sample[1], "")) {
			t.Errorf("examples/story has no\n%s", sample[1])
		}
	}
}
