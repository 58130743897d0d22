package helm_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

var chartDir = filepath.Join("..", "..", "deploy", "helm", "earshot")

// rendered is one object of the chart's output, with the fields that every object has.
type rendered struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`

	yaml []byte
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	require.NoError(t, err)
	return c
}

// render returns the objects that Helm would send to the cluster for these values, and the notes.
// It validates the values against the schema, as helm install does.
func render(t *testing.T, values map[string]any) ([]rendered, string, error) {
	t.Helper()
	c := loadChart(t)
	release := common.ReleaseOptions{Name: "feedback", Namespace: "tools", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, "", err
	}
	var (
		objects []rendered
		notes   string
	)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) == "NOTES.txt" {
			notes = files[name]
			continue
		}
		objects = append(objects, split(t, files[name])...)
	}
	return objects, notes, nil
}

func mustRender(t *testing.T, values map[string]any) []rendered {
	t.Helper()
	objects, notes, err := render(t, values)
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	require.Contains(t, notes, "earshot key create")
	require.NotContains(t, notes, "<no value>")
	for _, o := range objects {
		require.NotContains(t, string(o.yaml), "<no value>")
	}
	return objects
}

// split separates the objects of one file.
func split(t *testing.T, file string) (objects []rendered) {
	t.Helper()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(file)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		o := rendered{yaml: document}
		require.NoError(t, yaml.Unmarshal(document, &o), "%s", document)
		if o.Kind != "" { // a document with only comments has no kind
			objects = append(objects, o)
		}
	}
}

// read returns the values of a YAML document.
func read(t *testing.T, document string) map[string]any {
	t.Helper()
	var values map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(document), &values), "%s", document)
	return values
}

// pick decodes the objects of one kind, by name.
func pick[T any](t *testing.T, objects []rendered, kind string) map[string]*T {
	t.Helper()
	found := map[string]*T{}
	for _, o := range objects {
		if o.Kind == kind {
			into := new(T)
			require.NoError(t, yaml.UnmarshalStrict(o.yaml, into))
			found[strings.TrimPrefix(o.Metadata.Name, "feedback-earshot-")] = into
		}
	}
	return found
}
