package webhook

import "time"

// Names of the headers that every delivery carries (specification, Delivery
// headers).
const (
	// HeaderEvent holds the event's type, for example "post.created".
	HeaderEvent = "X-Service-Event"
	// HeaderDelivery holds the id of the delivery, equal in all its attempts.
	HeaderDelivery = "X-Service-Delivery"
	// HeaderSignature holds the result of Sign.
	HeaderSignature = "X-Service-Signature"
)

// HeaderSequence holds the sequence number of the event within its organization, in the order of
// events. With it a receiver recognizes an event that is older than its data. Tests of a webhook
// have no number, and neither have events from before the introduction of the numbers.
const HeaderSequence = "X-Service-Sequence"

// Names of further headers that every delivery carries. With them a receiver may verify it with a
// library of Standard Webhooks (https://www.standardwebhooks.com). They have Go's canonical form;
// HTTP ignores the case of letters.
const (
	// HeaderStandardID holds the id of the delivery, as HeaderDelivery does.
	HeaderStandardID = "Webhook-Id"
	// HeaderStandardTimestamp holds the same seconds as t in HeaderSignature.
	HeaderStandardTimestamp = "Webhook-Timestamp"
	// HeaderStandardSignature holds the result of SignStandard.
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

// MaxAttempts is how many attempts a delivery gets before it fails for good
// (specification, Delivery and retries rules 2 and 3).
const MaxAttempts = 5

// retryDelays holds the pause before attempts 2, 3, 4 and 5 (specification,
// Delivery and retries rule 2). Attempt 1 is made immediately.
var retryDelays = [MaxAttempts - 1]time.Duration{
	30 * time.Second,
	2 * time.Minute,
	10 * time.Minute,
	time.Hour,
}

// RetryDelay returns the wait between the end of a failed attempt and the next
// one. The parameter failedAttempts counts the attempts so far; if it is 0, so
// is the delay. The result ok is false when no attempt is left and the delivery
// has failed for good.
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
