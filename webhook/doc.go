// Package webhook is what both ends of a webhook share: the names of the
// delivery headers, the signature, and the schedule of attempts.
//
// A receiver imports it to check that a delivery is genuine:
//
//	event, err := webhook.VerifyRequest(r, secret, time.Now())
//
// or, when it has read the body itself:
//
//	err := webhook.Verify(secret, r.Header.Get(webhook.HeaderSignature), body, time.Now())
//
// The signature covers the moment and the raw bytes of the body, so the body
// has to be checked before anything decodes and re-encodes it. It does not
// cover the event and delivery headers: the event's type stands in the body
// too, as the member "event", and a receiver that must be certain reads it
// there.
//
// A delivery may arrive more than once. Every attempt of one delivery carries
// the same delivery id, which is the key to tell a repetition by
// (specification, Delivery and retries rule 5).
//
// The package refuses to do two things: it sends nothing and it decodes no
// payload. It imports the standard library only.
package webhook
