package page

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const somePost = "pst_01kkgt5hn1fpnv5e78weftw0p1"

// FuzzACursorIsTakenOnlyAsItWasGiven reads any text as a cursor of each kind. The text is either
// refused, or equal to the cursor that the list writes for that position.
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
	// Line breaks, which a decoder of base64 ignores.
	for _, place := range []string{"x/" + somePost, "x/3/" + somePost} {
		text := base64.RawURLEncoding.EncodeToString([]byte(place))
		for _, broken := range []string{text[:4] + "\r" + text[4:], "\n" + text, text + "\r\n"} {
			f.Add(broken)
		}
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		q := Query{Cursor: &cursor}
		var bad problem.Fields
		id := After[publicid.Post](&bad, "x", q)
		if requireVerdict(t, bad, id != nil) {
			require.Equal(t, cursor, cursorOf(t, id.String()))
		}
		takenAsGiven(t, ByNumber, cursor)
		takenAsGiven(t, ByTime, cursor)
	})
}

func takenAsGiven[V any](t *testing.T, list Ordered[V], cursor string) {
	t.Helper()
	var bad problem.Fields
	var id publicid.Post
	last, ok := list.After(&bad, "x", Query{Cursor: &cursor}, &id)
	if requireVerdict(t, bad, ok) {
		require.Equal(t, cursor, cursorOf(t, list.Write(last), id.String()), "it stands for %v", last)
	}
}

// requireVerdict requires that a cursor is either taken, or refused with the field cursor.
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

// cursorOf returns the cursor that Cut writes for a position.
func cursorOf(t *testing.T, place ...string) string {
	t.Helper()
	p := Cut("x", []int{1, 2}, 1, func(int) []string { return place })
	require.NotNil(t, p.NextCursor)
	return *p.NextCursor
}

// FuzzAPlaceIsFoundAgain writes a cursor for any position in a list and reads it.
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
		cursor := cursorOf(t, ByNumber.Write(n), id.String())
		number, ok := ByNumber.After(&bad, "x", Query{Cursor: &cursor}, &read)
		require.True(t, ok && number == n && read == id)
		// With the precision of Postgres, within the years that JSON can write.
		at := time.UnixMicro(n).UTC()
		if at.Year() < 1 || at.Year() > 9999 {
			return
		}
		cursor = cursorOf(t, ByTime.Write(at), id.String())
		moment, ok := ByTime.After(&bad, "x", Query{Cursor: &cursor}, &read)
		require.True(t, ok && moment.Equal(at) && read == id, "%s became %s", at, moment)
		require.Empty(t, bad)
	})
}
