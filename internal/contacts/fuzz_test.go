package contacts

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
)

// FuzzMetadataSaysTheSameAfterwards parses an object and writes it.
func FuzzMetadataSaysTheSameAfterwards(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "b" : [ 1 , 2 ] , "a" : { "x" : null } } `, `{"a":1,"b":2,"a":3}`, `{"n":[9007199254740993,1e400,-0,1.0]}`,
		`{"\u0000":"\u0000","<&>":"<&>","\u2028":"\u2028","\ud83d\ude00":"😀"}`, `{"":{"":{}}}`, `[]`, `null`, `"{}"`,
	} {
		f.Add([]byte(text), []byte(`{"a":0,"c":[]}`))
	}
	f.Fuzz(func(t *testing.T, raw, more []byte) {
		if !json.Valid(raw) || !utf8.Valid(raw) {
			return // refused before it comes here
		}
		m, err := parseMetadata(raw)
		isObject := bytes.TrimLeft(raw, " \t\r\n")[0] == '{'
		require.Equal(t, isObject, err == nil)
		if err != nil {
			return
		}
		written := m.text()
		require.Equal(t, decoded(t, raw), decoded(t, written))
		require.Len(t, decoded(t, raw), len(m))
		again, err := parseMetadata(written)
		require.NoError(t, err)
		require.Equal(t, string(written), string(again.text()), "what was read and sent back is the same")
		full, changed := m.filled(m)
		require.Equal(t, string(written), string(full.text()))
		require.False(t, changed)
		other, err := parseMetadata(more)
		if err != nil || !json.Valid(more) || !utf8.Valid(more) {
			return
		}
		requireFilled(t, m, other)
	})
}

// requireFilled wants a fill to keep everything that was known, in its place, to add
// what wasn't, and to stay within the limits.
func requireFilled(t *testing.T, m, other metadata) {
	t.Helper()
	full, changed := m.filled(other)
	require.Equal(t, changed, string(m.text()) != string(full.text()))
	require.LessOrEqual(t, len(full), max(len(m), maxMetadataKeys))
	require.LessOrEqual(t, len(full.text()), max(len(m.text()), maxMetadataBytes))
	got, had, told := decoded(t, full.text()), decoded(t, m.text()), decoded(t, other.text())
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
	if len(m)+len(other) > maxMetadataKeys || len(m.text())+len(other.text()) > maxMetadataBytes {
		return // something may have been left out
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

// FuzzTraitsThatWereTakenAreTakenAgain: what a read returns can be sent back.
func FuzzTraitsThatWereTakenAreTakenAgain(f *testing.F) {
	for _, text := range []string{
		"Ada@Example.com", " a@b\u00a0", "İ@ẞ.example", "\"a b\"@x.example", "a@[127.0.0.1]", "x" + strings.Repeat("é", 330) + "@y", "ǅ@Ω", "\u2028",
	} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, address, name string) {
		if !utf8.ValidString(address) || !utf8.ValidString(name) {
			return // JSON can't hold it
		}
		traits := Traits{Email: nullable.NewNullableWithValue(address), Name: nullable.NewNullableWithValue(name), Plan: nullable.NewNullableWithValue(name)}
		var bad problem.Fields
		if traits.check(&bad); len(bad) > 0 {
			return
		}
		again := Traits{
			Email: nullable.NewNullableWithValue(traits.Email.MustGet()), Name: nullable.NewNullableWithValue(traits.Name.MustGet()),
			Plan: nullable.NewNullableWithValue(traits.Plan.MustGet()),
		}
		again.check(&bad)
		require.Empty(t, bad)
		require.Equal(t, traits, again)
	})
}
