package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// Every value is stored exactly or refused with 422. It never results in a 500, and it never
// changes silently.
func TestUnusualInputIsStoredExactlyOrRefused(t *testing.T) {
	t.Parallel()
	together(t, roomy.Start(t), map[string]func(*testing.T, *apptest.App){
		"in every text of a body":                                    textsOfBodies,
		"in every text of a query":                                   textsOfQueries,
		"and a search finds the text that was written, only":         exactFilters,
		"and ids of letters that look alike stay apart, tags do not": twoForms,
		"in a document or metadata, number for number":               documents,
		"in a document or metadata of every depth":                   depths,
		"in a document or metadata of 256 KiB, and not a byte more":  sizes,
		"in a text of 1 MiB":                                         giantTexts,
		"when a member is there twice":                               duplicates,
		"in a number that takes long to write out":                   giantNumbers,
		"when a moment is finer than a timestamp or out of time":     momentsOfBodies,
	})
}

// nasty are texts that often break programs.
var nasty = map[string]string{
	"of another plane": "x😀𝒳🇩🇪👩‍👩‍👧x", "with combining marks": "xe\u0301\u0327\u20ddx", "composed": "x\u00e9x",
	"from right to left": "x\u202eאבג\u202c\u200fx", "with the replacement character": "x\ufffdx",
	"with line separators": "x\u2028\u2029\u0085x", "without width": "x\u200b\u200d\u2060\ufeffx",
	"with control characters": "x\u0001\u001b\u007fx", "with line ends": "x\r\n\tx", "with no characters": "x\uffff\U0010ffff\ufdd0x",
	"with quotes": `x"'\` + "`$x", "with SQL": "x'); DROP TABLE posts; --%_x", "with HTML": "x<b>&amp;</b>x",
	"with a format": "x%s%n%00%x", "of private use": "x\ue000\U000f0000x", "with letters of two cases": "xİıßẞǅx",
}

// isText reports whether a member takes any text.
func isText(s *openapi3.Schema) bool {
	return s.Type.Includes("string") && !s.Type.Includes("object") && s.Pattern == "" && s.Format != "date-time" &&
		len(s.Enum) == 0 && s.MaxLength != nil
}

// around puts a text into the format of a member, if the format has room for any text.
func around(name, text string) string {
	switch name {
	case "email":
		return text + "@example.com"
	case "url":
		return "https://example.com/" + text
	}
	return text
}

// textMembers returns the operation's text members. Nested members have their whole name, for
// example body.text.
func (o operation) textMembers() map[string]*openapi3.Schema {
	all := map[string]*openapi3.Schema{}
	for name, s := range properties(o.schema()) {
		if isText(s) {
			all[name] = s
		}
		for inner, s := range properties(s) {
			if isText(s) {
				all[name+"."+inner] = s
			}
		}
	}
	return all
}

// with returns a body with a value in the member of a whole name.
func with(name string, value any) object {
	head, tail, nested := strings.Cut(name, ".")
	if nested {
		return object{head: object{tail: value}}
	}
	return object{name: value}
}

func textsOfBodies(t *testing.T, app *apptest.App) {
	tier.Slow(t, "each nasty text in each member of each body")
	hasText := func(o operation) bool { return hasBody(o) && len(o.textMembers()) > 0 }
	everyOperation(t, hasText, func(t *testing.T, o operation) {
		n, count := newFixture(t, app), 0
		for name := range o.textMembers() {
			for kind, text := range nasty {
				count++
				p, text := n.at(t, o, count), around(name, text)
				if name == "confirmName" {
					made := p.Do(t, http.MethodPost, "/v1/boards", object{"name": text})
					if made.Status == http.StatusUnprocessableEntity {
						continue // no board has this name
					}
					p.ids["boardId"] = made.Data()["id"].(string)
				}
				given := with(name, text)
				a := p.Do(t, o.method, o.filled(t, p.ids), p.body(t, given))
				if a.Status == http.StatusUnprocessableEntity {
					assert.Equal(t, []string{name}, a.Fields(), "%s %s: %s", name, kind, a.Raw)
					continue
				}
				if a.Status == http.StatusConflict && o.OperationID == "createTag" {
					continue // a tag that looks alike exists
				}
				require.Less(t, a.Status, 300, "%s %s: %d %s", name, kind, a.Status, a.Raw)
				if name == "email" {
					given = object{name: strings.ToLower(text)} // as documented
				}
				for member, value := range given {
					if got, ok := a.Data()[member]; ok {
						requireHeld(t, value, got, name+" "+kind)
					}
				}
			}
		}
	})
}

