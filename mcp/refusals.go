package mcp

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The library refuses messages in plain text, and clients then report that the service is away. Here
// such a refusal becomes an error of JSON-RPC.

// unhandled begins the library's text about a method that it does not have. The text is the only sign.
const unhandled = "JSON RPC not handled"

// refusals is a writer that replaces the library's plain refusals.
type refusals struct {
	http.ResponseWriter
	// message is the message of the request.
	message []byte
	// status is that of a plain refusal; 0 if there is none.
	status int
	text   strings.Builder
}

// Unwrap lets the library flush.
func (w *refusals) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *refusals) WriteHeader(status int) {
	kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if status >= http.StatusBadRequest && kind == "text/plain" && !isNotification(w.message) {
		w.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *refusals) Write(b []byte) (int, error) {
	if w.status != 0 {
		return w.text.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// answer writes the error that replaces a refusal.
func (w *refusals) answer() {
	if w.status == 0 {
		return
	}
	id, words := idOf(w.message), strings.TrimSpace(w.text.String())
	switch {
	case w.status != http.StatusMethodNotAllowed && !json.Valid(w.message):
		refuse(w.ResponseWriter, w.status, nil, jsonrpc.CodeParseError, "the message is not valid JSON")
	case strings.HasPrefix(words, unhandled) && id != nil:
		// Clients read the answer to a call only if the status is 200.
		refuse(w.ResponseWriter, http.StatusOK, id, jsonrpc.CodeMethodNotFound, "there is no such method")
	case strings.HasPrefix(words, unhandled):
		refuse(w.ResponseWriter, w.status, nil, jsonrpc.CodeMethodNotFound, "there is no such method")
	case w.status >= http.StatusInternalServerError:
		refuse(w.ResponseWriter, w.status, id, jsonrpc.CodeInternalError, "something went wrong on our side")
	default:
		refuse(w.ResponseWriter, w.status, id, jsonrpc.CodeInvalidRequest, words)
	}
}

// isNotification reports whether a message is a notification, which has no answer.
func isNotification(message []byte) bool {
	var members map[string]json.RawMessage
	var method string
	return json.Unmarshal(message, &members) == nil && string(members["jsonrpc"]) == `"2.0"` &&
		json.Unmarshal(members["method"], &method) == nil && members["id"] == nil
}

// idOf returns the id of a message; nil if it has no valid one.
func idOf(message []byte) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(message, &members) != nil {
		return nil
	}
	id := members["id"]
	if len(id) == 0 || !strings.ContainsRune(`"-0123456789`, rune(id[0])) {
		return nil
	}
	return id
}

// refuse answers a message with an error.
func refuse(w http.ResponseWriter, status int, id json.RawMessage, code int, words string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(rpcError(id, code, words, nil)) // an error means that the client is gone
}

// rpcError returns an error of JSON-RPC. Without an id, the id is null.
func rpcError(id json.RawMessage, code int, words string, data map[string]any) []byte {
	failure := map[string]any{"code": code, "message": words}
	if data != nil {
		failure["data"] = data
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": failure}) // never fails: the id was read from JSON
	return body
}
