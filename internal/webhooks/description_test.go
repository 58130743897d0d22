package webhooks_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestAWebhookKeepsItsDescriptionAndMetadata(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"until null empties them":        described,
		"of 16 KiB, and not a byte more": metadataSize,
		"replaced as a whole":            replacedMetadata,
	})
}

func described(t *testing.T, n *tenant) {
	hook := n.hook(t, object{"description": "For the product team", "metadata": object{"team": "product"}})
	read := n.Get(t, hook)
	require.Equal(t, "For the product team", read["description"])
	require.Equal(t, object{"team": "product"}, read["metadata"])
	emptied := n.Patch(t, hook, object{"description": nil, "metadata": object{}})
	require.Nil(t, emptied["description"])
	require.Equal(t, object{}, emptied["metadata"])
}

func metadataSize(t *testing.T, n *tenant) {
	const whole = 16 << 10
	value := strings.Repeat("x", whole-len(`{"k":""}`))
	hook := n.hook(t, object{"metadata": object{"k": value}})
	require.Equal(t, object{"k": value}, n.Get(t, hook)["metadata"])
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, hook, object{"metadata": object{"k": value + "x"}})
	require.Equal(t, []string{"metadata"}, a.Fields())
	for _, escapedByGo := range []string{"<&>", "\u2028"} { // three bytes each, without the escapes of Go's encoder
		long := strings.Repeat(escapedByGo, len(value)/3)
		n.Patch(t, hook, object{"metadata": object{"k": long}})
		require.Equal(t, object{"k": long}, n.Get(t, hook)["metadata"])
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, hook, object{"metadata": object{"k": long + escapedByGo}})
		require.Equal(t, []string{"metadata"}, a.Fields())
	}
}

func replacedMetadata(t *testing.T, n *tenant) {
	hook := n.hook(t, object{"metadata": object{"a": "1", "b": "2"}})
	require.Equal(t, object{"b": "3"}, n.Patch(t, hook, object{"metadata": object{"b": "3"}})["metadata"])
}

// hook registers a webhook with additional members and returns its path.
func (n *tenant) hook(t *testing.T, more object) string {
	t.Helper()
	body := object{}
	for name, value := range apptest.Registration {
		body[name] = value
	}
	for name, value := range more {
		body[name] = value
	}
	return "/v1/webhooks/" + n.Make(t, http.MethodPost, "/v1/webhooks", body)["id"].(string)
}
