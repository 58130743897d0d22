package webhook_test

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"earshot/webhook"
)

// signed returns the headers of a delivery as a receiver gets them.
func signed(secret, id string, at time.Time, body []byte) http.Header {
	h := http.Header{}
	h.Set(webhook.HeaderStandardID, id)
	h.Set(webhook.HeaderStandardTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(webhook.HeaderStandardSignature, webhook.SignStandard(secret, id, at, body))
	return h
}

func TestTheStandardWebhooksLibraryVerifiesOurSignatures(t *testing.T) {
	t.Parallel()
	for range 50 {
		secret, body := webhook.NewSecret(), []byte(`{"event":"post.created","text":"ü"}`)
		library, err := standard.NewWebhook(secret)
		require.NoError(t, err, "every secret is one that the library takes")
		headers := signed(secret, "dlv_1", time.Now(), body)
		require.NoError(t, library.Verify(body, headers))
		require.Error(t, library.Verify(append(body, ' '), headers), "another body")
		require.Error(t, library.Verify(body, signed(webhook.NewSecret(), "dlv_1", time.Now(), body)), "another secret")
		require.Error(t, library.Verify(body, signed(secret, "dlv_1", time.Now().Add(-6*time.Minute), body)), "an old one")
		headers.Set(webhook.HeaderStandardID, "dlv_2")
		require.Error(t, library.Verify(body, headers), "another delivery")
	}
}

// The example is from the document of the standard.
func TestTheSignatureOfTheStandardsExample(t *testing.T) {
	t.Parallel()
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", webhook.SignStandard(
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)))
}

// The contract recommends this example to readers as a test of their code.
func TestTheContractsExampleIsSigned(t *testing.T) {
	t.Parallel()
	contract, err := os.ReadFile("../api/openapi.yaml")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(contract), "one line without a line break at its end:\n\n    ```\n    ")
	payload, _, _ := strings.Cut(rest, "\n")
	require.Contains(t, string(contract), "`"+webhook.SignStandard(
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "dlv_01kkgt5hn2erzvjxkz0sqk7qdt", time.Unix(1773312067, 0), []byte(payload))+"`")
}

func TestASecretThatNoLibraryWouldTakeHasNoStandardSignature(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"", "whsec_", "whsec_not base64", "whsec_abc"} {
		require.Empty(t, webhook.SignStandard(secret, "dlv_1", time.Now(), nil), "%q", secret)
	}
}
