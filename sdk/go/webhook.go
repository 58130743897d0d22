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

// What is wrong with a request that Unwrap refuses.
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

// Unwrap checks that a webhook's request is the service's, unchanged and recent, and returns the event in
// it. body are the bytes as they came, header the request's, and secret what the webhook's registration
// answered, whsec_… as a whole. The error is one of the ErrWebhook… values.
func Unwrap(body []byte, header http.Header, secret string) (Event, error) {
	return Verifier{Secret: secret}.Unwrap(body, header)
}

// Verifier is Unwrap with a tolerance or a clock of your own.
type Verifier struct {
	Secret string
	// Tolerance is how far the moment of the signature may be from now, 5 minutes where it is zero.
	Tolerance time.Duration
	// Now is time.Now where it is nil.
	Now func() time.Time
}

// Unwrap is as the function of that name.
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

// signed is the moment that a signature of the body is valid for.
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
