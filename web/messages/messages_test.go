package messages

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
