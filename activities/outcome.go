package activities

import (
	"strconv"
	"time"

	"earshot/internal/delivery"
)

// outcome is the result of one delivery's attempt.
type outcome struct {
	// putOff says that the attempt was postponed, because it got no slot, memory or token.
	putOff bool
	// atLeast is the minimum delay of a postponed attempt, regardless of the backlog.
	atLeast time.Duration
	// throttled says that the delay is exactly atLeast, until the delivery's turn. noted says that
	// its row already holds that time.
	throttled, noted bool
	pending          bool
	next             Pending
	// at is the start of the delay, if the delay doesn't start at the end of the activity.
	at time.Time
	// failed says that the delivery failed for good.
	failed bool
	answer string
	streak streakMove
}

func again(due Due, attempt int, in time.Duration) outcome {
	due.Attempt = attempt
	return outcome{pending: true, next: Pending{Due: due, In: in}, at: time.Now()}
}

// gone is the outcome of a delivery whose row has already ended, perhaps by a worker that was
// killed before it could report it. For the same reason, the streak may still need a signal.
func gone(ended *delivery.Ended) outcome {
	if ended == nil {
		return outcome{} // deleted with its webhook
	}
	o := outcome{failed: ended.Failed, answer: answerOf(ended.Response, ended.Error)}
	if ended.Error != ErrorWebhookDisabled && ended.Error != ErrorGivenUp {
		o.streak = moveOf(ended.Failed)
	}
	return o
}

// answerOf returns the result of an attempt for operators.
func answerOf(status int, failure string) string {
	if status > 0 && failure != ErrorWebhookDisabled && failure != ErrorGivenUp { // those leave the last status unchanged
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
			// A delay starts at the end of its own attempt, not at the end of the slowest one.
			o.next.In = max(0, o.next.In-time.Since(o.at))
			result.Pending = append(result.Pending, o.next)
		case o.failed:
			result.Failed = append(result.Failed, of[i].ID)
		}
	}
	return result
}
