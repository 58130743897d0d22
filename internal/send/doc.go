// Package send makes one attempt to deliver a webhook: it signs the payload, posts it to a
// customer's URL, and returns the result as an Outcome.
//
// It guarantees:
//   - One call of Send puts at most one request on the wire. It never repeats a request or follows
//     a redirect. The caller owns the retry schedule.
//   - No attempt reaches an address that the Guard refuses. The Guard checks the text of a URL,
//     every address that its name resolves to, and once more the address at the moment of
//     connecting.
//   - Regardless of the receiver's behavior, the attempt ends within its time and uses a bounded
//     amount of memory.
//
// It never stores, logs or returns the text of an error. Such texts contain the path and query of
// the URL, and receivers put tokens there. The Class is the only description of a failure.
package send
