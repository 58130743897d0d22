package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/ratelimit"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
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
	require.Contains(t, lines[0]["error"], "closed pool")
	require.EqualValues(t, 500, lines[1]["status"])
	require.NotContains(t, string(a.Raw), "pool")
}

func requireFault(t *testing.T, a apptest.Answer, requestID string) {
	t.Helper()
	require.Equal(t, http.StatusInternalServerError, a.Status)
	require.Equal(t, requestID, a.Header.Get("X-Request-Id"))
	require.Equal(t, object{"error": object{
		"code": "ERR_INTERNAL", "message": "Something went wrong on our side.", "details": object{"requestId": requestID},
	}}, a.Body)
}

// fragile panics at its first write.
type fragile struct {
	*httptest.ResponseRecorder
	broke bool
}

func (f *fragile) Write(p []byte) (int, error) {
	if !f.broke {
		f.broke = true
		panic("at the first write")
	}
	return f.ResponseRecorder.Write(p)
}

func TestAPanicAnswersLikeAnyFaultAndTheLogSaysWhereItWas(t *testing.T) {
	t.Parallel()
	w := &fragile{ResponseRecorder: httptest.NewRecorder()}
	lines := serveWithoutDomain(t, w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	require.Contains(t, w.Body.String(), `"requestId":"the-one"`)
	require.Equal(t, "at the first write", lines[0]["error"])
	require.Contains(t, lines[0]["stack"], "api_test.(*fragile).Write")
}

// Without a domain the look-up of a key panics.
func TestALookUpOfKeysThatPanicsFailsItsRequestsAndNotTheProcess(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/v1/me", nil)
	r.Header.Set("Authorization", "Bearer esk_1")
	w := httptest.NewRecorder()
	lines := serveWithoutDomain(t, w, r)
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.JSONEq(t, `{"error":{"code":"ERR_INTERNAL","message":"Something went wrong on our side.","details":{"requestId":"the-one"}}}`,
		w.Body.String())
	require.Contains(t, lines[0]["error"], "nil pointer")
	require.Contains(t, lines[0]["error"], "access.(*Service).Authenticate", "and where it was")
	require.EqualValues(t, 500, lines[1]["status"])
}

// serveWithoutDomain returns the log lines of the request: the fault, and the access.
func serveWithoutDomain(t *testing.T, w http.ResponseWriter, r *http.Request) []map[string]any {
	t.Helper()
	book := &logBook{testkit.NewLogs()}
	handler, err := api.New(api.UseCases{}, api.Options{RateLimits: ratelimit.NewKeys(nil, 1), Log: book.Logger()})
	require.NoError(t, err)
	r.Header.Set("X-Request-Id", "the-one")
	handler.ServeHTTP(w, r)
	lines := book.lines(t, "the-one")
	require.Len(t, lines, 2)
	require.Equal(t, "ERROR", lines[0]["level"])
	return lines
}
