package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

// After each shape, a further request follows on the same connection. The server and a proxy before
// it may disagree about the end of a shape. The further request could then belong to another
// client, so it must not be answered.
const further = "GET /healthz HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"

// shapes are requests that proxies and servers are known to read differently. KEY stands for a key.
// Each line ends in CRLF unless the shape has another end. The answers are the statuses of all
// answers, including the one to the further request.
var shapes = map[string]struct {
	request string
	answers []int
}{
	// The length of the body.
	"Content-Length beside Transfer-Encoding": {
		"POST /v1/boards|Content-Length: 4|Transfer-Encoding: chunked||0||", []int{422},
	},
	"Transfer-Encoding beside Content-Length": {
		"POST /v1/boards|Transfer-Encoding: chunked|Content-Length: 6||0||", []int{422},
	},
	"two Content-Lengths that differ":            {"POST /v1/boards|Content-Length: 2|Content-Length: 3||{}", []int{400}},
	"two Content-Lengths that agree":             {"POST /v1/boards|Content-Length: 2|Content-Length: 2||{}", []int{422, 200}},
	"a list of Content-Lengths":                  {"POST /v1/boards|Content-Length: 2, 2||{}", []int{400}},
	"a negative Content-Length":                  {"POST /v1/boards|Content-Length: -1||{}", []int{400}},
	"a Content-Length with a sign":               {"POST /v1/boards|Content-Length: +2||{}", []int{400}},
	"a Content-Length in hexadecimal":            {"POST /v1/boards|Content-Length: 0x2||{}", []int{400}},
	"a Content-Length that has no end":           {"POST /v1/boards|Content-Length: 99999999999999999999||{}", []int{400}},
	"an empty Content-Length":                    {"POST /v1/boards|Content-Length:||", []int{400}},
	"a huge Content-Length":                      {"POST /v1/boards|Content-Length: 9223372036854775807||{}", []int{413}},
	"Content-Length with a space before it ends": {"POST /v1/boards|Content-Length : 2||{}", []int{400}},
	"a body of a request that takes none":        {"GET /v1/me|Content-Length: 5||GET /", []int{200, 200}},
	// The encoding of the body.
	"an unknown Transfer-Encoding":         {"POST /v1/boards|Transfer-Encoding: xchunked||0||", []int{501}},
	"two Transfer-Encodings":               {"POST /v1/boards|Transfer-Encoding: chunked|Transfer-Encoding: identity||0||", []int{501}},
	"a list of Transfer-Encodings":         {"POST /v1/boards|Transfer-Encoding: identity, chunked||0||", []int{501}},
	"a Transfer-Encoding behind a tab":     {"POST /v1/boards|Transfer-Encoding:\tchunked||0||", []int{422}},
	"a Transfer-Encoding before a space":   {"POST /v1/boards|Transfer-Encoding : chunked||0||", []int{400}},
	"a Transfer-Encoding of other case":    {"POST /v1/boards|tRANSFER-eNCODING: CHUNKED||0||", []int{422}},
	"a Transfer-Encoding on a folded line": {"POST /v1/boards|X-A: a\r\n Transfer-Encoding: chunked||", []int{422, 200}},
	"a Transfer-Encoding with a NUL":       {"POST /v1/boards|Transfer-Encoding: \x00chunked||0||", []int{400}},
	"a Transfer-Encoding with a tab in it": {"POST /v1/boards|Transfer-Encoding: \x0bchunked||0||", []int{400}},
	// Chunks.
	"chunks with extensions":         {"POST /v1/boards|Transfer-Encoding: chunked||2;a=b|{}|0;c||", []int{422}},
	"a chunk of a negative length":   {"POST /v1/boards|Transfer-Encoding: chunked||-1|{}|0||", []int{422}},
	"a chunk that has no end":        {"POST /v1/boards|Transfer-Encoding: chunked||fffffffffffffffff|{}|0||", []int{422}},
	"a chunk length with a prefix":   {"POST /v1/boards|Transfer-Encoding: chunked||0x2|{}|0||", []int{422}},
	"a chunk that is longer than it": {"POST /v1/boards|Transfer-Encoding: chunked||1|{}|0||", []int{422}},
	"chunk lines that end in LF":     {"POST /v1/boards|Transfer-Encoding: chunked||2\n{}\n0\n\n", []int{422}},
	"a trailer that names a header":  {"POST /v1/boards|Transfer-Encoding: chunked||2|{}|0|Content-Length: 9||", []int{422}},
	// Lines and characters.
	"lines that end in LF":               {"GET /v1/me HTTP/1.1\nHost: a.example\nAuthorization: Bearer KEY\n\n", []int{200, 200}},
	"a CR within a line":                 {"GET /v1/me|X-A: a\rX-B: b||", []int{400}},
	"a NUL in a value":                   {"GET /v1/me|X-A: a\x00b||", []int{400}},
	"a NUL in a name":                    {"GET /v1/me|X-\x00A: a||", []int{400}},
	"a NUL in the target":                {"GET /v1/\x00me||", []int{400}},
	"a control character in the target":  {"GET /v1/\x01me||", []int{400}},
	"a space in the target":              {"GET /v1/ me||", []int{400}},
	"a line without a colon":             {"GET /v1/me|Nonsense||", []int{400}},
	"a name that is empty":               {"GET /v1/me|: a||", []int{400}},
	"a header before the first line":     {"X-A: a\r\nGET /v1/me||", []int{400}},
	"a space before the first header":    {"GET /v1/me HTTP/1.1\r\n X-A: a\r\nHost: a.example||", []int{400}},
	"an empty line before the first one": {"\r\nGET /v1/me||", []int{400}},
	// Targets and hosts.
	"a target in absolute form":              {"GET http://b.example/v1/me||", []int{200, 200}},
	"a target in another scheme":             {"GET file:///v1/me||", []int{200, 200}},
	"a target in authority form":             {"CONNECT b.example:443||", []int{404, 200}},
	"CONNECT to a path":                      {"CONNECT /v1/me||", []int{405, 200}},
	"a target that is an asterisk":           {"OPTIONS *||", []int{404, 200}},
	"a target that is no form":               {"GET v1/me||", []int{400}},
	"an empty target":                        {"GET  HTTP/1.1\r\nHost: a.example||", []int{400}},
	"no host":                                {"GET /v1/me HTTP/1.1\r\nX-A: a||", []int{400}},
	"two hosts":                              {"GET /v1/me|Host: b.example||", []int{400}},
	"a host that is none":                    {"GET /v1/me HTTP/1.1\r\nHost: a b||", []int{400}},
	"an escape in the target that isn't one": {"GET /v1/%zz||", []int{400}},
	"a way up in the target":                 {"GET /v1/boards/../me||", []int{404, 200}},
	"a method that is none":                  {"G(ET /v1/me||", []int{400}},
	"a method of another case":               {"get /v1/me||", []int{405, 200}},
	// Versions.
	"HTTP/0.9":                      {"GET /v1/me\r\n", []int{400}},
	"HTTP/1.0":                      {"GET /v1/me HTTP/1.0\r\nAuthorization: Bearer KEY||", []int{200}},
	"HTTP/1.0 that stays":           {"GET /v1/me HTTP/1.0\r\nConnection: keep-alive\r\nAuthorization: Bearer KEY||", []int{200, 200}},
	"HTTP/1.0 in chunks":            {"POST /v1/boards HTTP/1.0\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer KEY||0||", []int{422}},
	"HTTP/1.2":                      {"GET /v1/me HTTP/1.2\r\nHost: a.example|Authorization: Bearer KEY||", []int{200, 200}},
	"HTTP/2.0":                      {"GET /v1/me HTTP/2.0\r\nHost: a.example||", []int{505}},
	"HTTP/2 without asking":         {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{404}},
	"an upgrade to HTTP/2":          {"GET /v1/me|Connection: Upgrade, HTTP2-Settings|Upgrade: h2c|HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA||", []int{200, 200}},
	"an upgrade to a web socket":    {"GET /v1/me|Connection: Upgrade|Upgrade: websocket|Sec-WebSocket-Version: 13||", []int{200, 200}},
	"three requests in one":         {"GET /v1/me||GET /v1/none||", []int{200, 404, 200}},
	"a body that wants to be asked": {"POST /v1/boards|Expect: 100-continue|Content-Length: 2||{}", []int{100, 422, 200}},
	"an unknown expectation":        {"POST /v1/boards|Expect: 200-ok|Content-Length: 2||{}", []int{417}},
}

func TestARequestThatServersReadDifferentlyIsRefusedOrReadInOneWay(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dial(t, app)
			s.send(t, written(shape.request, n.Key)+further)
			statuses, text := s.answers(t)
			require.Equal(t, shape.answers, statuses, "%s", text)
			require.NotContains(t, statuses, http.StatusInternalServerError)
		})
	}
}

// written completes a shape. It adds a version, a host and a key to a first line without them, and
// the ends of lines.
func written(shape, key string) string {
	for _, method := range []string{"GET ", "POST ", "CONNECT ", "OPTIONS ", "get ", "G(ET "} {
		lines := strings.Split(shape, method)
		for i, rest := range lines[1:] {
			if target, headers, ok := strings.Cut(rest, "|"); ok && !strings.Contains(target, "\n") && !strings.Contains(target, " HTTP/") {
				lines[i+1] = target + " HTTP/1.1|Host: a.example|Authorization: Bearer KEY|" + headers
			}
		}
		shape = strings.Join(lines, method)
	}
	return strings.ReplaceAll(strings.ReplaceAll(shape, "|", "\r\n"), "KEY", key)
}