func textsOfQueries(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	everyOperation(t, hasQuery, func(t *testing.T, o operation) {
		for _, q := range o.queries() {
			if !q.Schema.Value.Type.Includes("string") && !q.Schema.Value.Type.Includes("array") {
				continue
			}
			for kind, text := range nasty {
				a := n.Do(t, o.method, o.filled(t, n.ids)+"?"+q.Name+"="+url.QueryEscape(text), nil)
				if a.Status == http.StatusOK {
					require.True(t, isText(q.Schema.Value) || q.Name == "plan" || q.Name == "actions", "%s %s: %s", q.Name, kind, a.Raw)
					continue
				}
				want := http.StatusUnprocessableEntity
				if idsOf[q.Name] != "" {
					want = http.StatusNotFound
				}
				require.Equal(t, want, a.Status, "%s %s: %s", q.Name, kind, a.Raw)
			}
			for _, raw := range []string{"%00", "a%00b", "%FF", "%ED%A0%80", "%F4%90%80%80", "%C0%80"} {
				a := n.Do(t, o.method, o.filled(t, n.ids)+"?"+q.Name+"="+raw, nil)
				if strings.Contains(raw, "%00") && idsOf[q.Name] != "" {
					assert.Equal(t, http.StatusNotFound, a.Status, "%s=%s: %s", q.Name, raw, a.Raw)
					continue
				}
				assert.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s=%s: %s", q.Name, raw, a.Raw)
			}
		}
	})
}

// exactFilters makes a contact for each nasty text, and searches for the text.
func exactFilters(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	for kind, text := range nasty {
		id := n.ID(t, "/v1/contacts", object{"externalUserId": text, "name": text, "plan": text})
		for _, filter := range []string{"externalUserId", "plan", "q"} {
			a := n.Do(t, http.MethodGet, "/v1/contacts?"+filter+"="+url.QueryEscape(text), nil)
			require.Equal(t, http.StatusOK, a.Status, "%s %s: %s", filter, kind, a.Raw)
			found := a.Body["data"].([]any)
			if !assert.Len(t, found, 1, "%s %s", filter, kind) {
				continue
			}
			assert.Equal(t, id, found[0].(object)["id"], "%s %s", filter, kind)
		}
	}
}

// twoForms checks that é as one character and é as two characters stay different texts.
func twoForms(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	composed, decomposed := "Caf\u00e9", "Cafe\u0301"
	tags := "/v1/boards/" + n.ids["boardId"] + "/tags"
	require.Equal(t, composed, n.Make(t, http.MethodPost, tags, object{"name": composed})["name"])
	for _, alike := range []string{decomposed, "CAF\u00c9", "\uff23\uff41\uff46\u00e9"} {
		n.Refused(t, "ERR_CONFLICT", http.MethodPost, tags, object{"name": alike})
	}
	for _, text := range []string{composed, decomposed} {
		a := n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": text, "email": text + "@example.com"})
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
		require.Equal(t, text, a.Data()["externalUserId"])
	}
	for _, text := range []string{composed, decomposed} {
		for filter, value := range map[string]string{"externalUserId": text, "email": text + "@example.com", "q": text} {
			found := n.Do(t, http.MethodGet, "/v1/contacts?"+filter+"="+url.QueryEscape(value), nil).Body["data"].([]any)
			if filter == "q" && len(found) == 0 {
				continue // q searches the name and the e-mail address, which is in lower case
			}
			require.Len(t, found, 1, filter)
			require.Equal(t, text, found[0].(object)["externalUserId"])
		}
	}
}

