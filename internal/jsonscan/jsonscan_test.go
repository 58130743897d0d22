package jsonscan_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/internal/jsonscan"
	"earshot/internal/testkit/tier"
)

func TestMain(m *testing.M) {
	tier.Properties(100, 30) // as many as in make test-all, because they take milliseconds
	os.Exit(m.Run())
}

// values draws values as encoding/json decodes them.
func values() *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(), rapid.String().AsAny(),
		rapid.SampledFrom([]string{`"`, `\`, `\"`, "{", "]", ",", ":", "\n", ""}).AsAny(),
	)
	all := leaf
	for range 3 { // levels
		all = rapid.OneOf(leaf, rapid.SliceOfN(all, 0, 4).AsAny(), rapid.MapOfN(rapid.String(), all, 0, 4).AsAny())
	}
	return all
}

// read reads a value by the package, and its leaves by encoding/json.
func read(raw []byte) (value any) {
	switch raw[0] {
	case '{':
		object := map[string]any{}
		jsonscan.Members(raw, func(name string, value []byte) { object[name] = read(value) })
		return object
	case '[':
		list := []any{}
		jsonscan.Items(raw, func(item []byte) { list = append(list, read(item)) })
		return list
	default:
		_ = json.Unmarshal(raw, &value)
		return value
	}
}

func TestAnyValueIsSplitAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(values().Draw(t, "value"))
		require.NoError(t, err)
		if indent := rapid.SampledFrom([]string{"", " ", "\t", "\r\n"}).Draw(t, "indent"); indent != "" {
			raw, err = json.MarshalIndent(json.RawMessage(raw), "", indent)
			require.NoError(t, err)
		}
		var want any
		require.NoError(t, json.Unmarshal(raw, &want))
		require.Equal(t, want, read(raw), "%s", raw)
	})
}

func TestPartsKeepTheirOrderAndTheirBytes(t *testing.T) {
	t.Parallel()
	var parts []string
	jsonscan.Members([]byte(`{ "b" : 1.0e+2,"a":[ 1 ], "b":"\u00e9" , "\u00e9":null}`), func(name string, value []byte) {
		parts = append(parts, name, string(value))
	})
	require.Equal(t, []string{"b", "1.0e+2", "a", "[ 1 ]", "b", `"\u00e9"`, "é", "null"}, parts)
	parts = nil
	jsonscan.Items([]byte(`[-0, {"a":"]"} ,true]`), func(value []byte) { parts = append(parts, string(value)) })
	require.Equal(t, []string{"-0", `{"a":"]"}`, "true"}, parts)
}
