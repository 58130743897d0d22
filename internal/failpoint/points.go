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
	// AfterAsk: what an end-user wants is kept, nobody has started the run that mails the link,
	// and the browser has no answer.
	AfterAsk Point = "after-ask"
	// BeforeLink: the link is about to be mailed.
	BeforeLink Point = "before-link"
	// AfterLink: the mail server has the link, and no row says so.
	AfterLink Point = "after-link"
	// BeforeConfirmation: a link is used up and what it is for is done, in a transaction that
	// doesn't commit.
	BeforeConfirmation Point = "before-confirmation"
	// AfterConfirmation: it counts, and neither the browser knows nor the run that waits for it.
	AfterConfirmation Point = "after-confirmation"
	// SubjectPage: a page of an export or an erasure is done, in a transaction that doesn't commit.
	SubjectPage Point = "subject-page"
	// AfterSubjectPage: the page and the new place are committed, and the run doesn't know.
	AfterSubjectPage Point = "after-subject-page"
	// BeforeLastAnswers: the attempts that an erasure waited for have ended, and what receivers
	// answered to them is still there.
	BeforeLastAnswers Point = "before-last-answers"
)

// Points are all of them, in the order of a delivery's life, then of what end-users do.
var Points = []Point{
	BeforeGroupCommit, AfterCommit, BeforeStart, AfterStart, AfterClaim, BeforeSend, AfterSend, AfterRecord,
	BeforeStreakSignal, AfterStreakSignal, AfterDisable, SweepFound, RecoveryPage, AfterRecoveryPage,
	AfterPublication, RetentionBatch,
	AfterAsk, BeforeLink, AfterLink, BeforeConfirmation, AfterConfirmation, SubjectPage, AfterSubjectPage, BeforeLastAnswers,
}

// Variable is the environment variable that arms points.
const Variable = "EARSHOT_FAILPOINTS"
