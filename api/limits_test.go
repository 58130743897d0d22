package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// roomy allows many webhooks, because the walks register many.
var roomy = apptest.Shared{Environ: []string{"EARSHOT_WEBHOOK_CAP=10000"}}

func TestABodyAtTheEdgeOfTheContract(t *testing.T) {
	t.Parallel()
	together(t, roomy.Start(t), map[string]func(*testing.T, *apptest.App){
		"is taken with the last good value of each limit, and comes back": lastGoodValues,
		"is taken without each member that isn't required":                eachLeftOut,
		"is trimmed before it is measured, where it is said to be":        trimmedFirst,
		"is refused by a rule that stands in the contract":                rulesOfTheContract,
	})
}

func lastGoodValues(t *testing.T, app *apptest.App) {
	tier.Slow(t, "sends a request for each limit of the contract")
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		n, count := newFixture(t, app), 0
		for name, s := range properties(o.schema()) {
			for _, e := range edges(t, name, s) {
				count++
				p := n.at(t, o, count)
				value := e.make(t, p)
				what := fmt.Sprintf("%s at %s", e.field, e.limit)
				made := p.send(t, what, p.body(t, object{name: value}))
				if got, ok := made[name]; ok {
					requireHeld(t, value, got, what)
				}
			}
		}
	})
}

// requireHeld requires that got contains everything that was sent. It may have more members, and
// another order of ids.
func requireHeld(t *testing.T, sent, got any, what string) {
	t.Helper()
	switch sent := sent.(type) {
	case object:
		for name, value := range sent {
			requireHeld(t, value, got.(object)[name], what)
		}
	case []any:
		require.ElementsMatch(t, sent, got, what)
	case string:
		if at, err := time.Parse(time.RFC3339Nano, sent); err == nil {
			back, err := time.Parse(time.RFC3339Nano, got.(string))
			require.NoError(t, err)
			require.True(t, at.Equal(back), "%s: %s became %s", what, sent, got)
			return
		}
		require.Equal(t, sent, got, what)
	case int, int64, uint64, float64:
		require.Equal(t, fmt.Sprint(sent), fmt.Sprint(got), what)
	default:
		require.Equal(t, sent, got, what)
	}
}

func eachLeftOut(t *testing.T, app *apptest.App) {
	tier.Slow(t, "sends a request without each member of the contract")
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		n, members := newFixture(t, app), properties(o.schema())
		optional := slices.Sorted(maps.Keys(members))
		optional = slices.DeleteFunc(optional, func(name string) bool { return slices.Contains(required(o.schema()), name) })
		for i, left := range append(optional, "") {
			p := n.at(t, o, i+1)
			given := object{}
			for name, s := range members {
				if name != left && !slices.Contains(companions(o.schema(), name), left) {
					given[name] = sample(t, name, s).make(t, p)
				}
			}
			p.send(t, "without "+left, p.body(t, given))
		}
	})
}

// trimmedFirst checks that lengths count after trimming, as the contract requires.
func trimmedFirst(t *testing.T, app *apptest.App) {
	isTrimmed := func(s *openapi3.Schema) bool { return strings.Contains(s.Description, "trimmed") && s.Format == "" }
	trims := func(o operation) bool {
		return hasBody(o) && slices.ContainsFunc(slices.Collect(maps.Values(properties(o.schema()))), isTrimmed)
	}
	everyOperation(t, trims, func(t *testing.T, o operation) {
		n, count := newFixture(t, app), 0
		for name, s := range properties(o.schema()) {
			if !isTrimmed(s) {
				continue
			}
			count++
			p := n.at(t, o, count)
			text := p.text(int(*s.MaxLength))
			made := p.send(t, name, p.body(t, object{name: " \t\r\n\u00a0\u2003" + text + "\u2029 "}))
			require.Equal(t, text, made[name])
			a := p.Do(t, o.method, o.filled(t, p.ids), p.body(t, object{name: " \u00a0 "}))
			require.Equal(t, [][2]string{{name, "minLength"}}, rules(a), "%s", a.Raw)
		}
	})
}

// ours are the rules that no keyword of the member states.
var ours = []struct{ field, rule, words string }{
	{"mrrCents", "required", comeTogether},
	{"currency", "required", comeTogether},
	{"mrrCents", "paired", words["paired"]},
	{"url", "invalid_url", words["invalid_url"]},
	{"confirmName", "match", words["match"]},
	{"externalUserId", "either", words["either"]},
	{"externalUserId", "required", needsOwnID},
}

// rulesOfTheContract breaks each limit and compares the named rules with the keywords of the
// member.
func rulesOfTheContract(t *testing.T, app *apptest.App) {
	require.Contains(t, prose(t), noNUL)
	for _, own := range ours {
		require.Contains(t, prose(t), own.words, "the contract doesn't say so any more")
	}
	n := newFixture(t, app)
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		for name, s := range properties(o.schema()) {
			for _, f := range flaws(name, s) {
				body := o.request(t).(object)
				body[name] = f.value
				a := n.Do(t, o.method, o.filled(t, n.ids), body)
				checkStated(t, f, keywordsAt(f.field, name, s), rules(a))
			}
		}
	})
}