// freeForm returns the operation's members that take JSON of any shape.
func (o operation) freeForm() []string {
	var all []string
	for name, s := range properties(o.schema()) {
		if s.Type.Includes("object") && s.MaxProps != nil && s.AdditionalProperties.Schema == nil {
			all = append(all, name)
		}
		for inner, s := range properties(s) {
			if s.Type.Includes("string") && s.Type.Includes("object") {
				all = append(all, name+"."+inner)
			}
		}
	}
	slices.Sort(all)
	return all
}

func hasFreeForm(o operation) bool { return hasBody(o) && len(o.freeForm()) > 0 }

// put sends a document in a member. It returns the answer and the document that came back.
func (p *place) put(t *testing.T, name, document string) (apptest.Answer, json.RawMessage) {
	t.Helper()
	body := p.body(t, with(name, "%"))
	if text, ok := body["body"].(object); ok {
		text["text"] = "x"
	}
	raw, err := json.Marshal(body)
	require.NoError(t, err)
	raw = bytes.Replace(raw, []byte(`"%"`), []byte(document), 1)
	a := p.Do(t, p.operation.method, p.operation.filled(t, p.ids), raw)
	var read struct {
		Data struct {
			Metadata json.RawMessage
			Body     struct{ JSON json.RawMessage }
		}
	}
	if a.Status >= 300 {
		return a, nil
	}
	require.NoError(t, json.Unmarshal(a.Raw, &read))
	if name == "metadata" {
		return a, read.Data.Metadata
	}
	return a, read.Data.Body.JSON
}

// requireExact requires the same document, with the text of each number and the order of keys. Only
// white space and escapes may differ. If a key is repeated, its first value may be missing.
func requireExact(t *testing.T, sent string, got json.RawMessage, what string) {
	t.Helper()
	require.Equal(t, tokens(t, []byte(sent)), tokens(t, got), what)
}

func tokens(t *testing.T, document []byte) []json.Token {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	var all []json.Token
	for {
		token, err := d.Token()
		if err != nil {
			return all
		}
		all = append(all, token)
	}
}

func documents(t *testing.T, app *apptest.App) {
	exact := map[string]string{
		"beyond 2^53":         `{"n":[9007199254740993,-9007199254740993,18446744073709551616,123456789012345678901234567890]}`,
		"beyond a double":     `{"n":[1e400,-1e400,1e-400,1E+400]}`,
		"of another notation": `{"n":[-0,-0.0,1.0,1.10,1e2,1E2,1e+02,0.1e-7]}`,
		"an absurd exponent":  `{"n":[1e999999999,1e-999999999]}`,
		"NUL and surrogates":  `{"a\u0000b":"\u0000","\ud83d\ude00":"\uD83D\uDE00","\ufffd":"\uFFFD"}`,
		"odd keys":            `{"":1," ":2,"__proto__":3,"constructor":4,"a.b":5,"a[0]":6,"<b>&":7,"\u2028":8}`,
		"keys in their order": `{"z":1,"a":{"y":1,"b":2},"10":1,"9":2}`,
		"keys of two cases":   `{"Key":1,"key":2,"KEY":3}`,
		"two forms of é":      "{\"\u00e9\":1,\"e\u0301\":2}",
		"keys twice, inside":  `{"a":[{"b":1,"b":2}]}`,
		"white space":         " {\n\t\"a\" : [ 1 , 2 ] }\r\n",
	}
	everyOperation(t, hasFreeForm, func(t *testing.T, o operation) {
		n, count := newFixture(t, app), 0
		for _, name := range o.freeForm() {
			for kind, document := range exact {
				count++
				a, got := n.at(t, o, count).put(t, name, document)
				require.Less(t, a.Status, 300, "%s %s: %s", name, kind, a.Raw)
				requireExact(t, document, got, name+" "+kind)
			}
		}
	})
}

