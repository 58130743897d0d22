package publicid_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// vectors are UUIDs with their 26 characters. The first four are the published test vectors of
// TypeID, which has the same layout. The last one is the example of a post in the contract.
var vectors = []struct{ uuid, text string }{
	{"00000000-0000-0000-0000-000000000001", "00000000000000000000000001"},
	{"ffffffff-ffff-ffff-ffff-ffffffffffff", "7zzzzzzzzzzzzzzzzzzzzzzzzz"},
	{"0110c853-1d09-52d8-d73e-1194e95b5f19", "0123456789abcdefghjkmnpqrs"},
	{"01890a5d-ac96-774b-bcce-b302099a8057", "01h455vb4pex5vsknk084sn02q"},
	{"019ce1a2-c6a1-7dab-b2b8-e8e39fae02c1", "01kkgt5hn1fpnv5e78weftw0p1"},
}

func TestTheSpellingOfAnIDNeverChanges(t *testing.T) {
	t.Parallel()
	for _, v := range vectors {
		var post publicid.Post
		require.NoError(t, post.Scan(v.uuid))
		require.Equal(t, "pst_"+v.text, post.String())

		read, err := publicid.Parse[publicid.Post]("pst_" + v.text)
		require.NoError(t, err)
		require.Equal(t, uuid.MustParse(v.uuid), read.UUID())
	}
}

func TestIDsSortByTheTimeTheyWereMade(t *testing.T) {
	t.Parallel()
	texts := make([]string, 2000)
	for i := range texts {
		texts[i] = publicid.NewPost().String()
	}
	require.IsIncreasing(t, texts)
}

func TestAnIDTellsWhenItWasMade(t *testing.T) {
	t.Parallel()
	id, err := publicid.Parse[publicid.Post]("pst_01kkgt5hn1fpnv5e78weftw0p1")
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 3, 12, 10, 41, 7, 233e6, time.UTC), id.Time())
	before := time.Now().Truncate(time.Millisecond)
	require.False(t, publicid.NewPost().Time().Before(before))
}

func TestAFreshIDIsNotZero(t *testing.T) {
	t.Parallel()
	require.False(t, publicid.NewPost().IsZero())
	require.True(t, publicid.Post{}.IsZero())
}

// malformed has texts that aren't ids of a post, by their fault.
var malformed = map[string]string{
	"empty":                         "",
	"nothing but the prefix":        "pst_",
	"no prefix":                     "01kkgt5hn1fpnv5e78weftw0p1",
	"the prefix of another kind":    "brd_01kkgt5hn1fpnv5e78weftw0p1",
	"a prefix in capitals":          "PST_01kkgt5hn1fpnv5e78weftw0p1",
	"no underscore":                 "pst01kkgt5hn1fpnv5e78weftw0p1",
	"another separator":             "pst-01kkgt5hn1fpnv5e78weftw0p1",
	"one character short":           "pst_01kkgt5hn1fpnv5e78weftw0p",
	"one character long":            "pst_01kkgt5hn1fpnv5e78weftw0p11",
	"capitals":                      "pst_01KKGT5HN1FPNV5E78WEFTW0P1",
	"the letter i":                  "pst_01kkgt5hn1fpnv5e78weftw0pi",
	"the letter l":                  "pst_01kkgt5hn1fpnv5e78weftw0pl",
	"the letter o":                  "pst_01kkgt5hn1fpnv5e78weftw0po",
	"the letter u":                  "pst_01kkgt5hn1fpnv5e78weftw0pu",
	"more than 128 bits":            "pst_8zzzzzzzzzzzzzzzzzzzzzzzzz",
	"far more than 128 bits":        "pst_zzzzzzzzzzzzzzzzzzzzzzzzzz",
	"padding":                       "pst_01kkgt5hn1fpnv5e78weftw0p=",
	"a line end in the middle":      "pst_01kkgt5hn1fpn\n5e78weftw0p1",
	"line ends beside a whole id":   "pst_\r\n01kkgt5hn1fpnv5e78weftw0p1",
	"a blank in front":              " pst_01kkgt5hn1fpnv5e78weftw0p1",
	"a blank behind":                "pst_01kkgt5hn1fpnv5e78weftw0p1 ",
	"a NUL":                         "pst_01kkgt5hn1fpnv5e78weftw0p\x00",
	"a letter that only looks like": "pst_01kkgt5hn1fpnv5e78weftw0а",
	"invalid UTF-8":                 "pst_01kkgt5hn1fpnv5e78weftw0p\xff",
	"a UUID":                        "019ce1a2-c6a1-7dab-b2b8-e8e39fae02c1",
	"a prefix and a UUID":           "pst_019ce1a2-c6a1-7dab-b2b8-e8e39fae02c1",
	"two ids":                       "pst_01kkgt5hn1fpnv5e78weftw0p1pst_01kkgt5hn1fpnv5e78weftw0p1",
	"very long":                     "pst_" + strings.Repeat("0", 1<<20),
}

