package activities

import (
	"strconv"
	"time"

	"earshot/internal/store"
)

// outcome is what became of one delivery.
type outcome struct {
	// putOff says that no attempt was made, for want of a slot, of memory or of a token.
	putOff bool
	// atLeast is how long it is put off then, whatever the backlog.
	atLeast time.Duration
	// throttled says that it is put off for exactly that long, until its turn, and noted that its
	// row says so already.
	throttled, noted bool
	pending          bool
	next             Pending
	// at is when the delay began, where there is one of its own.
	at time.Time
	// failed for good.
	failed bool
	answer string
	streak streakMove
}

func again(due Due, attempt int, in time.Duration) outcome {
	due.Attempt = attempt
	return outcome{pending: true, next: Pending{Due: due, In: in}, at: time.Now()}
}

// gone is the outcome of a delivery whose row has ended: its attempt was made,
// perhaps by a worker that was killed before it could say so. The streak may not
// be followed yet for the same reason.
func gone(ended *store.Ended) outcome {
	if ended == nil {
		return outcome{} // deleted with its webhook
	}
	o := outcome{failed: ended.Failed, answer: answerOf(ended.Response, ended.Error)}
	if ended.Error != ErrorWebhookDisabled && ended.Error != ErrorGivenUp {
		o.streak = moveOf(ended.Failed)
	}
	return o
}

// answerOf is what an operator sees of an attempt.
func answerOf(status int, failure string) string {
	if status > 0 && failure != ErrorWebhookDisabled && failure != ErrorGivenUp { // those leave the last status as it is
		return strconv.Itoa(status)
	}
	return failure
}

func resultOf(of []Due, outcomes []outcome) AttemptResult {
	result := AttemptResult{Answers: make([]string, len(of))}
	for i, o := range outcomes {
		result.Answers[i] = o.answer
		switch {
		case o.pending:
			// Delays run from the end of each attempt, not of the slowest one.
			o.next.In = max(0, o.next.In-time.Since(o.at))
			result.Pending = append(result.Pending, o.next)
		case o.failed:
			result.Failed = append(result.Failed, of[i].ID)
		}
	}
	return result
}
