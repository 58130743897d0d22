// Package webhook contains the shared parts of both ends of a webhook: the
// names of the delivery headers, the signature, and the schedule of attempts.
//
// A receiver imports it to check that a delivery is genuine:
//
//	event, err := webhook.VerifyRequest(r, secret, time.Now())
//
// A receiver that has read the body itself calls Verify:
//
//	err := webhook.Verify(secret, r.Header.Get(webhook.HeaderSignature), body, time.Now())
//
// The signature covers the time and the raw bytes of the body. Check the body
// before anything decodes and re-encodes it. The signature does not cover the
// event and delivery headers. The body also has the event's type, as the member
// "event"; a receiver that must be certain reads it there.
//
// A delivery may arrive more than once. Every attempt of one delivery carries
// the same delivery id, which identifies a repetition (specification, Delivery
// and retries rule 5).
//
// The package sends nothing and decodes no payload. It imports only the
// standard library.
package webhook
