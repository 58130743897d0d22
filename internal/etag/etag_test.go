package etag_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/etag"
)

func TestAnIfNoneMatchHeaderMatchesOnlyItsETags(t *testing.T) {
	t.Parallel()
	tag := etag.Of([]byte("a"))
	require.NotEqual(t, tag, etag.Of([]byte("b")))
	for given, has := range map[string]bool{
		tag: true, "W/" + tag: true, "*": true, `"other", ` + tag: true, `, ` + tag + ` ,`: true,
		"": false, `"other"`: false, tag[1:]: false, "x" + tag: false, tag + " " + tag: false,
	} {
		require.Equal(t, has, etag.Has(http.Header{"If-None-Match": {given}}, tag), given)
	}
	require.True(t, etag.Has(http.Header{"If-None-Match": {`"other"`, tag}}, tag), "a header may come in parts")
}
