package send

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"earshot/webhook"
)

// newRequest builds the request. It has the headers of the specification (Delivery headers), those
// of Standard Webhooks, and traceparent if the attempt is traced. HTTP itself adds Host and
// Content-Length.
//
// Never add an Idempotency-Key header: with it, the transport treats a POST as repeatable and sends
// it again when a reused connection breaks. GetBody is safe without that header. The transport then
// calls it only if a reused connection was dead before the first byte was written.
func newRequest(ctx context.Context, target *url.URL, r Request, at time.Time) *http.Request {
	body := func() (io.ReadCloser, error) {
		if len(r.Body) == 0 {
			return http.NoBody, nil
		}
		return io.NopCloser(bytes.NewReader(r.Body)), nil
	}
	first, _ := body()
	request := &http.Request{
		Method: http.MethodPost,
		URL:    target,
		Header: http.Header{
			"Content-Type":          {"application/json"},
			"User-Agent":            {webhook.UserAgent},
			webhook.HeaderEvent:     {r.EventType},
			webhook.HeaderDelivery:  {r.DeliveryID},
			webhook.HeaderSignature: {signature(r, at)},
		},
		Body:          first,
		GetBody:       body,
		ContentLength: int64(len(r.Body)),
	}
	signStandard(request.Header, r, at)
	if r.Sequence > 0 {
		request.Header.Set(webhook.HeaderSequence, strconv.FormatInt(r.Sequence, 10))
	}
	if r.TraceParent != "" {
		request.Header.Set("Traceparent", r.TraceParent)
	}
	return request.WithContext(ctx)
}

// signature returns the value of our header, with a second v1 while the secret is being rotated.
func signature(r Request, at time.Time) string {
	if r.Former == "" {
		return webhook.Sign(r.Secret, at, r.Body)
	}
	return webhook.SignRotating(r.Secret, r.Former, at, r.Body)
}

// signStandard adds the headers of Standard Webhooks if its libraries accept the secret.
func signStandard(h http.Header, r Request, at time.Time) {
	var signatures []string
	for _, secret := range []string{r.Secret, r.Former} {
		if signature := webhook.SignStandard(secret, r.DeliveryID, at, r.Body); signature != "" {
			signatures = append(signatures, signature)
		}
	}
	if len(signatures) > 0 {
		h.Set(webhook.HeaderStandardID, r.DeliveryID)
		h.Set(webhook.HeaderStandardTimestamp, strconv.FormatInt(at.Unix(), 10))
		h.Set(webhook.HeaderStandardSignature, strings.Join(signatures, " "))
	}
}
