// Package jobs describes the starts and the signals of durable jobs as plain values. A feature makes a
// request for its own job, and package dispatch sends it to Temporal.
package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// How tells how a request reaches the run.
type How int

const (
	// Start starts a run. An open run is left alone, and a closed one is followed by another, because
	// the row determines the remaining work.
	Start How = iota
	// Wake signals the open run, or starts one with the signal.
	Wake
	// Tell signals the open run. It is no error if there is none.
	Tell
)

// Request starts or signals the run of a job. A change sends equal requests once.
type Request struct {
	How How
	// Workflow and Signal are wire names. Start needs no Signal.
	Workflow, Signal string
	// ID is the id of the run, and of the row that it works on. The argument of the workflow is a JSON
	// object with this id as its only member. Argument is the member's name.
	ID, Argument string
	// Summary is for operators in Temporal's web UI, for example "exports or erases a person".
	Summary string
	// Organization and Webhook are search attributes. The organizations share the task queue fairly.
	// The zero values are left out.
	Organization publicid.Organization
	Webhook      publicid.Webhook
}

// Ask tells how the sweep learns whether a row has an open run.
type Ask int

const (
	// EachRun looks each run up. It is for rows that are few.
	EachRun Ask = iota
	// ListedRuns trusts Temporal's list of open runs, which saves most of the calls.
	ListedRuns
	// NoRuns asks nothing: the request goes to an open run, too.
	NoRuns
)

// Overdue is a row whose run should have acted on it.
type Overdue struct {
	Request Request
	// At and Row are the place in the order of the rows. The next page begins behind it.
	At  time.Time
	Row uuid.UUID
	// Ended reacts to a run that an operator terminated. Without it, the request is sent again.
	Ended func(context.Context) error
}

// Sweep finds the rows of one job that have no run, and sends their requests again.
type Sweep struct {
	Ask Ask
	// Rows returns a page of overdue rows of all organizations: those behind a place, longest overdue
	// first. The zero place is the start. The grace is how long a row may be overdue;
	// a job whose runs take longer to begin waits for longer.
	Rows func(ctx context.Context, grace time.Duration, after Overdue, limit int) ([]Overdue, error)
}
