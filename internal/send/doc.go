// Package send makes one attempt to deliver a webhook: it signs the payload,
// posts it to a stranger's URL, and reports what happened as an Outcome.
//
// It owns three promises.
//
//   - One call of Send puts at most one request on the wire. Nothing here
//     repeats or follows anything; the schedule of retries is the caller's.
//   - No attempt reaches an address that the Guard refuses. The Guard judges
//     the text of a URL, every address that its name resolves to, and once
//     more the address at the moment of connecting.
//   - Whatever a receiver does, the attempt ends within its time and holds a
//     bounded amount of memory.
//
// It refuses to store, to log, and to return the text of an error: such texts
// hold the path and query of the URL, and receivers put tokens there. A
// failure is told by its Class alone.
package send
