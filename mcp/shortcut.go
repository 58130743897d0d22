package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"earshot/api"
)

// The library decodes a message half a dozen times, each time through a buffer of
// 32 KiB, and makes a session for it: a call then costs more than three times what
// REST costs. So a plain tools/call goes straight to its tool, and everything
// else, from initialize to a call that looks odd in any way, to the library. Tests
// go both ways: its client speaks a newer version of the protocol than those that
// the shortcut knows.

// plainVersions are those in which a call is its message and nothing else. From
// 2026-07-28 on, headers repeat parts of it and have to agree.
var plainVersions = slices.DeleteFunc(sdk.SupportedProtocolVersions(), func(v string) bool { return v >= "2026-07-28" })

// shortcut answers plain calls of tools, and hands on the rest.
func (s *Surface) shortcut(protocol http.Handler) func(http.ResponseWriter, *http.Request, *api.Grant) {
	return func(w http.ResponseWriter, r *http.Request, g *api.Grant) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			refuse(w, http.StatusRequestEntityTooLarge, nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message has more than %d bytes", maxRequest))
			return
		case err != nil:
			refuse(w, http.StatusBadRequest, nil, jsonrpc.CodeParseError, "the message could not be read to its end")
			return
		}
		id, tool, arguments, ok := s.plainCall(r, body)
		if !ok {
			r = r.WithContext(context.WithValue(r.Context(), grantKey{}, g))
			r.Body = io.NopCloser(bytes.NewReader(body))
			answer := &refusals{ResponseWriter: w, message: body}
			protocol.ServeHTTP(answer, r)
			answer.answer()
			return
		}
		got := s.call(r.Context(), g, tool, arguments)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache, no-transform")
		_, _ = w.Write(answered(id, got)) // whoever left doesn't want it
	}
}

// The library hands nothing of a request to its tools but the context.
type grantKey struct{}

func grantOf(ctx context.Context) *api.Grant { return ctx.Value(grantKey{}).(*api.Grant) }

// plainCall takes a message apart if it is a call of a tool that there is.
func (s *Surface) plainCall(r *http.Request, body []byte) (id json.RawMessage, tool *ready, arguments json.RawMessage, ok bool) {
	version := r.Header.Get("Mcp-Protocol-Version")
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	accept := r.Header.Get("Accept")
	if version != "" && !slices.Contains(plainVersions, version) || kind != "application/json" ||
		!strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") {
		return nil, nil, nil, false
	}
	// Into maps, which know names by their exact spelling only.
	var message, params map[string]json.RawMessage
	if json.Unmarshal(body, &message) != nil || string(message["jsonrpc"]) != `"2.0"` ||
		string(message["method"]) != `"tools/call"` || json.Unmarshal(message["params"], &params) != nil {
		return nil, nil, nil, false
	}
	var name string
	if json.Unmarshal(params["name"], &name) != nil || params["_meta"] != nil {
		return nil, nil, nil, false
	}
	id, tool = message["id"], s.byName[name]
	if len(id) == 0 || id[0] != '"' && (id[0] < '0' || id[0] > '9') || tool == nil {
		return nil, nil, nil, false
	}
	return id, tool, params["arguments"], true
}

// answered is the message that answers a call.
func answered(id json.RawMessage, got result) []byte {
	text, _ := json.Marshal(string(got.body)) // a string
	b := make([]byte, 0, len(id)+len(text)+len(got.body)+128)
	b = fmt.Appendf(b, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}],"structuredContent":%s`,
		id, text, got.body)
	if got.failed {
		b = append(b, `,"isError":true`...)
	}
	return append(b, "}}"...)
}
