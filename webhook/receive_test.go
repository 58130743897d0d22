package webhook_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"earshot/webhook"
)

// delivery returns a genuine request, which tests then change.
func delivery(body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hook", body)
	r.Header.Set(webhook.HeaderEvent, "post.created")
	r.Header.Set(webhook.HeaderDelivery, "dlv_1")
	r.Header.Set(webhook.HeaderSignature, header)
	return r
}

func TestAGenuineRequestGivesTheEvent(t *testing.T) {
	t.Parallel()
	event, err := webhook.VerifyRequest(delivery(bytes.NewBufferString(body)), secret, at)
	require.NoError(t, err)
	require.Equal(t, webhook.Event{Type: "post.created", DeliveryID: "dlv_1", Body: []byte(body)}, event)
}

func TestARequestThatIsNotGenuineGivesNoEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*http.Request)
		want  error
	}{
		"without a signature":          {func(r *http.Request) { r.Header.Del(webhook.HeaderSignature) }, webhook.ErrMissingHeader},
		"without an event":             {func(r *http.Request) { r.Header.Del(webhook.HeaderEvent) }, webhook.ErrMissingHeader},
		"without a delivery id":        {func(r *http.Request) { r.Header.Set(webhook.HeaderDelivery, "") }, webhook.ErrMissingHeader},
		"with two signatures":          {func(r *http.Request) { r.Header.Add(webhook.HeaderSignature, header) }, webhook.ErrMalformedHeader},
		"with two delivery ids":        {func(r *http.Request) { r.Header.Add(webhook.HeaderDelivery, "dlv_2") }, webhook.ErrMalformedHeader},
		"with a malformed signature":   {func(r *http.Request) { r.Header.Set(webhook.HeaderSignature, "t=1") }, webhook.ErrNoMatch},
		"with another body":            {func(r *http.Request) { r.Body = io.NopCloser(bytes.NewBufferString("{}")) }, webhook.ErrNoMatch},
		"with no body":                 {func(r *http.Request) { r.Body = nil }, webhook.ErrNoMatch},
		"that announces too much body": {func(r *http.Request) { r.ContentLength = webhook.MaxBody + 1 }, webhook.ErrBodyTooLarge},
		"whose body cannot be read":    {func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)) }, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := delivery(bytes.NewBufferString(body))
			c.spoil(r)
			event, err := webhook.VerifyRequest(r, secret, at)
			require.ErrorIs(t, err, c.want)
			require.Zero(t, event)
		})
	}
}

func TestAReceiverWithoutASecretReadsNothing(t *testing.T) {
	t.Parallel()
	r := delivery(iotest.ErrReader(errors.New("the body was read")))
	_, err := webhook.VerifyRequest(r, webhook.SecretPrefix, at)
	require.ErrorIs(t, err, webhook.ErrMissingSecret)
}

func TestARequestWithoutASignatureDoesNotGetItsBodyRead(t *testing.T) {
	t.Parallel()
	r := delivery(iotest.ErrReader(errors.New("the body was read")))
	r.Header.Del(webhook.HeaderSignature)
	_, err := webhook.VerifyRequest(r, secret, at)
	require.ErrorIs(t, err, webhook.ErrMissingHeader)
}

// endless yields zeros forever and counts them.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.read += len(p)
	return len(p), nil
}

func TestABodyWithoutEndIsReadToItsBoundOnly(t *testing.T) {
	t.Parallel()
	source := &endless{}
	r := delivery(source)
	r.ContentLength = -1
	_, err := webhook.VerifyRequest(r, secret, at)
	require.ErrorIs(t, err, webhook.ErrBodyTooLarge)
	require.LessOrEqual(t, source.read, webhook.MaxBody+1)
}

func TestABodyOfExactlyTheBoundIsAccepted(t *testing.T) {
	t.Parallel()
	full := bytes.Repeat([]byte("a"), webhook.MaxBody)
	r := delivery(bytes.NewReader(full))
	r.Header.Set(webhook.HeaderSignature, webhook.Sign(secret, at, full))
	event, err := webhook.VerifyRequest(r, secret, at)
	require.NoError(t, err)
	require.Len(t, event.Body, webhook.MaxBody)
}
