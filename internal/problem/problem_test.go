package problem_test

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
)

func TestAProblemIsFoundThroughEveryLayerOfWrapping(t *testing.T) {
	t.Parallel()
	missing := problem.Missing("post")
	err := errors.Wrap(errors.Wrap(missing, "load the post"), "create the comment")

	found, ok := problem.As(err)
	require.True(t, ok)
	require.Same(t, missing, found)
	require.True(t, problem.Is(err, problem.NotFound))
	require.False(t, problem.Is(err, problem.Conflict))
}

func TestAFaultOfOurOwnIsNoProblem(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, io.EOF, errors.Wrap(io.EOF, "read")} {
		_, ok := problem.As(err)
		require.False(t, ok)
		require.False(t, problem.Is(err, problem.Internal))
	}
}

func TestAMissingResourceIsNamedWithoutSayingWhetherAnotherOrganizationHasIt(t *testing.T) {
	t.Parallel()
	p := problem.Missing("post")
	require.Equal(t, problem.NotFound, p.Code)
	require.Equal(t, "There is no such post in this organization.", p.Message)
	require.Empty(t, p.Details)
	require.EqualError(t, p, "ERR_NOT_FOUND: There is no such post in this organization.")
}

func TestAMissingResourceInABodyNamesTheMember(t *testing.T) {
	t.Parallel()
	p := problem.MissingIn("tagIds[2]", "tag")
	require.Equal(t, problem.NotFound, p.Code)
	require.Equal(t, map[string]any{"field": "tagIds[2]"}, p.Details)
}

func TestDetailsAddUp(t *testing.T) {
	t.Parallel()
	p := problem.New(problem.PlanLimit, "No room.").With("limit", 10).With("current", 10).With("resource", "contact")
	require.Equal(t, map[string]any{"limit": 10, "current": 10, "resource": "contact"}, p.Details)
}

func TestDetailsOfOneProblemDoNotReachTheNext(t *testing.T) {
	t.Parallel()
	_ = problem.Missing("post").With("field", "postIds[0]")
	require.Empty(t, problem.Missing("post").Details)
}

func TestNothingWrongIsNoError(t *testing.T) {
	t.Parallel()
	var f problem.Fields
	require.NoError(t, f.Err())
}

func TestASingleFailureSpeaksInTheMessage(t *testing.T) {
	t.Parallel()
	p, ok := problem.As(problem.Invalid("title", "maxLength", "must have at most %d characters", 200))
	require.True(t, ok)
	require.Equal(t, problem.Validation, p.Code)
	require.Equal(t, "title: must have at most 200 characters", p.Message)
	require.Equal(t, []problem.Field{
		{Field: "title", Rule: "maxLength", Message: "must have at most 200 characters"},
	}, p.Details["fields"])
}

func TestAFailureOfTheWholeBodySpeaksWithoutAName(t *testing.T) {
	t.Parallel()
	p, ok := problem.As(problem.Invalid("", "json", "the body is not valid JSON"))
	require.True(t, ok)
	require.Equal(t, "the body is not valid JSON", p.Message)
}

func TestEveryFailureStandsInTheDetailsInTheOrderItWasFound(t *testing.T) {
	t.Parallel()
	var f problem.Fields
	f.Add("title", "minLength", "must have at least %d character", 1)
	f.Add("tagIds[1]", "pattern", "is no tag id")
	f.Add("title", "pattern", "must have more than white space")

	p, ok := problem.As(f.Err())
	require.True(t, ok)
	require.Equal(t, "title: must have at least 1 character (and 2 more, see details.fields)", p.Message)
	details, err := json.Marshal(p.Details)
	require.NoError(t, err)
	require.Equal(t, `{"fields":[`+
		`{"field":"title","rule":"minLength","message":"must have at least 1 character"},`+
		`{"field":"tagIds[1]","rule":"pattern","message":"is no tag id"},`+
		`{"field":"title","rule":"pattern","message":"must have more than white space"}]}`, string(details))
}

func TestOfManyFailuresTheFirstThousandAreNamedAndAllAreCounted(t *testing.T) {
	t.Parallel()
	var f problem.Fields
	for i := range 100_000 {
		f.Add(fmt.Sprintf("events[%d]", i), "enum", "is not an event")
	}
	p, ok := problem.As(f.Err())
	require.True(t, ok)
	require.Equal(t, []problem.Field(f[:1000]), p.Details["fields"])
	require.Equal(t, "events[0]: is not an event (and 99999 more, see details.fields)", p.Message)
}

func TestAPercentSignInACallersInputIsNotAFormatVerb(t *testing.T) {
	t.Parallel()
	p, ok := problem.As(problem.Invalid("url", "format", "%s", "100%d"))
	require.True(t, ok)
	require.Equal(t, "url: 100%d", p.Message)
}

func TestANameOrTitleHasNoInvisibleCharacters(t *testing.T) {
	t.Parallel()
	for text, first := range map[string]string{
		"abc\u202egnp.exe": "U+202E", "s\u200bec": "U+200B", "\u2066x": "U+2066", "soft\u00adhyphen": "U+00AD", "\ufeffx": "U+FEFF",
		"\u3164": "U+3164", "hidden\U000e0041": "U+E0041", "se\u200dc": "U+200D", "José\u200d": "U+200D", "😀\u200d\u200d": "U+200D", "A\ufe0fdmin": "U+FE0F", "x\ufe0f\ufe0f": "U+FE0F",
		"👩‍👩‍👧": "", "❤\ufe0f it": "", "1\ufe0f⃣": "", "می\u200cخواهم": "", "क्\u200dष": "", "\u0600١٢": "", "Straße": "", "長い": "",
	} {
		var f problem.Fields
		f.Shown("title", text, 1, 200)
		if first == "" {
			require.Empty(t, f, text)
			continue
		}
		require.Equal(t, problem.Fields{{Field: "title", Rule: "invisible", Message: "must not contain the invisible character " + first}}, f)
	}
}