// depths checks that a stored document can be read again. Answers and events nest it deeper than
// the request. Go's decoder, in the service and in its clients, stops at 10,000 levels.
func depths(t *testing.T, app *apptest.App) {
	everyOperation(t, hasFreeForm, func(t *testing.T, o operation) {
		n, count := newFixture(t, app), 0
		for _, name := range o.freeForm() {
			for _, depth := range []int{100, 1_000, 9_990, 9_994, 9_996, 9_998, 9_999, 20_000} {
				count++
				p := n.at(t, o, count)
				t.Run(fmt.Sprint(name, " ", depth), func(t *testing.T) { p.nest(t, name, depth) })
			}
		}
		readable(t, n)
	})
}

// nest sends a deep document and then another one in its place, so that the service compares both.
func (p *place) nest(t *testing.T, name string, depth int) {
	t.Helper()
	for _, end := range []string{"1", "2"} {
		document := strings.Repeat(`{"a":`, depth) + end + strings.Repeat("}", depth)
		a, got := p.put(t, name, document)
		if a.Status == http.StatusUnprocessableEntity && depth > 1_000 {
			return
		}
		require.Less(t, a.Status, 300, "%.200s", a.Raw)
		require.True(t, bytes.Equal([]byte(document), got), "another document came back")
	}
}

// readable requires that every delivery can be read, with any content.
func readable(t *testing.T, n fixture) {
	t.Helper()
	log := n.Do(t, http.MethodGet, "/v1/webhooks/"+n.ids["webhookId"]+"/deliveries?limit=200", nil)
	for _, d := range log.Body["data"].([]any) {
		a := n.Do(t, http.MethodGet, "/v1/webhooks/"+n.ids["webhookId"]+"/deliveries/"+d.(object)["id"].(string), nil)
		assert.Equal(t, http.StatusOK, a.Status, "%.200s", a.Raw)
	}
}

func sizes(t *testing.T, app *apptest.App) {
	const high = 256 << 10
	everyOperation(t, hasFreeForm, func(t *testing.T, o operation) {
		n := newFixture(t, app)
		for i, name := range o.freeForm() {
			p := n.at(t, o, i+1)
			full := `{"a":"` + strings.Repeat("x", high-len(`{"a":""}`)) + `"}`
			a, got := p.put(t, name, full)
			require.Less(t, a.Status, 300, "%s: %.300s", name, a.Raw)
			require.Equal(t, full, string(got))
			a, _ = p.put(t, name, strings.Replace(full, "x", "xx", 1))
			require.Equal(t, [][2]string{{name, "maxBytes"}}, rules(a), "%.300s", a.Raw)
		}
	})
}

func giantTexts(t *testing.T, app *apptest.App) {
	tier.Slow(t, "texts of 1 MiB")
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	hasText := func(o operation) bool { return hasBody(o) && len(o.textMembers()) > 0 }
	everyOperation(t, hasText, func(t *testing.T, o operation) {
		for name := range o.textMembers() {
			for _, filling := range []string{"x", "é", "😀", `\u0041`, " "} {
				body := o.request(t).(object)
				maps.Copy(body, with(name, "%"))
				raw, err := json.Marshal(body)
				require.NoError(t, err)
				room := 1<<20 - len(raw) + 1
				text := strings.Repeat(filling, room/len(filling)) + strings.Repeat("y", room%len(filling))
				a := n.Do(t, o.method, o.filled(t, n.ids), bytes.Replace(raw, []byte("%"), []byte(text), 1))
				require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s of %s: %.300s", name, filling, a.Raw)
				require.Contains(t, a.Fields(), name)
				require.Less(t, len(a.Raw), 2<<20, "the answer repeats what was sent")
			}
		}
	})
	unchanged(t)
}

