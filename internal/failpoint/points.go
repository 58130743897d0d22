// Package failpoint names the lines at which a kill has something at stake, so that
// the fault harness (e2e/faults) can kill a process exactly there. They exist only in
// a program that is built with the tag "failpoints"; in any other, Hit is empty and
// the compiler leaves nothing of it.
//
// In a program with the tag, EARSHOT_FAILPOINTS names points with a number each, as in
// after-commit=3,after-send=1: at the third time that the process comes to the first
// one it kills itself with SIGKILL, as nothing else could, without a deferred call.
package failpoint

// Point is the name of a line.
type Point string

// What is at stake is said of a kill at the point.
const (
	// BeforeGroupCommit: the changes of several callers are about to be committed together, with
	// what they read locked, and nobody has an answer.
	BeforeGroupCommit Point = "before-group-commit"
	// AfterCommit: a change is committed and nobody was told. Only the sweep knows
	// of its deliveries.
	AfterCommit Point = "after-commit"
	// BeforeStart: a group was taken off the queue of starts, so it is in no queue.
	BeforeStart Point = "before-start"
	// AfterStart: Temporal has the run, and the process that asked doesn't know.
	AfterStart Point = "after-start"
	// AfterClaim: the row is leased to an attempt that nobody makes.
	AfterClaim Point = "after-claim"
	// BeforeSend: the same, with the request ready.
	BeforeSend Point = "before-send"
	// AfterSend: the receiver has answered, and no row says so: the one case in which
	// it sees a delivery twice.
	AfterSend Point = "after-send"
	// AfterRecord: the row has the outcome, the workflow hasn't.
	AfterRecord Point = "after-record"
	// BeforeStreakSignal: a failure is counted, and whoever disables the webhook
	// doesn't know.
	BeforeStreakSignal Point = "before-streak-signal"
	// AfterStreakSignal: they were told, and the attempt's activity hasn't ended.
	AfterStreakSignal Point = "after-streak-signal"
	// AfterDisable: the webhook is disabled, and no admin was mailed.
	AfterDisable Point = "after-disable"
	// SweepFound: the sweep has found what nobody looks after, and started none of it.
	SweepFound Point = "sweep-found"
	// RecoveryPage: replays are inserted, in a transaction that doesn't commit.
	RecoveryPage Point = "recovery-page"
	// AfterRecoveryPage: a page of replays and the new place are committed, and the
	// recovery's run doesn't know.
	AfterRecoveryPage Point = "after-recovery-page"
	// AfterPublication: an entry is published, and its run would publish it again.
	AfterPublication Point = "after-publication"
	// RetentionBatch: a batch of old rows is removed, and the place in them isn't kept.
	RetentionBatch Point = "retention-batch"
)

// Points are all of them, in the order of a delivery's life.
var Points = []Point{
	BeforeGroupCommit, AfterCommit, BeforeStart, AfterStart, AfterClaim, BeforeSend, AfterSend, AfterRecord,
	BeforeStreakSignal, AfterStreakSignal, AfterDisable, SweepFound, RecoveryPage, AfterRecoveryPage,
	AfterPublication, RetentionBatch,
}

// Variable is the environment variable that arms points.
const Variable = "EARSHOT_FAILPOINTS"
