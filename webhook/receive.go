package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// MaxBody is the maximum number of body bytes that VerifyRequest reads. The
// largest event is contact.updated. It can hold the metadata three times: in
// the contact, and before and after in its changes. A request that sets
// metadata has at most 1 MiB. 8 MiB holds three of those, with room for
// escapes.
const MaxBody = 8 << 20

// ErrBodyTooLarge is returned by VerifyRequest for a body of more than
// MaxBody bytes. Nothing of such a body was checked.
var ErrBodyTooLarge = errors.New("webhook: the body is too large")

// Event is a delivery with a genuine signature.
type Event struct {
	// Type is the event's name, for example "post.created". It comes from a
	// header that the signature does not cover. The member "event" of the body
	// is the same name, and is signed.
	Type string
	// DeliveryID is the same in every attempt of one delivery. A receiver can
	// skip an id that it has already handled. The id also comes from a header.
	DeliveryID string
	// Body is the payload, byte for byte as it was signed.
	Body []byte
}

// VerifyRequest reads the body of r, verifies its signature against secret, and
// returns the event. It consumes the body; Event.Body holds it. The error is an
// error of Verify, ErrBodyTooLarge, or a wrapped error of reading the body. The
// Event is then empty.
func VerifyRequest(r *http.Request, secret string, now time.Time) (Event, error) {
	if !usable(secret) { // report the receiver's own mistake before the sender's
		return Event{}, ErrMissingSecret
	}
	header, err := single(r.Header, HeaderSignature)
	if err != nil {
		return Event{}, err
	}
	// Read the header before the body, so that a stranger without a header
	// can't fill the memory.
	c, err := readClaim(secret, header)
	if err != nil {
		return Event{}, err
	}
	event := Event{}
	if event.Type, err = single(r.Header, HeaderEvent); err != nil {
		return Event{}, err
	}
	if event.DeliveryID, err = single(r.Header, HeaderDelivery); err != nil {
		return Event{}, err
	}
	if event.Body, err = readBody(r); err != nil {
		return Event{}, err
	}
	if err := c.check(secret, event.Body, now); err != nil {
		return Event{}, err
	}
	return event, nil
}

// single returns the only value of a header. Several values are an error,
// because they leave open which one was meant.
func single(h http.Header, name string) (string, error) {
	values := h.Values(name)
	if len(values) > 1 {
		return "", fmt.Errorf("%w: several %s", ErrMalformedHeader, name)
	}
	if len(values) == 0 || values[0] == "" {
		return "", fmt.Errorf("%w: %s", ErrMissingHeader, name)
	}
	return values[0], nil
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil { // a request made by hand, as in a test
		return nil, nil
	}
	if r.ContentLength > MaxBody {
		return nil, ErrBodyTooLarge
	}
	// One byte more than allowed distinguishes a full body from a longer one.
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return nil, fmt.Errorf("webhook: read body: %w", err)
	}
	if len(body) > MaxBody {
		return nil, ErrBodyTooLarge
	}
	return body, nil
}
