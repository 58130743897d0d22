package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

// All tests of the API rely on this check.
func TestAnAnswerThatDiffersFromTheContractIsCaught(t *testing.T) {
	t.Parallel()
	const good = `{"data":[],"nextCursor":null}`
	headers := []string{"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	check := func(status int, body string, lacking string) error {
		answer := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}}
		for _, name := range headers {
			if name != lacking {
				answer.Header.Set(name, "1")
			}
		}
		return apptest.CheckAnswer(httptest.NewRequest(http.MethodGet, "/v1/boards", nil), answer, []byte(body))
	}
	require.NoError(t, check(http.StatusOK, good, ""))
	for what, body := range map[string]string{
		"a member too few": `{"data":[]}`, "a member too many": `{"data":[],"nextCursor":null,"total":0}`,
		"a wrong type": `{"data":null,"nextCursor":null}`, "no JSON": `{`,
		"an error": `{"error":{"code":"ERR_NOT_FOUND","message":"x"}}`,
	} {
		require.Error(t, check(http.StatusOK, body, ""), what)
	}
	require.Error(t, check(http.StatusCreated, good, ""), "a status that isn't declared")
	for _, name := range headers {
		require.Error(t, check(http.StatusOK, good, name), name)
	}
	const refused = `{"error":{"code":"%s","message":"x","details":{"reason":"%s"}}}`
	require.NoError(t, check(http.StatusForbidden, fmt.Sprintf(refused, "ERR_FORBIDDEN", "role_insufficient"), ""))
	require.Error(t, check(http.StatusForbidden, fmt.Sprintf(refused, "ERR_NONSENSE", "role_insufficient"), ""), "a code that isn't listed")
	require.Error(t, check(http.StatusForbidden, fmt.Sprintf(refused, "ERR_FORBIDDEN", "nonsense"), ""), "a reason that isn't listed")
}
