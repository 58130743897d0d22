package webhooks_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheThrottleOfAWebhook(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is between 1 and 1000 attempts a second, or null": throttleLimits,
	})
}

func throttleLimits(t *testing.T, n *tenant) {
	hook := n.hook(t, object{"maxPerSecond": 1000})
	require.Equal(t, json.Number("1000"), n.Get(t, hook)["maxPerSecond"])
	for _, bad := range []any{0, 1001, -1, "5", 1.5} {
		require.Equal(t, []string{"maxPerSecond"}, n.Refused(t, "ERR_VALIDATION", http.MethodPatch, hook, object{"maxPerSecond": bad}).Fields())
	}
	require.Equal(t, json.Number("1"), n.Patch(t, hook, object{"maxPerSecond": 1})["maxPerSecond"])
	require.Nil(t, n.Patch(t, hook, object{"maxPerSecond": nil})["maxPerSecond"])
}
