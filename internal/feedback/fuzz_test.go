package feedback

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const somePost = "pst_01kkgt5hn1fpnv5e78weftw0p1"

// FuzzACursorIsTakenOnlyAsItWasGiven reads any text as a cursor of each kind: it
// is refused, or it is the very text that the list would write for that place.
func FuzzACursorIsTakenOnlyAsItWasGiven(f *testing.F) {
	for _, place := range []string{
		"x/" + somePost, "x/3/" + somePost, "x/-1/" + somePost, "x/2026-03-12T10:41:07.233Z/" + somePost, "x", "x/", "x//", "",
		"y/" + somePost, "x/" + somePost + "/" + somePost, "x/+3/" + somePost, "x/03/" + somePost, "x/-0/" + somePost,
		"x/2026-03-12T10:41:07+01:00/" + somePost, "x/2026-03-12T10:41:07.10Z/" + somePost, "x/\x00/\xff",
	} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(place)))
	}
	f.Add("eA==")
	f.Add("eC9\n")
	f.Fuzz(func(t *testing.T, cursor string) {
		q := PageQuery{Cursor: &cursor}
		var bad problem.Fields
		id := after[publicid.Post](&bad, "x", q)
		if requireVerdict(t, bad, id != nil) {
			require.Equal(t, cursor, cursorOf(t, id.String()))
		}
		takenAsGiven(t, byNumber, cursor)
		takenAsGiven(t, byTime, cursor)
	})
}

func takenAsGiven[V any](t *testing.T, list ordered[V], cursor string) {
	t.Helper()
	var bad problem.Fields
	var id publicid.Post
	last, ok := list.after(&bad, "x", PageQuery{Cursor: &cursor}, &id)
	if requireVerdict(t, bad, ok) {
		require.Equal(t, cursor, cursorOf(t, list.write(last), id.String()), "it stands for %v", last)
	}
}

// requireVerdict wants a cursor to be either taken or refused, and by its name.
func requireVerdict(t *testing.T, bad problem.Fields, taken bool) bool {
	t.Helper()
	require.Equal(t, taken, len(bad) == 0)
	if !taken {
		require.Len(t, bad, 1)
		require.Equal(t, "cursor", bad[0].Field)
		require.Equal(t, "cursor", bad[0].Rule)
	}
	return taken
}

// cursorOf is what page writes for a place.
func cursorOf(t *testing.T, place ...string) string {
	t.Helper()
	p := page("x", []int{1, 2}, 1, func(int) []string { return place })
	require.NotNil(t, p.NextCursor)
	return *p.NextCursor
}

// FuzzAPlaceIsFoundAgain writes a cursor for any place of a list and reads it.
func FuzzAPlaceIsFoundAgain(f *testing.F) {
	f.Add(int64(0), []byte("0123456789abcdef"))
	f.Add(int64(-1), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add(int64(1773312067233000), []byte{})
	f.Fuzz(func(t *testing.T, n int64, raw []byte) {
		var value [16]byte
		copy(value[:], raw)
		var id, read publicid.Post
		require.NoError(t, id.Scan(uuid.UUID(value).String()))
		var bad problem.Fields
		cursor := cursorOf(t, byNumber.write(n), id.String())
		number, ok := byNumber.after(&bad, "x", PageQuery{Cursor: &cursor}, &read)
		require.True(t, ok && number == n && read == id)
		// As Postgres keeps them, within the years that JSON can write.
		at := time.UnixMicro(n).UTC()
		if at.Year() < 1 || at.Year() > 9999 {
			return
		}
		cursor = cursorOf(t, byTime.write(at), id.String())
		moment, ok := byTime.after(&bad, "x", PageQuery{Cursor: &cursor}, &read)
		require.True(t, ok && moment.Equal(at) && read == id, "%s became %s", at, moment)
		require.Empty(t, bad)
	})
}

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

// FuzzASlugIsMadeOfAnyTitle: what is made for the caller keeps the caller's rules,
// numbered or not.
func FuzzASlugIsMadeOfAnyTitle(f *testing.F) {
	for _, title := range []string{
		"Dark mode", "", "   ", "___", "日本語", "Ünïcödé & <b>", "a_b--c", "😀", "-", strings.Repeat("ab ", 90), "İ", "\u0000", "ﷺﷺﷺﷺﷺ",
	} {
		f.Add(title, 5)
	}
	f.Fuzz(func(t *testing.T, title string, lost int) {
		if !utf8.ValidString(title) {
			return
		}
		for _, high := range []int{maxBoardSlug, maxPostSlug} {
			requireSlug(t, slugFrom(title, "post", high), high)
			left := lost % slugTries
			insert := func(slug string) (bool, error) {
				requireSlug(t, slug, high)
				left--
				return left < 0, nil
			}
			require.NoError(t, freeSlug(slugFrom(title, "post", high), high, func(string) (bool, error) { return false, nil }, insert))
		}
	})
}

func requireSlug(t *testing.T, slug string, high int) {
	t.Helper()
	var bad problem.Fields
	slugText(&bad, slug, high)
	require.Empty(t, bad, slug)
}
