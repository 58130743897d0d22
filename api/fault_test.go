package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/testkit"
)

func TestAFaultOfOursAnswersTheRequestsIdAndNothingOfTheInside(t *testing.T) {
	t.Parallel()
	app, book := startWithLog(t)
	n := newFixture(t, app)
	app.Store.Close()
	a := n.Do(t, http.MethodGet, "/v1/posts/"+n.ids["postId"], nil, "X-Request-Id", "the-one")
	requireFault(t, a, "the-one")
	lines := book.await(t, "the-one", 2)
	require.Equal(t, "ERROR", lines[0]["level"])
	require.Contains(t, lines[0]["error"], "database is closed")
	require.EqualValues(t, 500, lines[1]["status"])
	require.NotContains(t, string(a.Raw), "database")
}

func requireFault(t *testing.T, a testkit.Answer, requestID string) {
	t.Helper()
	require.Equal(t, http.StatusInternalServerError, a.Status)
	require.Equal(t, requestID, a.Header.Get("X-Request-Id"))
	require.Equal(t, object{"error": object{
		"code": "ERR_INTERNAL", "message": "Something went wrong on our side.", "details": object{"requestId": requestID},
	}}, a.Body)
}

// Without a domain the first use of it panics.
func TestAPanicAnswersLikeAnyFaultAndTheLogSaysWhereItWas(t *testing.T) {
	t.Parallel()
	book := &logBook{testkit.NewLogs()}
	handler, err := api.New(nil, api.Options{RateLimit: 1, Log: book.Logger()})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "/v1/me", nil)
	r.Header.Set("Authorization", "Bearer esk_1")
	r.Header.Set("X-Request-Id", "the-one")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.JSONEq(t, `{"error":{"code":"ERR_INTERNAL","message":"Something went wrong on our side.","details":{"requestId":"the-one"}}}`,
		w.Body.String())
	lines := book.lines(t, "the-one")
	require.Len(t, lines, 2)
	require.Equal(t, "ERROR", lines[0]["level"])
	require.Contains(t, lines[0]["error"], "nil pointer")
	// singleflight, which passes the panic on, puts the stack into its text.
	require.Contains(t, lines[0]["error"], "feedback.(*Service).KeysThere")
	require.Contains(t, lines[0]["stack"], "api.(*keyring).find")
	require.EqualValues(t, 500, lines[1]["status"])
}
