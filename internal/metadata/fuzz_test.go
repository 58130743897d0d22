package metadata

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzMetadataSaysTheSameAfterwards parses an object and writes it again.
func FuzzMetadataSaysTheSameAfterwards(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "b" : [ 1 , 2 ] , "a" : { "x" : null } } `, `{"a":1,"b":2,"a":3}`, `{"n":[9007199254740993,1e400,-0,1.0]}`,
		`{"\u0000":"\u0000","<&>":"<&>","\u2028":"\u2028","\ud83d\ude00":"😀"}`, `{"":{"":{}}}`, `[]`, `null`, `"{}"`,
	} {
		f.Add([]byte(text), []byte(`{"a":0,"c":[]}`))
	}
	f.Fuzz(func(t *testing.T, raw, more []byte) {
		if !json.Valid(raw) || !utf8.Valid(raw) {
			return // such input is refused earlier
		}
		m, err := Parse(raw)
		isObject := bytes.TrimLeft(raw, " \t\r\n")[0] == '{'
		require.Equal(t, isObject, err == nil)
		if err != nil {
			return
		}
		written := m.Text()
		require.Equal(t, decoded(t, raw), decoded(t, written))
		require.Len(t, decoded(t, raw), len(m))
		again, err := Parse(written)
		require.NoError(t, err)
		require.Equal(t, string(written), string(again.Text()), "what was read and sent back is the same")
		full, changed := m.Filled(m)
		require.Equal(t, string(written), string(full.Text()))
		require.False(t, changed)
		other, err := Parse(more)
		if err != nil || !json.Valid(more) || !utf8.Valid(more) {
			return
		}
		requireFilled(t, m, other)
	})
}

// requireFilled checks that a fill keeps all known values in their places, adds the unknown ones,
// and stays within the limits.
func requireFilled(t *testing.T, m, other Metadata) {
	t.Helper()
	full, changed := m.Filled(other)
	require.Equal(t, changed, string(m.Text()) != string(full.Text()))
	require.LessOrEqual(t, len(full), max(len(m), maxKeys))
	require.LessOrEqual(t, len(full.Text()), max(len(m.Text()), maxBytes))
	got, had, told := decoded(t, full.Text()), decoded(t, m.Text()), decoded(t, other.Text())
	require.Len(t, got, len(full))
	for i, own := range m {
		require.Equal(t, own.key, full[i].key)
		if had[own.key] != nil {
			require.Equal(t, had[own.key], got[own.key])
		}
	}
	for key, value := range got {
		if had[key] == nil && value != nil {
			require.Equal(t, told[key], value)
		}
	}
	if len(m)+len(other) > maxKeys || len(m.Text())+len(other.Text()) > maxBytes {
		return // some members may not have fitted
	}
	for key, value := range told {
		require.Contains(t, got, key)
		require.True(t, had[key] != nil || reflect.DeepEqual(got[key], value))
	}
}

func decoded(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v map[string]any
	require.NoError(t, d.Decode(&v))
	return v
}
