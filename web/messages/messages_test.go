package messages

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
)

func english(t *testing.T) *Words {
	t.Helper()
	w, err := Load(Languages[0])
	require.NoError(t, err)
	return w
}

func TestEveryLanguageHasTheSameMessages(t *testing.T) {
	t.Parallel()
	first := english(t)
	for _, tag := range Languages {
		w, err := Load(tag)
		require.NoError(t, err)
		require.Equal(t, slices.Sorted(maps.Keys(first.texts)), slices.Sorted(maps.Keys(w.texts)), tag.String())
		for key, text := range w.texts {
			require.NotEmpty(t, strings.TrimSpace(text), "%s: %s", tag, key)
			require.Equal(t, strings.Count(first.texts[key], "{"), strings.Count(text, "{"), "%s: %s", tag, key)
		}
	}
}

func TestMomentsAreToldInUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 1, 5, 0, 0, time.FixedZone("", 2*60*60))
	german, err := Load(Languages[1])
	require.NoError(t, err)
	require.Equal(t, "28. Februar 2026, 23:05 UTC", german.Date(at))
	require.Equal(t, "February 28, 2026, 23:05 UTC", english(t).Date(at))
}

func TestARefusedActionHasANotice(t *testing.T) {
	t.Parallel()
	for code, want := range map[problem.Code]int{
		problem.Conflict: http.StatusConflict, problem.Forbidden: http.StatusForbidden, problem.RateLimited: http.StatusTooManyRequests,
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			n, ok := NoticeOf(errors.Wrap(problem.New(code, "of a use case"), "vote"))
			require.True(t, ok)
			require.Equal(t, want, n.Status)
			for _, key := range []string{n.Name + ".title", n.Name + ".text"} {
				require.NotEqual(t, key, english(t).Text(key), "the text is missing")
			}
		})
	}
	_, ok := NoticeOf(errors.New("the database is away"))
	require.False(t, ok)
}

func TestEveryReasonHasANotice(t *testing.T) {
	t.Parallel()
	for _, reason := range problem.Reasons {
		if reason.Code != problem.Forbidden && reason.Code != problem.Conflict { // the codes of refused actions
			continue
		}
		t.Run(reason.Name, func(t *testing.T) {
			t.Parallel()
			n, ok := NoticeOf(errors.Wrap(reason.Problem(), "comment"))
			require.True(t, ok)
			for _, key := range []string{n.Name + ".title", n.Name + ".text"} {
				require.NotEqual(t, key, english(t).Text(key), "the text is missing")
			}
		})
	}
}
