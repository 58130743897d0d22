package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"earshot/api"
	"earshot/internal/problem"
)

// MaxAnswer is the maximum size of an answer in bytes of JSON: some 20,000 tokens, which agents can
// read at a time. A larger page is cut to fit, but has at least one item.
const MaxAnswer = 64 << 10

// result is the answer to a call: data or an error, as JSON.
type result struct {
	body   []byte
	failed bool
}

// call runs a tool.
func (s *Surface) call(ctx context.Context, g *api.SurfaceRequest, r *ready, raw json.RawMessage) (got result) {
	defer func() {
		// The library runs this in a goroutine of its own, where a panic would end the process. The
		// panics of operations are recovered before.
		if what := recover(); what != nil {
			s.log.ErrorContext(ctx, "tool panicked", "tool", r.name, "error", fmt.Sprint(what), "stack", string(debug.Stack()))
			got = toolError(problem.New(problem.Internal, "Something went wrong on our side."))
		}
	}()
	if r.writes() && !g.MayWrite() {
		return toolError(api.ReadsOnly())
	}
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var (
		arguments map[string]json.RawMessage
		op        *operation
		req       *request
		err       error
	)
	decode := func() {
		if json.Unmarshal(raw, &arguments) != nil {
			err = problem.Invalid("", "type", "the arguments must be an object")
			return
		}
		if op, err = r.choose(arguments); err == nil {
			req, err = op.request(raw, arguments, r.unknown(op, arguments))
		}
	}
	if waited := g.Decode(ctx, len(raw), decode); waited != nil {
		return toolError(problem.New(problem.Unavailable, "The service is too busy with something else; try again later."))
	}
	if err != nil {
		return toolError(err)
	}
	return s.run(ctx, g.Call(r.name), op, req, arguments)
}

// run runs the operation of a call.
func (s *Surface) run(ctx context.Context, call *api.ToolCall, op *operation, req *request, arguments map[string]json.RawMessage) result {
	got := s.perform(ctx, call, op, req)
	note := ""
	if op.next() != "" {
		got, note = s.fitting(ctx, call, op, req, got)
	}
	if got.failed {
		return got
	}
	if _, asked := arguments["part"]; asked && !op.writes() {
		return piece(got.body, arguments)
	}
	if len(got.body) > MaxAnswer {
		got.body, note = shortened(got.body, op.answer)
	}
	if note != "" {
		got.body = with(got.body, "note", note)
	}
	return got
}

// perform runs an operation once. Its answer is in the tools' names, and may be too large.
func (s *Surface) perform(ctx context.Context, call *api.ToolCall, op *operation, req *request) result {
	answer, err := call.Run(ctx, req.method, req.target(), req.headers, req.body)
	if err != nil {
		return toolError(err)
	}
	if answer.Status >= http.StatusBadRequest {
		return s.failure(answer, req.unknown)
	}
	answer.Body = s.itemErrors(op, answer.Body)
	return result{body: success(op, answer)}
}

// success returns the operation's data in the tools' names.
func success(op *operation, answer *api.Answer) []byte {
	body := op.answer.outward(answer.Body)
	if op.creates {
		body = with(body, "created", answer.Status == http.StatusCreated)
	}
	if tag := answer.Header.Get("ETag"); tag != "" {
		body = with(body, "etag", tag)
	}
	return body
}

// with adds a member at the end of a non-empty object.
func with(body []byte, name string, value any) []byte {
	encoded, _ := json.Marshal(value) // never fails: a string or a boolean
	return fmt.Appendf(bytes.TrimSuffix(body, []byte("}")), ",%q:%s}", name, encoded)
}

// fitting requests fewer items if a page is larger than MaxAnswer. The cursor of the smaller page
// leads to the rest.
func (s *Surface) fitting(ctx context.Context, call *api.ToolCall, op *operation, req *request, page result) (_ result, note string) {
	// Without a limit, some lists return more items than the limit parameter accepts.
	most := math.MaxInt
	if limit := op.input.Properties["limit"].Value.Max; limit != nil {
		most = int(*limit)
	}
	for !page.failed && len(page.body) > MaxAnswer {
		n, all := fits(page.body)
		if all <= 1 {
			break
		}
		n = min(n, most)
		req.query.Set("limit", strconv.Itoa(n))
		note = fmt.Sprintf("Only %d items, because more would be over %d KiB; %s leads to the rest.", n, MaxAnswer>>10, op.next())
		page = s.perform(ctx, call, op, req)
	}
	return page, note
}

