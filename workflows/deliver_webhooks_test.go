package workflows_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestAPostArrivesAsASignedWebhook(t *testing.T) {
	t.Parallel()
	app := testkit.Start(t, testkit.Options{Worker: true})
	n := app.Tenant(t)
	r := testkit.NewReceiver(t)
	n.Register(t, r, "post.created")
	board := n.ID(t, "/v1/boards", map[string]any{"name": "Ideas"})
	n.Make(t, http.MethodPost, "/v1/boards/"+board+"/posts", map[string]any{"title": "Dark mode"})
	got := r.Await(t, 1)[0]
	require.NoError(t, got.Invalid)
	require.Equal(t, "post.created", got.Event.Type)
}