func TestMalformedTextIsNoID(t *testing.T) {
	t.Parallel()
	for name, text := range malformed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := publicid.Parse[publicid.Post](text)
			require.ErrorIs(t, err, publicid.ErrMalformed)
		})
	}
}

func TestMalformedTextLeavesAnIDAsItWas(t *testing.T) {
	t.Parallel()
	id := publicid.NewPost()
	was := id
	for _, text := range malformed {
		require.Error(t, id.UnmarshalText([]byte(text)))
		require.Equal(t, was, id)
	}
}

// FuzzAnIDHasExactlyOneSpelling parses any text. The text is either refused or equal to the id's
// public form.
func FuzzAnIDHasExactlyOneSpelling(f *testing.F) {
	for _, v := range vectors {
		f.Add("pst_" + v.text)
	}
	for _, text := range malformed {
		f.Add(text[:min(len(text), 64)])
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := publicid.Parse[publicid.Post](text)
		if err != nil {
			require.ErrorIs(t, err, publicid.ErrMalformed)
			require.True(t, id.IsZero())
			return
		}
		require.Equal(t, text, id.String())
	})
}

func TestTheDatabaseGetsTheUUIDAndGivesItBack(t *testing.T) {
	t.Parallel()
	id := publicid.NewPost()
	value, err := id.Value()
	require.NoError(t, err)
	require.Equal(t, id.UUID().String(), value)

	raw := id.UUID()
	for _, src := range []any{value, []byte(id.UUID().String()), raw[:]} {
		var back publicid.Post
		require.NoError(t, back.Scan(src))
		require.Equal(t, id, back)
	}
}

func TestAColumnThatIsNoUUIDCanNotBeScanned(t *testing.T) {
	t.Parallel()
	for _, src := range []any{42, "pst_01kkgt5hn1fpnv5e78weftw0p1", []byte{1, 2, 3}, true} {
		var id publicid.Post
		require.Error(t, id.Scan(src), "%T", src)
		require.True(t, id.IsZero())
	}
}

func TestJSONShowsThePublicForm(t *testing.T) {
	t.Parallel()
	type document struct {
		Post   publicid.Post          `json:"post"`
		Parent *publicid.Comment      `json:"parent"`
		Counts map[publicid.Board]int `json:"counts"`
	}
	post, board := publicid.NewPost(), publicid.NewBoard()
	in := document{Post: post, Counts: map[publicid.Board]int{board: 3}}
	text, err := json.Marshal(in)
	require.NoError(t, err)
	require.Equal(t, `{"post":"`+post.String()+`","parent":null,"counts":{"`+board.String()+`":3}}`, string(text))

	var out document
	require.NoError(t, json.Unmarshal(text, &out))
	require.Equal(t, in, out)
}

func TestJSONThatIsNoIDIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`42`, `true`, `{}`, `[]`, `"019ce1a2-c6a1-7dab-b2b8-e8e39fae02c1"`, `"brd_01kkgt5hn1fpnv5e78weftw0p1"`} {
		var id publicid.Post
		require.Error(t, json.Unmarshal([]byte(text), &id), text)
	}
}
