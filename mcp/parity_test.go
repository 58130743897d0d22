package mcp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/mcp"
)

// Two organizations go through the same story: one by REST, one by tools. The test compares the
// answers after each step, and the payloads for their webhooks at the end.

// step is a call of an operation. Texts that begin with $ stand for stored ids.
type step struct {
	operation string
	with      object
	// keep is the name under which the id or the cursor of the result is stored.
	keep string
}

// sides are the two organizations.
type sides struct {
	t          *testing.T
	rest, mcp  *apptest.Tenant
	agent      agent
	operations map[string]operation
	tools      map[string]mcp.Reached
	kept       [2]object
	seen       [2]map[string]string // ids, named in order of appearance
	names      *regexp.Regexp       // the contract's names that tools spell differently
}

func newSides(t *testing.T) *sides {
	t.Helper()
	app := apptest.Start(t, apptest.Options{})
	s := &sides{
		t: t, rest: app.Tenant(t), mcp: app.Tenant(t), operations: operations(t), tools: map[string]mcp.Reached{},
		kept: [2]object{{}, {}}, seen: [2]map[string]string{{}, {}},
	}
	s.agent = newAgent(t, app, s.mcp.Key)
	for _, row := range mcp.Table() {
		s.tools[row.Operation] = row
	}
	doc, err := api.Contract()
	require.NoError(t, err)
	raw, err := doc.MarshalJSON()
	require.NoError(t, err)
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z]+(?:[A-Z][a-z]*)+)"`).FindAllSubmatch(raw, -1) {
		found[string(m[1])] = true
	}
	for _, o := range s.operations {
		for _, name := range o.names() {
			found[name] = found[name] || name != underscored(name)
		}
	}
	maps.DeleteFunc(found, func(_ string, humps bool) bool { return !humps })
	s.names = regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(found)), "|") + `)\b`)
	return s
}

// underscored converts a name without the code under test.
func underscored(name string) string {
	return strings.TrimPrefix(strings.ToLower(upper.ReplaceAllString(strings.ReplaceAll(name, "-", ""), "_$0")), "_")
}

// do runs a step on both sides and requires the same answer.
func (s *sides) do(step step, what string) {
	s.t.Helper()
	wanted, status := s.byREST(step)
	got := s.byTool(step)
	sorted(wanted)
	sorted(got.body)
	require.Equal(s.t, s.anonymous(0, wanted), s.anonymous(1, got.body), "%s, %s: REST answered %d", step.operation, what, status)
	require.Equal(s.t, status >= http.StatusBadRequest, got.failed)
	if step.keep != "" {
		s.kept[0][step.keep], s.kept[1][step.keep] = first(wanted), first(got.body)
		require.NotNil(s.t, s.kept[0][step.keep], "%s %v", step.operation, wanted)
	}
}

// sorted sorts the errors of a validation. Their order in the contract's answer is random, and the
// message describes the first one.
func sorted(body object) {
	e, _ := body["error"].(object)
	details, _ := e["details"].(object)
	fields, _ := details["fields"].([]any)
	if len(fields) < 2 {
		return
	}
	sort.Slice(fields, func(i, j int) bool { return fmt.Sprint(fields[i]) < fmt.Sprint(fields[j]) })
	_, e["message"], _ = strings.Cut(e["message"].(string), " (and ")
}

// first returns the id of the result, or the cursor of the next page.
func first(body object) any {
	switch data := body["data"].(type) {
	case object:
		return data["id"]
	case []any:
		if cursor := body["next_cursor"]; cursor != nil {
			return cursor
		}
		return data[0].(object)["id"]
	}
	return nil
}