// checkStated requires that the flaw is refused by the keyword that it breaks. The contract must
// also state every other rule in the answer.
func checkStated(t *testing.T, f flaw, stated []string, refused [][2]string) {
	t.Helper()
	broken := false
	for _, r := range refused {
		ok := slices.Contains(stated, r[1]) || isOurs(r) || (f.limit == "NUL" && r[1] == "pattern")
		assert.True(t, ok, "%s with a bad %s is refused by %v, and states %s", f.field, f.limit, r, stated)
		broken = broken || (r[0] == f.field && f.isBy(r[1]))
	}
	assert.True(t, broken, "%s with a bad %s is refused by %v", f.field, f.limit, refused)
}

func isOurs(r [2]string) bool {
	for _, own := range ours {
		if own.field == r[0] && own.rule == r[1] {
			return true
		}
	}
	return false
}

// isBy reports whether a rule is the keyword that the flaw breaks.
func (f flaw) isBy(rule string) bool {
	switch {
	case strings.HasPrefix(f.limit, "type"):
		return rule == "type"
	case f.limit == "NUL" || f.limit == "pattern, format or enum":
		return rule == "pattern" || rule == "format" || rule == "enum"
	case f.limit == "maximum of a 64-bit integer":
		return rule == "maximum" || rule == "type" // Go has no such integer
	}
	return rule == f.limit
}

// keywordsAt returns the keywords of the member that a field names, which may be nested.
func keywordsAt(field, name string, s *openapi3.Schema) []string {
	text, _ := s.MarshalJSON()
	var own map[string]any
	_ = json.Unmarshal(text, &own)
	all := slices.Sorted(maps.Keys(own))
	if rest, ok := strings.CutPrefix(field, name+"[0]"); ok && s.Items != nil {
		return keywordsAt("x"+rest, "x", s.Items.Value)
	}
	if rest, ok := strings.CutPrefix(field, name+"."); ok {
		inner, _, _ := strings.Cut(rest, ".")
		if values := s.AdditionalProperties.Schema; values != nil {
			return keywordsAt(rest, inner, values.Value)
		}
		return keywordsAt(rest, inner, properties(s)[inner])
	}
	return all
}

// A member has the same limits on create and on edit.
func TestTheLimitsAreTheSameOnCreateAndOnEdit(t *testing.T) {
	t.Parallel()
	schemas := load(t).Components.Schemas
	n := 0
	for name, edit := range schemas {
		noun, ok := strings.CutPrefix(name, "Update")
		create := schemas["Create"+noun]
		if !ok || create == nil {
			continue
		}
		for member, s := range properties(create.Value) {
			if again := properties(edit.Value)[member]; again != nil {
				n++
				require.Equal(t, limitsOf(t, s), limitsOf(t, again), "%s.%s", noun, member)
			}
		}
	}
	require.Greater(t, n, 15)
}

// limitsOf returns the keywords of a schema that limit its values.
func limitsOf(t *testing.T, s *openapi3.Schema) map[string]any {
	t.Helper()
	text, err := s.MarshalJSON()
	require.NoError(t, err)
	var limits map[string]any
	require.NoError(t, json.Unmarshal(text, &limits))
	maps.DeleteFunc(limits, func(keyword string, _ any) bool {
		return keyword == "description" || keyword == "default" || strings.HasPrefix(keyword, "x-")
	})
	return limits
}

// A bad member must not make another one look bad. The library that validates the contract has its
// own limits for e-mail addresses.
func TestAGoodValueIsNotBlamedBesideABadOne(t *testing.T) {
	t.Parallel()
	n := newFixture(t, roomy.Start(t))
	unchanged := n.Watch(t)
	everyOperation(t, hasBody, func(t *testing.T, o operation) {
		count := 0
		for name, s := range properties(o.schema()) {
			for _, e := range edges(t, name, s) {
				if o.OperationID == "deleteBoard" || slices.Contains([]string{"tagIds", "postIds", "sourceIds", "status"}, name) {
					continue // making a good value changes the organization
				}
				count++
				p := &place{fixture{n.Tenant, maps.Clone(n.ids)}, o, count * 100}
				other := badMember(o, name)
				if other == "" {
					continue
				}
				body := p.body(t, object{name: e.make(t, p)})
				body[other] = object{"x": 1}
				a := n.Do(t, o.method, o.filled(t, n.ids), body)
				require.Equal(t, http.StatusUnprocessableEntity, a.Status)
				require.NotContains(t, a.Fields(), e.field, "%s at %s beside a bad %s: %s", e.field, e.limit, other, a.Raw)
			}
		}
	})
	unchanged(t)
}

// badMember returns a text member beside another one, which needn't be sent together with it.
func badMember(o operation, beside string) string {
	members := properties(o.schema())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		s := members[name]
		if name != beside && s.Type.Includes("string") && !slices.Contains(companions(o.schema(), beside), name) {
			return name
		}
	}
	return ""
}

// rules returns the refused fields, each with its rule.
func rules(a apptest.Answer) [][2]string {
	var all [][2]string
	list, _ := a.Details()["fields"].([]any)
	for _, f := range list {
		all = append(all, [2]string{f.(object)["field"].(string), f.(object)["rule"].(string)})
	}
	return all
}
