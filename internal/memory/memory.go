// Package memory is the budget of a process: how many bytes each kind of thing may
// take that clients or receivers decide over, and what that comes to. Who hands the
// bytes out holds its line; docs/operating.md has the table.
package memory

import (
	"math"
	"os"
	"runtime/debug"
)

const mebibyte = 1 << 20

// What each connection always has, so that nobody who asks for little waits behind
// others who ask for much.
const (
	// MaxConnections are more than the callers of an API keep open.
	MaxConnections = 2048
	// FreeBody is a request body that needs no reservation.
	FreeBody = 8 << 10
	// FreeRows are what the large columns of an answer's rows may come to without a
	// reservation, FreeAnswer is for the whole answer: a page of 80 posts of the usual size.
	FreeRows   = 16 << 10
	FreeAnswer = 64 << 10
	// BodyCost is what a byte of a body comes to while its request is worked on: as it
	// came, in the contract's spelling, decoded, in the event, on its way to the
	// database, and in the answer.
	BodyCost = 6
	// MessageCost is the same of a message to the tools, whose arguments are taken apart
	// name by name first.
	MessageCost = 12
	// buffers of a connection, and its goroutines: 30 KiB, measured.
	buffers = 32 << 10
	// An answer's buffer doubles as it grows.
	perConnection = buffers + BodyCost*FreeBody + FreeRows + 2*FreeAnswer
)

// The lines of the budget.
const (
	// Connections with a small body and a small answer each.
	Connections = MaxConnections * perConnection
	// Bodies that are larger: 32 of the largest at once, 16 of one organization's.
	Bodies = 192 * mebibyte
	// Decoding is for large bodies that are held against the contract, which makes up to
	// thirty times as much of them for some milliseconds: as many as Decoders of 1 MiB.
	Decoding = Decoders * 32 * mebibyte
	Decoders = 4
	// Answers that are larger, with the rows that they are made of, until their clients
	// have read them: ten of the largest pages.
	Answers = 256 * mebibyte
	// Pages of public boards: 16 MiB that are kept for a second, and larger ones with their rows,
	// until their readers have them.
	Pages = 60 * mebibyte
	// Attempts is for the payloads of deliveries that are being sent.
	Attempts = 128 * mebibyte
	// Starts is for deliveries that wait for their workflow: 100,000 at some 250 bytes.
	Starts = 32 * mebibyte
	// Runs is for the state of 2,000 workflows at some 60 kB (worker/sizes.go).
	Runs = 128 * mebibyte
	// Program is the rest: the program itself, its pools, and what it remembers of keys.
	Program = 128 * mebibyte

	// Process is what a process takes at most.
	Process = Connections + Bodies + Decoding + Answers + Pages + Attempts + Starts + Runs + Program
)

// gcPercent is by how much of what is in use, in percent, the heap grows before it is collected.
// Go's 100 has a process with 15 MiB in use collect four times a second under a usual load, 10 to
// 30 ms each, in which requests wait for processors. The limit keeps the larger heap to the budget.
const gcPercent = 400

// Limit has the garbage collector keep to the budget and be rare within it, unless GOMEMLIMIT
// and GOGC say otherwise.
func Limit() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(Process)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
