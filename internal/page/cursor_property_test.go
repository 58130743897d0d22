package page_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const somePost = "pst_01kkgt5hn1fpnv5e78weftw0p1"

// Any text is sent as a cursor of each kind. It is refused, or it is the cursor that the list writes for that
// position.
func TestACursorIsTakenOnlyAsItWasGiven(t *testing.T) {
	t.Parallel()
	check := func(t require.TestingT, cursor string) {
		q := page.Query{Cursor: &cursor}
		var bad problem.Fields
		id := page.After[publicid.Post](&bad, "x", q)
		if requireVerdict(t, bad, id != nil) {
			require.Equal(t, cursor, cursorOf(t, id.String()))
		}
		takenAsGiven(t, page.ByNumber, cursor)
		takenAsGiven(t, page.ByTime, cursor)
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	encode := base64.RawURLEncoding.EncodeToString
	for name, place := range map[string]string{
		"an id":                        "x/" + somePost,
		"a number":                     "x/3/" + somePost,
		"a negative number":            "x/-1/" + somePost,
		"a number with a plus":         "x/+3/" + somePost,
		"a number with a zero":         "x/03/" + somePost,
		"a negative zero":              "x/-0/" + somePost,
		"a time":                       "x/2026-03-12T10:41:07.233Z/" + somePost,
		"a time of another zone":       "x/2026-03-12T10:41:07+01:00/" + somePost,
		"a time with a zero at an end": "x/2026-03-12T10:41:07.10Z/" + somePost,
		"two ids":                      "x/" + somePost + "/" + somePost,
		"another list":                 "y/" + somePost,
		"a list alone":                 "x",
		"an empty id":                  "x/",
		"an empty id and number":       "x//",
		"nothing":                      "",
		"bytes that are no text":       "x/\x00/\xff",
	} {
		t.Run(name, func(t *testing.T) { check(t, encode([]byte(place))) })
	}
	t.Run("line breaks, which a decoder of base64 ignores", func(t *testing.T) {
		for _, place := range []string{"x/" + somePost, "x/3/" + somePost} {
			text := encode([]byte(place))
			for _, broken := range []string{text[:4] + "\r" + text[4:], "\n" + text, text + "\r\n"} {
				check(t, broken)
			}
		}
	})
	t.Run("other bits behind the last byte", func(t *testing.T) {
		text := encode([]byte("x/" + somePost)) // 32 bytes, so the last letter has two bits too many
		for _, letter := range letters {
			check(t, text[:len(text)-1]+string(letter))
		}
	})
	t.Run("padding", func(t *testing.T) { check(t, base64.URLEncoding.EncodeToString([]byte("x"))) })
	part := rapid.OneOf(
		rapid.SampledFrom([]string{"x", "y", "", somePost}),
		rapid.StringMatching(`[+-]?0?[0-9]{1,20}`),
		rapid.StringMatching(`20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]{1,9})?(Z|[+-][0-2][0-9]:00)`),
		rapid.StringMatching(`pst_[0-9a-z]{25,27}`),
		rapid.String(),
	)
	place := rapid.Custom(func(t *rapid.T) string {
		return "x/" + strings.Join(rapid.SliceOfN(part, 0, 3).Draw(t, "parts"), "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		cursor := encode([]byte(place.Draw(t, "place")))
		check(t, cursor)
		at := rapid.IntRange(0, len(cursor)).Draw(t, "at")
		check(t, cursor[:at]+rapid.StringN(1, 1, -1).Draw(t, "inserted")+cursor[at:])
		check(t, cursor[:at]+rapid.StringOfN(rapid.RuneFrom([]rune(letters)), 1, 1, -1).Draw(t, "replaced")+cursor[min(at+1, len(cursor)):])
		check(t, rapid.String().Draw(t, "any text"))
	})
}

func takenAsGiven[V any](t require.TestingT, list page.Ordered[V], cursor string) {
	var bad problem.Fields
	var id publicid.Post
	last, ok := list.After(&bad, "x", page.Query{Cursor: &cursor}, &id)
	if requireVerdict(t, bad, ok) {
		require.Equal(t, cursor, cursorOf(t, list.Write(last), id.String()), "it stands for %v", last)
	}
}

// requireVerdict requires that a cursor is either taken, or refused with the field cursor.
func requireVerdict(t require.TestingT, bad problem.Fields, taken bool) bool {
	require.Equal(t, taken, len(bad) == 0)
	if !taken {
		require.Len(t, bad, 1)
		require.Equal(t, "cursor", bad[0].Field)
		require.Equal(t, "cursor", bad[0].Rule)
	}
	return taken
}

// cursorOf returns the cursor that Cut writes for a position.
func cursorOf(t require.TestingT, place ...string) string {
	p := page.Cut("x", []int{1, 2}, 1, func(int) []string { return place })
	require.NotNil(t, p.NextCursor)
	return *p.NextCursor
}

// The cursor of any position leads back to it.
func TestAPlaceIsFoundAgain(t *testing.T) {
	t.Parallel()
	check := func(t require.TestingT, n int64, value [16]byte) {
		var id, read publicid.Post
		require.NoError(t, id.Scan(uuid.UUID(value).String()))
		var bad problem.Fields
		cursor := cursorOf(t, page.ByNumber.Write(n), id.String())
		number, ok := page.ByNumber.After(&bad, "x", page.Query{Cursor: &cursor}, &read)
		require.True(t, ok && number == n && read == id)
		// With the precision of Postgres, within the years that JSON can write.
		at := time.UnixMicro(n).UTC()
		if at.Year() < 1 || at.Year() > 9999 {
			return
		}
		cursor = cursorOf(t, page.ByTime.Write(at), id.String())
		moment, ok := page.ByTime.After(&bad, "x", page.Query{Cursor: &cursor}, &read)
		require.True(t, ok && moment.Equal(at) && read == id, "%s became %s", at, moment)
		require.Empty(t, bad)
	}
	check(t, -1, [16]byte(bytes.Repeat([]byte{0xff}, 16)))
	check(t, 0, [16]byte{})
	number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(time.Time{}.UnixMicro(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMicro()))
	rapid.Check(t, func(t *rapid.T) {
		check(t, number.Draw(t, "number"), [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")))
	})
}
