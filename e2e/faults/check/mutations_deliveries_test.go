package check_test

var deliveryMutations = []mutation{
	{
		name: "a delivery that never ended",
		change: func(w *world) {
			w.deliver("fourth", "healthy", 110)
			delivery("fourth to healthy", `UPDATE deliveries SET replay_of = id WHERE id = $1`)(w)
		},
		rules: []string{"pending"},
		says:  "has not ended after 0 attempts",
	},
	{
		name: "a success that was never received",
		change: func(w *world) {
			dropped("first to healthy")(w)
			w.exec(`UPDATE attempts SET response_status = NULL, error = 'timeout' WHERE delivery_id = $1`,
				w.deliveries["first to healthy"])
		},
		rules: []string{"success unproven", "state", "attempt unreceived"},
		says:  "the receiver never answered it with 2xx",
	},
	{
		name: "a delivery to a healthy endpoint that failed",
		change: func(w *world) {
			w.post("unlucky", 70)
			d := w.deliver("unlucky", "healthy", 70)
			for n := range 5 {
				w.attempt(d, n+1, 70.1+float64(n), 503)
			}
			w.fail(d, 74.13, "")
			w.fail(w.deliver("unlucky", "dead", 70), 101, "webhook_disabled")
		},
		rules: []string{"failed"},
		says:  "failed with http_status, and endpoint healthy answers",
	},
	{
		name: "five attempts that timed out and never came",
		change: func(w *world) {
			dropped("first to dead")(w)
			delivery("first to dead", `UPDATE attempts SET response_status = NULL, error = 'timeout'
				WHERE delivery_id = $1`)(w)
			delivery("first to dead", `UPDATE deliveries SET last_response_status = NULL, last_error = 'timeout'
				WHERE id = $1`)(w)
		},
		rules: []string{"attempt unreceived"},
		says:  "ended with timeout, and nothing was received then",
	},
	{
		name:   "a delivery that was given up",
		change: delivery("second to dead", `UPDATE deliveries SET last_error = 'given_up' WHERE id = $1`),
		rules:  []string{"given up"},
		says:   "and nobody asked for it",
	},
	{
		name:   "a webhook that was disabled too early",
		change: func(w *world) { w.in.DisabledAfter = 2 },
		rules:  []string{"webhook disabled"},
		says:   "after 1 deliveries that failed for good",
	},
	{
		name: "a webhook that was disabled though its endpoint answers",
		change: func(w *world) {
			w.exec(`UPDATE webhooks SET enabled = false, disabled_at = $2, updated_at = $2 WHERE id = $1`,
				w.hooks["healthy"], at(140))
			w.in.DisabledAfter = 0
		},
		rules: []string{"webhook disabled"},
		says:  "to healthy was disabled",
	},
	{
		name: "a failure after four attempts",
		change: func(w *world) {
			delivery("first to dead", `DELETE FROM attempts WHERE delivery_id = $1 AND number = 5`)(w)
			delivery("first to dead", `UPDATE deliveries SET attempt_count = 4 WHERE id = $1`)(w)
		},
		rules: []string{"gave up early", "state", "receipt unrecorded"},
		says:  "failed with http_status after 4 attempts, not 5",
	},
	{
		name: "an end by a webhook that wasn't disabled",
		change: func(w *world) {
			w.exec(`UPDATE webhooks SET disabled_at = $2, updated_at = $2 WHERE id = $1`, w.hooks["dead"], at(109))
		},
		rules: []string{"end unexplained"},
		says:  "was disabled, which was disabled at 2026-01-01 12:01:49",
	},
	{
		name: "an end by a webhook that is enabled",
		change: func(w *world) {
			w.exec(`UPDATE webhooks SET enabled = true, disabled_at = NULL, updated_at = $2 WHERE id = $1`,
				w.hooks["dead"], at(0))
		},
		rules: []string{"delivery missing", "end unexplained"},
		says:  "has no delivery to webhook",
	},
	{
		name:   "an attempt is gone",
		change: delivery("first to dead", `DELETE FROM attempts WHERE delivery_id = $1 AND number = 3`),
		rules:  []string{"gave up early", "attempt numbers", "receipt unrecorded", "duplicates"},
		says:   "after 4 attempts, not 5",
	},
	{
		name:   "attempts with a gap",
		change: delivery("second to healthy", `UPDATE attempts SET number = 3 WHERE delivery_id = $1 AND number = 2`),
		rules:  []string{"attempt numbers"},
		says:   "counts 2 attempts and has 2, numbered 1 to 3",
	},
	{
		name: "an attempt that is there twice",
		change: func(w *world) {
			w.exec(`DROP INDEX attempt_delivery_id_number`)
			w.exec(`UPDATE attempts SET number = 4 WHERE delivery_id = $1 AND number = 3`, w.deliveries["first to dead"])
		},
		rules: []string{"attempt numbers"},
		says:  "counts 5 attempts and has 5, numbered 1 to 5",
	},
	{
		name:   "an attempt during another",
		change: delivery("second to healthy", `UPDATE attempts SET duration_ms = 1500 WHERE delivery_id = $1 AND number = 1`),
		rules:  []string{"attempt order"},
		says:   "attempt 2 of delivery",
	},
	{
		name:   "a success without its time",
		change: delivery("first to healthy", `UPDATE deliveries SET delivered_at = NULL WHERE id = $1`),
		rules:  []string{"state"},
		says:   "delivered at no time",
	},
	{
		name:   "a failure without its time",
		change: delivery("first to dead", `UPDATE deliveries SET failed_at = NULL WHERE id = $1`),
		rules:  []string{"state", "webhook disabled"},
		says:   "failed at no time",
	},
	{
		name:   "a failure without an error",
		change: delivery("first to dead", `UPDATE deliveries SET last_error = NULL WHERE id = $1`),
		rules:  []string{"state", "webhook disabled"},
		says:   "it failed without an error",
	},
	{
		name: "a success that is called a failure",
		change: delivery("first to healthy", `UPDATE deliveries SET status = 'failed',
			failed_at = delivered_at, delivered_at = NULL, last_error = 'given_up' WHERE id = $1`),
		rules: []string{"state", "failed", "given up"},
		says:  "1 attempts succeeded",
	},
	{
		name: "a failure that is called a success",
		change: delivery("first to dead", `UPDATE deliveries SET status = 'succeeded',
			delivered_at = failed_at, failed_at = NULL, last_error = NULL WHERE id = $1`),
		rules: []string{"success unproven", "state", "webhook disabled"},
		says:  "the receiver never answered it with 2xx",
	},
	{
		name:   "an end that is still due",
		change: delivery("first to healthy", `UPDATE deliveries SET next_attempt_at = delivered_at WHERE id = $1`),
		rules:  []string{"state"},
		says:   "it is due or leased, though it ended",
	},
	{
		name:   "a row that shows another attempt",
		change: delivery("second to healthy", `UPDATE deliveries SET last_response_status = 500 WHERE id = $1`),
		rules:  []string{"state"},
		says:   "its row doesn't show its last attempt",
	},
	{
		name:   "an end before the last attempt",
		change: delivery("first to dead", `UPDATE deliveries SET failed_at = failed_at - interval '1 s' WHERE id = $1`),
		rules:  []string{"state"},
		says:   "it ended before its last attempt did",
	},
	{
		name:   "an attempt that failed with 200",
		change: delivery("second to dead", `UPDATE attempts SET response_status = 200 WHERE delivery_id = $1`),
		rules:  []string{"state", "answer made up"},
		says:   "got 200 and has the error http_status",
	},
}
