package contract

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/api/gen"
	"earshot/internal/problem"
)

// bodies are the seeds of the fuzzer: one for each kind of content.
var bodies = []string{
	``, `{}`, ` {"a":1} `, `[]`, `null`, `{"a":`, `{} {}`, `{"a":"\ud83d\ude00 \\ud800 \u0000 \ufffd"}`,
	`{"a":"\ud800"}`, `{"\udc00":1}`, `{"a":"\\\ud800\\udc00"}`, `{"a":"\ud800\ud800\udc00"}`, "{\"a\":\"\xff\"}", "\uFEFF{}",
	`{"name":"first","name":"last"}`, `{"Name":"x","name":null,"NAME":[1e400,-0,9007199254740993]}`, `{"\u006eame":"x","ſlug":"y"}`,
	`{"title":"x","body":{"text":"first"},"body":{"json":[1,{"a":1,"a":2}]},"tagIds":["a","b"],"tagIds":["c"]}`,
	`{"externalUserId":"u","email":"A@b.c","mrrCents":1,"currency":"EUR","metadata":{"b":1,"a":{"B":2}}}`,
	`{"mrrCents":1.0,"overlapSeconds":1e3,"expiresAt":"2026-03-12T10:41:07Z","scope":"read","events":["post.created"],"url":"x"}`,
	`{"body":{"Text":"x","text":"<b>\u2028"},"contactId":null,"publishedAt":null,"version":""}`,
}

// into has the Go types of bodies by operation, one of each shape.
var into = map[string]func() any{
	"POST /v1/boards":                 func() any { return &gen.CreateBoardRequest{} },
	"PATCH /v1/posts/:postId":         func() any { return &gen.UpdatePostRequest{} },
	"POST /v1/posts/:postId/comments": func() any { return &gen.CreateCommentRequest{} },
	"POST /v1/contacts/identify":      func() any { return &gen.IdentifyContactRequest{} },
	"POST /v1/webhooks":               func() any { return &gen.CreateWebhookRequest{} },
	"POST /v1/api-keys":               func() any { return &gen.CreateAPIKeyRequest{} },
	"POST /v1/members":                func() any { return &gen.CreateMemberRequest{} },
	"PATCH /v1/members/:memberId":     func() any { return &gen.UpdateMemberRequest{} },
	"POST /v1/api-keys/:keyId/rotate": func() any { return &gen.RotateAPIKeyRequest{} },
}

// theContract is read once for all tests.
var theContract = sync.OnceValues(func() (*Contract, error) {
	yaml, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		return nil, err
	}
	return Read(yaml)
})

// FuzzABodyIsTakenOnlyIfDecodingKeepsItsTexts compares each text that Go's decoder returns with its
// meaning in RFC 8259. The decoder silently repairs invalid texts.
func FuzzABodyIsTakenOnlyIfDecodingKeepsItsTexts(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || !utf8.Valid(body) || bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
			require.False(t, checkJSON(new(problem.Fields), body))
			return
		}
		kept := true
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		for {
			from := d.InputOffset()
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if text, ok := token.(string); ok {
				meant, isText := meaning(strings.TrimLeft(string(body[from:d.InputOffset()]), " \t\r\n,:"))
				require.True(t, !isText || meant == text, "%q became %q", meant, text)
				kept = kept && isText
			}
		}
		require.Equal(t, kept, checkJSON(new(problem.Fields), body))
	})
}

// meaning reads a JSON string by RFC 8259. It reports false for half of a surrogate pair.
func meaning(quoted string) (string, bool) {
	var units []uint16
	plain := map[byte]uint16{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '/': '/'}
	for rest := quoted[1 : len(quoted)-1]; rest != ""; {
		switch {
		case rest[0] != '\\':
			r, size := utf8.DecodeRuneInString(rest)
			units, rest = utf16.AppendRune(units, r), rest[size:]
		case rest[1] == 'u':
			unit, _ := strconv.ParseUint(rest[2:6], 16, 16)
			units, rest = append(units, uint16(unit)), rest[6:]
		default:
			units, rest = append(units, plain[rest[1]]), rest[2:]
		}
	}
	text := string(utf16.Decode(units))
	again := utf16.Encode([]rune(text))
	return text, reflect.DeepEqual(units, again) || len(units) == 0
}

// FuzzABodyReachesTheDomainAsItWasSent follows a body through every step between the socket and the
// domain.
func FuzzABodyReachesTheDomainAsItWasSent(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	c, err := theContract()
	require.NoError(f, err)
	for route := range into {
		require.NotNil(f, c.Operations[route].Body, route)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for route, empty := range into {
			op := c.Operations[route]
			var bad problem.Fields
			clean, _ := op.ValidateBody(&bad, body)
			if len(bad) > 0 {
				continue
			}
			require.JSONEq(t, string(text(t, known(op.Body.shape, value(t, body)))), string(text(t, value(t, clean))), route)
			require.NoError(t, json.Unmarshal(clean, empty()), "%s: what the contract takes can be decoded", route)
		}
	})
}

// known reduces a value to the contract's members, in the decoder's notation.
func known(s *shape, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if s.free || len(s.members) == 0 {
			return v
		}
		out := map[string]any{}
		for name, member := range v {
			if of := s.members[name]; of != nil {
				out[name] = known(of, member)
			}
		}
		return out
	case []any:
		for i, item := range v {
			if s.items != nil {
				v[i] = known(s.items, item)
			}
		}
	case string:
		return s.text(v)
	case json.Number:
		if s.integer {
			return s.number(v.String())
		}
	}
	return v
}

func value(t *testing.T, body []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

func text(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return out
}
