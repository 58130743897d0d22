package helm_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	yamlv3 "go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the table of values and the golden anew")

var (
	example = regexp.MustCompile("(?s)\n```yaml\n(.*?)```")
	readme  = filepath.Join(chartDir, "README.md")
)

// examples returns the values in the examples of the docs, by page and number.
func examples(t *testing.T) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for _, page := range []string{readme, filepath.Join("..", "..", "docs", "kubernetes.md")} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for i, match := range example.FindAllStringSubmatch(string(text), -1) {
			found[fmt.Sprintf("%s %d", filepath.Base(page), i+1)] = read(t, match[1])
		}
	}
	require.Greater(t, len(found), 8)
	return found
}

func TestEveryExampleOfTheDocsIsAReleaseThatKubernetesAccepts(t *testing.T) {
	t.Parallel()
	for name, values := range examples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, mustRender(t, values))
		})
	}
}

func TestAnyTwoExamplesOfTheDocsGoTogether(t *testing.T) {
	t.Parallel()
	all := examples(t)
	names := slices.Sorted(maps.Keys(all))
	for i, first := range names {
		for _, second := range names[i+1:] {
			t.Run(first+" and "+second, func(t *testing.T) {
				t.Parallel()
				// As with two --values options, the later one wins.
				values := examples(t)
				check(t, mustRender(t, util.MergeTables(values[second], values[first])))
			})
		}
	}
}

// schema is the part of values.schema.json that the table needs.
type schema struct {
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Items       *schema            `json:"items"`
}

// table returns a row for each value with its default, in the order of values.yaml. The
// descriptions come from the schema.
func table(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	require.NoError(t, err)
	var root schema
	require.NoError(t, json.Unmarshal(text, &root))
	// Helm adds "global" to all charts. It isn't a value of this chart.
	delete(root.Properties, "global")
	text, err = os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	require.NoError(t, err)
	var defaults yamlv3.Node
	require.NoError(t, yamlv3.Unmarshal(text, &defaults))
	var b strings.Builder
	b.WriteString("| value | default | |\n|---|---|---|\n")
	rows(t, &b, "", &root, defaults.Content[0])
	return b.String()
}

func rows(t *testing.T, b *strings.Builder, path string, s *schema, object *yamlv3.Node) {
	t.Helper()
	require.Len(t, object.Content, 2*len(s.Properties), "values.yaml has a default for everything in %s", path)
	for i := 0; i < len(object.Content); i += 2 {
		name, value := strings.TrimPrefix(path+"."+object.Content[i].Value, "."), object.Content[i+1]
		inner := s.Properties[object.Content[i].Value]
		require.NotNil(t, inner, "the schema doesn't know %s", name)
		require.NotEmpty(t, inner.Description, "%s says what it is", name)
		// docs/operating.md lists the names of settings with their defaults.
		if inner.Properties != nil && name != "settings" && name != "secrets" {
			fmt.Fprintf(b, "| **%s** | | %s |\n", name, inner.Description)
			rows(t, b, name, inner, value)
			continue
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, shown(t, value), inner.Description)
		if inner.Items == nil {
			continue
		}
		for _, field := range slices.Sorted(maps.Keys(inner.Items.Properties)) {
			fmt.Fprintf(b, "| `%s[].%s` | | %s |\n", name, field, inner.Items.Properties[field].Description)
		}
	}
}

// shown formats a default as one line of YAML.
func shown(t *testing.T, value *yamlv3.Node) string {
	t.Helper()
	var decoded any
	require.NoError(t, value.Decode(&decoded))
	if decoded == "" {
		return ""
	}
	text, err := json.Marshal(decoded)
	require.NoError(t, err)
	return "`" + strings.Trim(string(text), `"`) + "`"
}

func TestTheReadmeHasATableOfAllValuesWithTheirDefaults(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), "in tools/helm -->\n")
	require.True(t, found)
	now, after, found := strings.Cut(rest, "<!-- end of values")
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(readme, []byte(before+"in tools/helm -->\n"+table(t)+"<!-- end of values"+after), 0o644))
		return
	}
	require.Equal(t, table(t), now, "go test ./... -update in tools/helm writes it")
}

func TestTheChartsDefaultsRenderTheGoldenFile(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, nil)
	check(t, objects)
	var b strings.Builder
	for _, o := range objects {
		b.WriteString("---\n" + strings.Trim(string(o.yaml), "\n-") + "\n")
	}
	golden := filepath.Join("testdata", "defaults.yaml")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
		return
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "go test ./... -update in tools/helm writes it")
}

func TestTheLongestNameOfAReleaseHasRoomForAllNames(t *testing.T) {
	t.Parallel()
	values := read(t, "worker: {autoscaling: {by: cpu}, versions: [{buildId: "+strings.Repeat("1.20-rc", 9)+"}]}")
	values["fullnameOverride"] = strings.Repeat("feedback-", 7)
	check(t, mustRender(t, values))
}

func TestAValueThatDoesNotExistIsRefused(t *testing.T) {
	t.Parallel()
	var root map[string]any
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &root))
	refuses := func(values map[string]any, where string) {
		_, _, err := render(t, values)
		require.ErrorContains(t, err, "mistyped", where)
	}
	refuses(map[string]any{"mistyped": 1}, "at the top")
	for name, value := range root {
		if object, ok := value.(map[string]any); ok && !slices.Contains([]string{"podLabels", "podAnnotations", "nodeSelector", "affinity"}, name) {
			object["mistyped"] = 1
			refuses(map[string]any{name: object}, name)
		}
	}
}
