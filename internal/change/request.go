package change

import "earshot/internal/store"

// Key is the idempotency key of a request. ID is a hash of the key and its scope. Fingerprint is a
// hash of the request.
type Key = store.IdempotencyKey

// Request has the parts of a request that decide whether a use case takes effect. The zero value is
// a request without conditions.
type Request[R any] struct {
	// Key is nil for a request without an idempotency key.
	Key *Key
	// Answer encodes the result as the answer. A request with a Key needs it: the answer is stored in
	// the transaction of the change.
	Answer func(R) (Answer, error)
}