// duplicates checks repeated members. Either the last one counts, or the body is refused. Their
// values are never mixed.
func duplicates(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	board := "/v1/boards/" + n.ids["boardId"]
	for _, c := range []struct{ method, path, body, member, want string }{
		{"POST", "/v1/boards", `{"name":"first","name":"last"}`, "name", `"last"`},
		{"POST", "/v1/boards", `{"name":"x","description":"first","description":"last"}`, "description", `"last"`},
		{"PATCH", board, `{"showRoadmap":true,"showRoadmap":false}`, "showRoadmap", `false`},
		{"POST", board + "/posts", `{"title":"x","body":{"text":"first"},"body":{"json":1}}`, "body", `{"json":1,"text":""}`},
		{"POST", board + "/posts", `{"title":"x","body":{"json":1,"text":"first"},"body":{"text":"last"}}`, "body", `{"json":null,"text":"last"}`},
		{"POST", board + "/posts", `{"title":"x","body":{"text":"first","text":"last"}}`, "body", `{"json":null,"text":"last"}`},
		{"PATCH", "/v1/posts/" + n.ids["postId"], `{"body":{"text":"first"},"body":{"json":[2]}}`, "body", `{"json":[2],"text":""}`},
		{"PATCH", "/v1/posts/" + n.ids["postId"], `{"tagIds":["` + n.ids["tagId"] + `"],"tagIds":[]}`, "tagIds", `[]`},
		{"PATCH", "/v1/posts/" + n.ids["postId"], `{"contactId":"` + n.ids["contactId"] + `","contactId":null}`, "contactId", `null`},
		{"POST", board + "/changelog", `{"title":"x","body":{"text":"first"},"body":{"json":1}}`, "body", `{"json":1,"text":""}`},
		{"POST", "/v1/posts/" + n.ids["postId"] + "/comments", `{"body":{"text":"first"},"body":{"json":1}}`, "body", ""},
		{"PATCH", "/v1/comments/" + n.ids["commentId"], `{"body":{"text":"first"},"body":{"json":1}}`, "body", ""},
		{"PATCH", "/v1/contacts/" + n.ids["contactId"], `{"metadata":{"a":1,"b":2},"metadata":{"c":3}}`, "metadata", `{"c":3}`},
		{"PATCH", "/v1/contacts/" + n.ids["contactId"], `{"metadata":{"a":1,"b":2,"a":3}}`, "metadata", `{"a":3,"b":2}`},
		{"PATCH", "/v1/webhooks/" + n.ids["webhookId"], `{"metadata":{"a":1,"b":"2","a":"3"}}`, "metadata", `{"a":"3","b":"2"}`},
		{"PATCH", "/v1/contacts/" + n.ids["contactId"], `{"name":"first","name":null}`, "name", `null`},
		{"PATCH", "/v1/boards/" + n.ids["boardId"], `{"name":"first","name":null}`, "name", ""},
		{"PATCH", "/v1/boards/" + n.ids["boardId"], `{"name":null,"name":"last"}`, "name", `"last"`},
		{"PATCH", "/v1/boards/" + n.ids["boardId"], `{"name":7,"name":"last"}`, "name", `"last"`},
	} {
		a := n.Do(t, c.method, c.path, c.body)
		if a.Status == http.StatusUnprocessableEntity {
			continue
		}
		require.Less(t, a.Status, 300, "%s: %s", c.body, a.Raw)
		got, err := json.Marshal(a.Data()[c.member])
		require.NoError(t, err)
		if assert.NotEmpty(t, c.want, "%s should be refused, as its last %s is: %s", c.body, c.member, got) {
			assert.JSONEq(t, c.want, string(got), c.body)
		}
	}
}

