package contract

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Not in parallel, because it counts allocations.
func TestALookForHalfSurrogatesTakesNoMemory(t *testing.T) {
	body := []byte(`"` + string(bytes.Repeat([]byte(`\ud83d\ude00`), 1<<20/12)) + `"`)
	require.Zero(t, testing.AllocsPerRun(1, func() { require.False(t, hasLoneSurrogate(body)) }))
	for text, lone := range map[string]bool{
		`"\\ud800"`: false, `"\\\ud800"`: true, `"\uD800\uDC00"`: false, `"\ud800x\udc00"`: true, `"\ud800\n"`: true,
		`"\ud800\ud800\udc00"`: true, `"\udc00"`: true, `"\u0d80\\"`: false, `"\ud7ff\ue000"`: false,
	} {
		require.Equal(t, lone, hasLoneSurrogate([]byte(text)), text)
	}
}