// byREST runs a step by a request and returns the answer that a tool must give.
func (s *sides) byREST(step step) (wanted object, status int) {
	s.t.Helper()
	o := s.operations[step.operation]
	path, query, body, header := o.path, url.Values{}, s.filled(0, step.with).(object), []string(nil)
	for _, p := range o.Parameters {
		value, given := body[p.Value.Name]
		delete(body, p.Value.Name)
		switch {
		case !given:
		case p.Value.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", fmt.Sprint(value))
		case p.Value.In == "header":
			header = append(header, p.Value.Name, fmt.Sprint(value))
		default:
			query.Set(p.Value.Name, commas(value))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var sent any
	if o.RequestBody != nil {
		sent = body
	}
	a := s.rest.Do(s.t, o.method, path, sent, header...)
	wanted = s.renamed(a.Body, "").(object)
	_, made := o.Responses.Map()["201"]
	_, there := o.Responses.Map()["200"]
	if made && there && a.Status < 300 {
		wanted["created"] = a.Status == http.StatusCreated
	}
	if tag := a.Header.Get("ETag"); tag != "" {
		wanted["etag"] = tag
	}
	return wanted, a.Status
}

func commas(value any) string {
	items, ok := value.([]any)
	if !ok {
		return fmt.Sprint(value)
	}
	var all []string
	for _, item := range items {
		all = append(all, fmt.Sprint(item))
	}
	return strings.Join(all, ",")
}

// byTool runs a step by a tool.
func (s *sides) byTool(step step) answer {
	s.t.Helper()
	row := s.tools[step.operation]
	arguments := object{}
	for name, value := range s.filled(1, step.with).(object) {
		arguments[underscored(name)] = s.renamed(value, name)
	}
	if row.Action != "" {
		arguments["action"] = row.Action
	}
	return s.agent.call(s.t, row.Tool, arguments)
}

// filled replaces $name by the stored value.
func (s *sides) filled(side int, value any) any {
	switch value := value.(type) {
	case string:
		if name, ok := strings.CutPrefix(value, "$"); ok {
			require.Contains(s.t, s.kept[side], name)
			return s.kept[side][name]
		}
	case object:
		out := object{}
		for name, inner := range value {
			out[name] = s.filled(side, inner)
		}
		return out
	case []any:
		out := []any{}
		for _, item := range value {
			out = append(out, s.filled(side, item))
		}
		return out
	}
	return value
}

// renamed converts names as tools do, except the caller's own.
func (s *sides) renamed(value any, under string) any {
	switch value := value.(type) {
	case object:
		out := object{}
		for name, inner := range value {
			if slices.Contains([]string{"metadata", "json", "payload", "record"}, under) {
				out[name] = inner
			} else {
				out[underscored(name)] = s.renamed(inner, name)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = s.renamed(item, under)
		}
		return out
	case string:
		if under == "message" || under == "field" {
			return s.names.ReplaceAllStringFunc(value, underscored)
		}
		return value
	}
	return value
}

var (
	upper   = regexp.MustCompile(`[A-Z]`)
	ids     = regexp.MustCompile(`\b[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}\b`)
	moments = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	secrets = regexp.MustCompile(`\b(whsec_\w{32}|wgsec_\w{52}|esk_\w+)`)
	cursors = regexp.MustCompile(`"next_cursor": "[^"]+"`)
	// ETags depend on ids and times, which differ.
	etags = regexp.MustCompile(`"etag": "\\"[^"]+\\""`)
	// The time is written once a minute, so it depends on the order of calls.
	used = regexp.MustCompile(`"last_used_at": (null|"T")`)
)

// anonymous returns JSON that is the same on both sides if they did the same.
func (s *sides) anonymous(side int, value any) string {
	s.t.Helper()
	plain := moments.ReplaceAllString(indented(s.t, value), "T")
	plain = cursors.ReplaceAllString(secrets.ReplaceAllString(plain, "S"), `"next_cursor": C`)
	plain = etags.ReplaceAllString(plain, `"etag": E`)
	plain = used.ReplaceAllString(plain, `"last_used_at": U`)
	return ids.ReplaceAllStringFunc(plain, func(id string) string {
		if s.seen[side][id] == "" {
			s.seen[side][id] = fmt.Sprintf("%s%d", id[:4], len(s.seen[side]))
		}
		return s.seen[side][id]
	})
}

func TestRESTAndToolsDoTheSameWithTheSame(t *testing.T) {
	tier.OneByOne(t)
	t.Parallel()
	s := newSides(t)
	done := map[string]bool{}
	for _, step := range slices.Concat(story(), deliveries()) {
		if step.operation == "listSubjectRecords" && step.with["limit"] != nil {
			s.rest.Finished(t, s.kept[0]["request"].(string))
			s.mcp.Finished(t, s.kept[1]["request"].(string))
		}
		if step.operation == "listSubmissions" {
			for side, n := range []*apptest.Tenant{s.rest, s.mcp} {
				n.Submission(t, s.kept[side]["board"].(string), s.kept[side]["post"].(string))
			}
		}
		s.do(step, "good input")
		done[step.operation] = true
	}
	for id := range s.operations {
		require.True(t, done[id] || strings.HasPrefix(id, "delete"), "the story has no %s", id)
	}
	if testing.Short() {
		return // the flaws take 500 calls; make test-all runs them
	}
	tried := 0
	for _, step := range slices.Concat(story(), deliveries()) {
		if done[step.operation] {
			tried += s.allFlaws(step)
		}
		done[step.operation] = false // once per operation
	}
	heard := s.heard(0, s.rest)
	require.Equal(t, heard, s.heard(1, s.mcp))
	for _, kind := range event.Types {
		if kind != event.ContactDeleted {
			require.Contains(t, heard, string(kind), "the story has every event")
		}
	}
	for _, step := range ending() {
		tried += s.allFlaws(step)
		s.do(step, "good input")
	}
	require.Greater(t, tried, 500)
}

// heard returns the payloads of all deliveries to the organization's webhook.
func (s *sides) heard(side int, n *apptest.Tenant) string {
	s.t.Helper()
	base := "/v1/webhooks/" + s.kept[side]["webhook"].(string) + "/deliveries"
	var all []any
	for at := base + "?limit=200"; at != ""; {
		page := n.Do(s.t, http.MethodGet, at, nil)
		for _, d := range page.Body["data"].([]any) {
			all = append(all, n.Do(s.t, http.MethodGet, base+"/"+d.(object)["id"].(string), nil).Data()["payload"])
		}
		at = ""
		if cursor, ok := page.Body["nextCursor"].(string); ok {
			at = base + "?limit=200&cursor=" + url.QueryEscape(cursor)
		}
	}
	return s.anonymous(side, all)
}

// allFlaws tries every wrong value for each argument of a step, and then all arguments together.
func (s *sides) allFlaws(good step) (tried int) {
	s.t.Helper()
	o := s.operations[good.operation]
	all := object{}
	for _, p := range o.Parameters {
		if p.Value.In != "path" {
			continue
		}
		all[p.Value.Name] = good.with[p.Value.Name]
		for _, id := range []any{"nonsense", "usr_00000000000000000000000000", unknown(p.Value.Name), "a.b", "é"} {
			s.flawed(good, p.Value.Name, id)
			tried++
		}
	}
	for _, name := range o.names() {
		if _, inPath := all[name]; inPath || name == "If-None-Match" { // a tool stores no earlier answer
			continue
		}
		inHeader := o.Parameters.GetByInAndName("header", name) != nil
		inBody := o.RequestBody != nil && o.Parameters.GetByInAndName("query", name) == nil && !inHeader
		wrong := flaws(o.arguments()[name], inBody)
		if inHeader {
			wrong = []any{strings.Repeat("k", 256)} // clients send no other wrong header
		}
		if strings.HasSuffix(name, "Id") {
			wrong = append(wrong, "$board")
		}
		for _, value := range wrong {
			s.flawed(good, name, value)
			tried++
		}
		all[name] = wrong[0]
	}
	s.do(step{operation: good.operation, with: all}, "everything wrong at once")
	return tried + 1
}

func (s *sides) flawed(good step, name string, value any) {
	s.t.Helper()
	with := object{name: value}
	for other, kept := range good.with {
		if other != name {
			with[other] = kept
		}
	}
	raw, _ := json.Marshal(value)
	s.do(step{operation: good.operation, with: with}, fmt.Sprintf("%s is %.60s", name, raw))
}