// giantNumbers checks that giant numbers cost no more than other texts of their length.
func giantNumbers(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	many := strings.TrimSuffix(strings.Repeat("1e999999,", 10_000), ",")
	for body, path := range map[string]string{
		`{"mrrCents":1e999999,"currency":"EUR"}`:                               "/v1/contacts",
		`{"mrrCents":1e-999999,"currency":"EUR"}`:                              "/v1/contacts",
		`{"mrrCents":1e99999999999,"currency":"EUR"}`:                          "/v1/contacts",
		`{"mrrCents":` + strings.Repeat("9", 1_000_000) + `,"currency":"EUR"}`: "/v1/contacts",
		`{"title":"x","tagIds":[` + many + `]}`:                                "/v1/boards/" + n.ids["boardId"] + "/posts",
		`{"sourceIds":[` + many + `]}`:                                         "/v1/posts/" + n.ids["postId"] + "/merge",
		`{"url":"https://example.com/","events":[` + many + `]}`:               "/v1/webhooks",
		`{"overlapSeconds":1e999999}`:                                          "/v1/api-keys/" + n.ids["keyId"] + "/rotate",
		`{"overlapSeconds":0.` + strings.Repeat("3", 1_000_000) + `}`:          "/v1/api-keys/" + n.ids["keyId"] + "/rotate",
	} {
		began := time.Now()
		a := n.Do(t, http.MethodPost, path, body)
		assert.Equal(t, http.StatusUnprocessableEntity, a.Status, "%.80s: %.300s", body, a.Raw)
		// Milliseconds, if the service doesn't compute the number.
		assert.Less(t, time.Since(began), testkit.Wait/10, "%.80s", body)
	}
	unchanged(t)
}

// otherMoments are in a notation of RFC 3339 that Go doesn't know.
var otherMoments = map[string]string{
	"2199-06-30T23:59:60Z": "2199-07-01T00:00:00Z", "2199-03-12t10:41:07z": "2199-03-12T10:41:07Z",
}

// momentsOfBodies checks the digits that a timestamp doesn't store. They may be cut off only where
// the contract says so.
func momentsOfBodies(t *testing.T, app *apptest.App) {
	tier.Slow(t, "each moment in each member of each body")
	cut := time.Nanosecond
	if strings.Contains(prose(t), "microsecond") {
		cut = time.Microsecond
	}
	isMoment := func(s *openapi3.Schema) bool { return s.Format == "date-time" }
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		n, count := newFixture(t, app), 0
		for name, s := range properties(o.schema()) {
			if !isMoment(s) || name == "until" { // a window that ends in the future is cut at the current time
				continue
			}
			for _, moment := range []string{
				"2199-03-12T10:41:07.123456789Z", "9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59-23:59",
				"0001-01-01T00:00:00+23:59", "0000-01-01T00:00:00Z", "2199-02-30T00:00:00Z", "2199-06-30T23:59:60Z",
				"2199-03-12t10:41:07z", "2199-03-12 10:41:07Z", "2199-03-12", "2199-03-12T10:41:07", "2199-03-12T24:00:00Z",
				"2199-03-12T10:41:07,5Z", "2199-03-12T10:41:07.Z", "2199-03-12T1:41:07Z", "2199-03-12T10:41:07+24:00",
			} {
				count++
				p := n.at(t, o, count)
				a := p.Do(t, o.method, o.filled(t, p.ids), p.body(t, object{name: moment}))
				if a.Status == http.StatusUnprocessableEntity {
					continue
				}
				require.Less(t, a.Status, 300, "%s %s: %s", name, moment, a.Raw)
				at, err := time.Parse(time.RFC3339Nano, cmp.Or(otherMoments[moment], moment))
				if assert.NoError(t, err, "%s became %s", moment, a.Data()[name]) {
					back, err := time.Parse(time.RFC3339Nano, a.Data()[name].(string))
					require.NoError(t, err)
					assert.True(t, at.Truncate(cut).Equal(back), "%s of %s: %s became %s", name, o.OperationID, moment, a.Data()[name])
				}
			}
		}
	})
}
