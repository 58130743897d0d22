package webhooks_test

import (
	"net/http"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	stripe "github.com/stripe/stripe-go/v82/webhook"

	"earshot/internal/testkit"
	"earshot/internal/webhooks"
	"earshot/webhook"
)

// rotating is a webhook that sends test deliveries after rotations of its secret.
type rotating struct {
	*vault
	receiver *testkit.Receiver
	id       string
	tried    int
}

func newRotating(t *testing.T) (r *rotating, secret string) {
	t.Helper()
	r = &rotating{vault: newVault(t), receiver: testkit.NewReceiver(t)}
	made := r.Do(t, http.MethodPost, "/v1/webhooks", object{"url": r.receiver.URL, "events": []string{"post.created"}})
	require.Equal(t, http.StatusCreated, made.Status, "%s", made.Raw)
	r.id = made.Data()["id"].(string)
	return r, made.Data()["secret"].(string)
}

// rotateSecret rotates the secret and returns the new one.
func (r *rotating) rotateSecret(body object) string {
	r.t.Helper()
	made := r.Do(r.t, http.MethodPost, "/v1/webhooks/"+r.id+"/rotate-secret", body)
	require.Equal(r.t, http.StatusOK, made.Status, "%s", made.Raw)
	return made.Data()["secret"].(string)
}

// accepts reports for each secret whether a receiver with that secret accepts the next delivery.
// Our verifier, Stripe's and that of Standard Webhooks have to agree.
func (r *rotating) accepts(secrets ...string) (accepted []bool) {
	r.t.Helper()
	sent := r.Do(r.t, http.MethodPost, "/v1/webhooks/"+r.id+"/test", nil)
	require.Equal(r.t, http.StatusCreated, sent.Status, "%s", sent.Raw)
	r.tried++
	got := r.receiver.Await(r.t, r.tried)[r.tried-1]
	for _, secret := range secrets {
		signature := got.Header.Get(webhook.HeaderSignature)
		ok := webhook.Verify(secret, signature, got.Body, time.Now()) == nil
		require.Equal(r.t, ok, stripe.ValidatePayload(got.Body, signature, secret) == nil, signature)
		library, err := standard.NewWebhook(secret)
		require.NoError(r.t, err)
		require.Equal(r.t, ok, library.Verify(got.Body, got.Header) == nil, got.Header.Get(webhook.HeaderStandardSignature))
		accepted = append(accepted, ok)
	}
	return accepted
}

func TestAWebhooksSecretIsRotatedWithAnOverlapInWhichBothSignaturesAreSent(t *testing.T) {
	t.Parallel()
	r, first := newRotating(t)
	require.Equal(t, []bool{true}, r.accepts(first))

	second := r.rotateSecret(object{})
	require.Equal(t, []bool{true, true}, r.accepts(first, second))

	third := r.rotateSecret(object{"overlapSeconds": 604800})
	require.Equal(t, []bool{false, true, true}, r.accepts(first, second, third), "never more than two")

	r.exec("UPDATE webhooks SET former_secret_until = now()", r.id)
	require.Equal(t, []bool{false, true}, r.accepts(second, third), "the overlap is over")
	require.NoError(t, webhooks.ForgetFormerSecrets(t.Context(), r.App.Store))
	var left int
	require.NoError(t, r.App.Pool.QueryRow(t.Context(), "SELECT count(former_secret_sealed) FROM webhooks").Scan(&left))
	require.Zero(t, left)

	fourth := r.rotateSecret(object{})
	var overlap time.Duration
	require.NoError(t, r.App.Pool.QueryRow(t.Context(), "SELECT former_secret_until - updated_at FROM webhooks").Scan(&overlap))
	require.Equal(t, 24*time.Hour, overlap)
	fifth := r.rotateSecret(object{"overlapSeconds": 0})
	require.Equal(t, []bool{false, false, true}, r.accepts(third, fourth, fifth), "somebody has seen them")
}

func TestASecretBeforeWhoseSealingKeyIsGoneStopsNoDelivery(t *testing.T) {
	t.Parallel()
	r, first := newRotating(t)
	second := r.rotateSecret(object{})
	r.exec("UPDATE webhooks SET former_secret_sealed = '\\x0274650102'", r.id)
	require.Equal(t, []bool{false, true}, r.accepts(first, second))
	r.exec("UPDATE webhooks SET secret_sealed = '\\x0274650102'", r.id)
	third := r.rotateSecret(object{})
	var kept int
	require.NoError(t, r.App.Pool.QueryRow(t.Context(), "SELECT count(former_secret_sealed) FROM webhooks").Scan(&kept))
	require.Zero(t, kept)
	require.Equal(t, []bool{false, true}, r.accepts(second, third))
}

func TestASecretBeforeIsSealedAnewWithTheOthersAndKeepsItsKeyNeeded(t *testing.T) {
	t.Parallel()
	r, first := newRotating(t)
	require.Equal(t, 1, r.rotate("k2", "test").Rotated)
	second := r.rotateSecret(object{}) // the service seals with the key "test"
	r.Patch(t, "/v1/webhooks/"+r.id, object{"url": r.receiver.URL + "/other"})
	require.Equal(t, map[string]int{"k2": 1, "test": 1}, r.keysInUse(), "k2 for the secret before alone")
	require.Equal(t, 1, r.rotate("test", "k2").Rotated)
	require.Equal(t, map[string]int{"test": 1}, r.keysInUse())
	require.Equal(t, []bool{true, true}, r.accepts(first, second))
}
