package earshot

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The errors of Unwrap.
var (
	ErrWebhookSecret    = errors.New("earshot: the webhook's secret is empty")
	ErrWebhookSignature = errors.New("earshot: the request isn't signed with the webhook's secret")
	ErrWebhookTimestamp = errors.New("earshot: the request was signed too long ago, or too far ahead of this clock")
	ErrWebhookPayload   = errors.New("earshot: the request's body is no event")
)

const (
	signatureHeader  = "X-Service-Signature"
	defaultTolerance = 5 * time.Minute
)

// Unwrap checks that a webhook's request comes from the service, unchanged and recent, and returns its
// event. Pass the bytes of the body as they came, and the headers of the request. The secret is the
// whole value from the webhook's registration, whsec_…. The error is one of the ErrWebhook… values.
func Unwrap(body []byte, header http.Header, secret string) (Event, error) {
	return Verifier{Secret: secret}.Unwrap(body, header)
}

// Verifier is Unwrap with your own tolerance or clock.
type Verifier struct {
	Secret string
	// Tolerance is how far the time of the signature may be from now. The default is 5 minutes.
	Tolerance time.Duration
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// Unwrap works like the function of that name.
func (v Verifier) Unwrap(body []byte, header http.Header) (Event, error) {
	if strings.TrimPrefix(v.Secret, "whsec_") == "" {
		return nil, ErrWebhookSecret
	}
	signed, err := v.signed(body, header.Get(signatureHeader))
	if err != nil {
		return nil, err
	}
	now := time.Now
	if v.Now != nil {
		now = v.Now
	}
	if age := now().Sub(signed).Abs().Truncate(time.Second); age > cmp.Or(v.Tolerance, defaultTolerance) {
		return nil, ErrWebhookTimestamp
	}
	event, err := decodeEvent(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWebhookPayload, err)
	}
	return event, nil
}

// signed returns the time of a valid signature of the body.
func (v Verifier) signed(body []byte, header string) (time.Time, error) {
	var t string
	var signatures []string
	for part := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			t = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	seconds, err := strconv.ParseUint(t, 10, 40)
	if err != nil {
		return time.Time{}, ErrWebhookSignature
	}
	mac := hmac.New(sha256.New, []byte(v.Secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	for _, signature := range signatures {
		if hmac.Equal([]byte(signature), expected) {
			return time.Unix(int64(seconds), 0), nil
		}
	}
	return time.Time{}, ErrWebhookSignature
}