// fits returns the number of items that fit into an answer, at least one, and the number of all
// items. It counts them in the tools' names, which are longer than the API's.
func fits(page []byte) (n, all int) {
	var p struct {
		Data []json.RawMessage `json:"data"`
	}
	if json.Unmarshal(page, &p) != nil {
		return 1, 1
	}
	// Room for the note, and for a cursor where there was none.
	room := MaxAnswer - 2048 - len(page)
	for _, item := range p.Data {
		room += len(item)
	}
	for n < len(p.Data) && len(p.Data[n]) <= room {
		room -= len(p.Data[n])
		n++
	}
	// Fewer items than before, so that repeated requests come to an end.
	return max(1, min(n, len(p.Data)-1)), len(p.Data)
}

// envelope is the error format of the API and the tools.
type envelope[Details any] struct {
	Error struct {
		Code    problem.Code `json:"code"`
		Message string       `json:"message"`
		Details Details      `json:"details,omitempty"`
	} `json:"error"`
}

// failure converts the error of an operation to the tools' names. It adds the unknown arguments of
// the call.
func (s *Surface) failure(answer *api.Answer, unknown problem.Fields) result {
	var e envelope[map[string]json.RawMessage]
	if err := json.Unmarshal(answer.Body, &e); err != nil {
		return toolError(problem.New(problem.Internal, "Something went wrong on our side."))
	}
	p := s.refused(e, unknown)
	if wait := answer.Header.Get("Retry-After"); wait != "" {
		p = p.With("retry_after", json.Number(wait)) // in seconds; a batch has used up its rate limit
	}
	return toolError(p)
}

// refused converts an error to the tools' names.
func (s *Surface) refused(e envelope[map[string]json.RawMessage], unknown problem.Fields) *problem.Error {
	p := problem.New(e.Error.Code, s.contract.prose(e.Error.Message))
	for name, value := range e.Error.Details {
		p = p.With(Snake(name), value)
	}
	var field string
	if json.Unmarshal(e.Error.Details["field"], &field) == nil {
		p = p.With("field", path(field))
	}
	var fields problem.Fields
	if json.Unmarshal(e.Error.Details["fields"], &fields) == nil {
		p, _ = problem.As(s.fields(fields, unknown).Err())
	}
	return p
}

// itemErrors converts the errors of single items to the tools' names, if the operation has them.
func (s *Surface) itemErrors(op *operation, answer []byte) []byte {
	if !op.answersItems() {
		return answer
	}
	var body struct {
		Data []json.RawMessage `json:"data"`
	}
	if json.Unmarshal(answer, &body) != nil {
		return answer
	}
	for i, item := range body.Data {
		var e envelope[map[string]json.RawMessage]
		if json.Unmarshal(item, &e) == nil && e.Error.Code != "" {
			body.Data[i] = toolError(s.refused(e, nil)).body
		}
	}
	answer, _ = json.Marshal(body) // never fails: the JSON was read before
	return answer
}

// fields converts the errors of a validation. The unknown arguments replace the refusal that they
// caused.
func (s *Surface) fields(all, unknown problem.Fields) (bad problem.Fields) {
	for _, f := range all {
		switch {
		case f.Field == refusal:
			bad = append(bad, unknown...)
		case f.Rule == "unknown":
			bad.Add(given(f.Field), f.Rule, "%s", s.contract.prose(strings.ReplaceAll(f.Message, foreign, "")))
		default:
			bad.Add(path(f.Field), f.Rule, "%s", s.contract.prose(f.Message))
		}
	}
	return bad
}

// toolError is an error that an agent can act on.
func toolError(err error) result {
	p, ok := problem.As(err)
	if !ok {
		p = problem.New(problem.Internal, "Something went wrong on our side.")
	}
	var e envelope[map[string]any]
	e.Error.Code, e.Error.Message, e.Error.Details = p.Code, p.Message, p.Details
	body, _ := json.Marshal(e) // never fails: strings, numbers and fields
	return result{body, true}
}
