// Package memory is the memory budget of a process: the bytes for each kind of data whose size
// clients or receivers control, and their sum. The code that allocates the bytes enforces its line
// of the budget. docs/operating.md has the table.
package memory

import (
	"math"
	"os"
	"runtime/debug"
)

const mebibyte = 1 << 20

// The memory that each connection always has. Small requests therefore never wait behind large
// ones.
const (
	// MaxConnections is more than the clients of an API keep open.
	MaxConnections = 2048
	// FreeBody is the size of a request body that needs no reservation.
	FreeBody = 8 << 10
	// FreeRows is the size of the large columns of an answer's rows that needs no reservation.
	// FreeAnswer is the same for the whole answer, enough for 80 posts of the usual size.
	FreeRows   = 16 << 10
	FreeAnswer = 64 << 10
	// BodyCost is the number of bytes for each byte of a body during its request. There are six
	// copies: the raw body, its form in the contract's spelling, the decoded value, the event, the
	// database parameters, and the answer.
	BodyCost = 6
	// MessageCost is the same for a message to the tools, whose arguments are first split by name.
	MessageCost = 12
	// buffers is the memory for the buffers and goroutines of a connection: 30 KiB, measured.
	buffers = 32 << 10
	// An answer's buffer doubles as it grows.
	perConnection = buffers + BodyCost*FreeBody + FreeRows + 2*FreeAnswer
)

// The lines of the budget.
const (
	// Connections is for connections with a small body and a small answer each.
	Connections = MaxConnections * perConnection
	// Bodies is for larger bodies: 32 of the largest in parallel, and 16 for one organization.
	Bodies = 192 * mebibyte
	// Decoding is for the validation of large bodies against the contract, which takes up to thirty
	// times their size for some milliseconds. It suffices for Decoders bodies of 1 MiB.
	Decoding = Decoders * 32 * mebibyte
	Decoders = 4
	// Answers is for larger answers and their rows, until the clients have read them: ten of the
	// largest pages.
	Answers = 256 * mebibyte
	// Pages is for pages of public boards: 16 MiB of cached pages, and larger pages with their
	// rows, until the readers have them.
	Pages = 60 * mebibyte
	// Attempts is for the payloads of deliveries that are being sent.
	Attempts = 128 * mebibyte
	// Starts is for deliveries that wait for their workflow: 100,000 of about 250 bytes.
	Starts = 32 * mebibyte
	// Runs is for the state of 2,000 workflows of about 60 kB (worker/sizes.go).
	Runs = 128 * mebibyte
	// Program is the rest: the program, its pools, and its cache of keys.
	Program = 128 * mebibyte

	// Process is the limit for the whole process.
	Process = Connections + Bodies + Decoding + Answers + Pages + Attempts + Starts + Runs + Program
)

// gcPercent is the growth of the heap between two collections, in percent of the live heap. With
// Go's default of 100, a process with 15 MiB in use collects four times a second under a usual
// load. Each collection takes 10 to 30 ms, in which requests wait for processors. The memory limit
// keeps the larger heap within the budget. Data that hostile receivers hold up grows the heap 3.5 times
// as much. With 400, a worker grew by 56 MiB beside all of them. The promise is 50 MiB.
const gcPercent = 250

// Limit sets the garbage collector's memory limit to the budget and makes collections rare within
// it. GOMEMLIMIT and GOGC override this.
func Limit() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(Process)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
