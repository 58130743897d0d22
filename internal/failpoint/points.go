// Package failpoint names the lines at which a kill is most dangerous, so that the fault harness
// (e2e/faults) can kill a process exactly there. The points exist only in a program that is built
// with the tag "failpoints". In any other program Hit is empty, and the compiler removes it.
//
// EARSHOT_FAILPOINTS arms points, each with a number, for example after-commit=3,after-send=1. When
// the process reaches after-commit for the third time, it kills itself with SIGKILL, so no deferred
// call runs.
package failpoint

// Point is the name of a line.
type Point string

// Each comment describes the state at the moment of a kill.
const (
	// BeforeGroupCommit: the changes of a batch are about to be committed. The rows that they read are
	// locked, and no caller has an answer.
	BeforeGroupCommit Point = "before-group-commit"
	// AfterCommit: a change is committed, but the caller has no answer. Only the sweep can find its
	// deliveries.
	AfterCommit Point = "after-commit"
	// BeforeStart: a group has left the queue of starts, so it is in no queue.
	BeforeStart Point = "before-start"
	// AfterStart: Temporal has the workflow, but the process that started it has no confirmation.
	AfterStart Point = "after-start"
	// AfterClaim: the row is leased to an attempt that no process will make.
	AfterClaim Point = "after-claim"
	// BeforeSend: as AfterClaim, and the request is ready.
	BeforeSend Point = "before-send"
	// AfterSend: the receiver has answered, but the answer isn't recorded. Only in this case does a
	// receiver get a delivery twice.
	AfterSend Point = "after-send"
	// AfterRecord: the outcome is in the row, but the workflow doesn't have it.
	AfterRecord Point = "after-record"
	// BeforeStreakSignal: a failure is counted, but the workflow that disables the webhook has no
	// signal.
	BeforeStreakSignal Point = "before-streak-signal"
	// AfterStreakSignal: the signal is sent, but the attempt's activity hasn't ended.
	AfterStreakSignal Point = "after-streak-signal"
	// AfterDisable: the webhook is disabled, but no admin has been e-mailed.
	AfterDisable Point = "after-disable"
	// SweepFound: the sweep has found stranded deliveries and started none of them.
	SweepFound Point = "sweep-found"
	// RecoveryPage: replays are inserted in a transaction that doesn't commit.
	RecoveryPage Point = "recovery-page"
	// AfterRecoveryPage: a page of replays and the new position are committed, but the recovery's
	// workflow doesn't know.
	AfterRecoveryPage Point = "after-recovery-page"
	// AfterPublication: an entry is published, and its workflow would publish it again.
	AfterPublication Point = "after-publication"
	// RetentionBatch: a batch of old rows is removed, but the new position isn't stored.
	RetentionBatch Point = "retention-batch"
	// AfterAsk: an end-user's request is stored. The workflow that e-mails the link isn't started,
	// and the browser has no answer.
	AfterAsk Point = "after-ask"
	// BeforeLink: the link is about to be e-mailed.
	BeforeLink Point = "before-link"
	// AfterLink: the mail server has the link, but no row records it.
	AfterLink Point = "after-link"
	// BeforeConfirmation: a link is used up and its action is done, in a transaction that doesn't
	// commit.
	BeforeConfirmation Point = "before-confirmation"
	// AfterConfirmation: the action is committed, but neither the browser nor the waiting workflow
	// knows.
	AfterConfirmation Point = "after-confirmation"
	// SubjectPage: a page of an export or an erasure is done in a transaction that doesn't commit.
	SubjectPage Point = "subject-page"
	// AfterSubjectPage: the page and the new position are committed, but the workflow doesn't know.
	AfterSubjectPage Point = "after-subject-page"
	// BeforeLastAnswers: the attempts that an erasure waited for have ended. The receivers' answers
	// to them are still stored.
	BeforeLastAnswers Point = "before-last-answers"
)

// Points lists all points in the order of a delivery's life, followed by those of end-users'
// actions and of personal data.
var Points = []Point{
	BeforeGroupCommit, AfterCommit, BeforeStart, AfterStart, AfterClaim, BeforeSend, AfterSend, AfterRecord,
	BeforeStreakSignal, AfterStreakSignal, AfterDisable, SweepFound, RecoveryPage, AfterRecoveryPage,
	AfterPublication, RetentionBatch,
	AfterAsk, BeforeLink, AfterLink, BeforeConfirmation, AfterConfirmation, SubjectPage, AfterSubjectPage, BeforeLastAnswers,
}

// Variable is the environment variable that arms points.
const Variable = "EARSHOT_FAILPOINTS"
