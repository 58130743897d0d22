package webhook

import "time"

// Names of the headers that every delivery carries (specification, Delivery
// headers).
const (
	// HeaderEvent holds the event's type, for example "post.created".
	HeaderEvent = "X-Service-Event"
	// HeaderDelivery holds the id of the delivery, equal in all its attempts.
	HeaderDelivery = "X-Service-Delivery"
	// HeaderSignature holds what Sign returns.
	HeaderSignature = "X-Service-Signature"
)

// HeaderSequence holds the number of the event among those of its organization, in the order in
// which they happened, so that a receiver can tell what is older than what it has. The test of
// a webhook has none, nor has an event from before the numbers.
const HeaderSequence = "X-Service-Sequence"

// Names of the headers that every delivery carries besides, so that a receiver may verify it
// by a library of Standard Webhooks (https://www.standardwebhooks.com). They are in the form
// that Go has them in; HTTP doesn't tell capitals from small letters.
const (
	// HeaderStandardID holds the id of the delivery, as HeaderDelivery does.
	HeaderStandardID = "Webhook-Id"
	// HeaderStandardTimestamp holds the seconds that HeaderSignature has as t.
	HeaderStandardTimestamp = "Webhook-Timestamp"
	// HeaderStandardSignature holds what SignStandard returns.
	HeaderStandardSignature = "Webhook-Signature"
)

// UserAgent is the User-Agent header of every delivery (specification,
// Delivery headers).
const UserAgent = "Service-Webhooks/1.0"

// SecretPrefix begins every signing secret (specification, Webhooks). It is
// part of the key: the secret is used whole.
const SecretPrefix = "whsec_"

// Tolerance is how far a signature's timestamp may lie from the receiver's
// clock, before or after (specification, Signature rule 3).
const Tolerance = 300 * time.Second

// MaxAttempts is how many attempts a delivery gets before it has failed for
// good (specification, Delivery and retries rules 2 and 3).
const MaxAttempts = 5

// retryDelays holds the pause before attempt 2, 3, 4 and 5 (specification,
// Delivery and retries rule 2). Attempt 1 is made at once.
var retryDelays = [MaxAttempts - 1]time.Duration{
	30 * time.Second,
	2 * time.Minute,
	10 * time.Minute,
	time.Hour,
}

// RetryDelay says how long to wait, from the end of the attempt that failed,
// before the next one. failedAttempts counts the attempts made so far; with
// none made the delay is zero. ok is false when no attempt is left, and the
// delivery has failed for good.
func RetryDelay(failedAttempts int) (delay time.Duration, ok bool) {
	switch {
	case failedAttempts <= 0:
		return 0, true
	case failedAttempts >= MaxAttempts:
		return 0, false
	default:
		return retryDelays[failedAttempts-1], true
	}
}
