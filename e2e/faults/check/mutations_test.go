package check_test

import "earshot/e2e/faults/ledger"

var eventMutations = []mutation{
	{
		name: "a delivery was never made",
		change: func(w *world) {
			dropped("fourth to healthy")(w)
			delivery("fourth to healthy", `DELETE FROM deliveries WHERE id = $1`)(w)
		},
		rules: []string{"delivery missing"}, says: "(post.created) has no delivery to webhook",
	},
	{
		name: "a test has no delivery",
		change: func(w *world) {
			dropped("test to healthy")(w)
			delivery("test to healthy", `DELETE FROM deliveries WHERE id = $1`)(w)
		},
		rules: []string{"delivery missing"}, says: "(webhook.test) has no delivery",
	},
	{
		name: "two deliveries of one event",
		change: func(w *world) {
			w.delivery("again", "first", "healthy", 10)
			w.attempt("again", 1, 10.1, 200)
			w.succeed("again", 10.13)
		},
		rules: []string{"delivery twice"}, says: "has 2 deliveries to webhook",
	},
	{
		name: "a delivery to a webhook that doesn't subscribe",
		change: func(w *world) {
			w.exec(`UPDATE webhooks SET events = '["vote.created"]' WHERE id = $1`, w.hooks["dead"])
		},
		rules: []string{"delivery uncalled for"}, says: "the webhook doesn't subscribe",
	},
	{
		name:   "a delivery to a webhook that was disabled",
		change: func(w *world) { w.fail(w.deliver("fourth", "dead", 110), 111, "webhook_disabled") },
		rules:  []string{"delivery uncalled for"}, says: "the webhook was disabled at 2026-01-01 12:01:40",
	},
	{
		name: "a delivery to a webhook that is younger than the event",
		change: func(w *world) {
			w.exec(`UPDATE webhooks SET created_at = $2 WHERE id = $1`, w.hooks["dead"], at(30))
		},
		rules: []string{"delivery uncalled for"}, says: "the event is older than the webhook",
	},
	{
		name:   "a delivery of another type than its event",
		change: delivery("second to dead", `UPDATE deliveries SET event_type = 'vote.created' WHERE id = $1`),
		rules:  []string{"delivery uncalled for", "receipt misdirected"}, says: "its type is vote.created",
	},
	{
		name: "a replay of another event",
		change: func(w *world) {
			w.exec(`UPDATE deliveries SET replay_of = $2 WHERE id = $1`, w.deliveries["replay"], w.deliveries["second to healthy"])
		},
		rules: []string{"replay"}, says: "which is of another event or webhook",
	},
	{
		name:   "an acknowledged post is gone",
		change: func(w *world) { w.exec(`DELETE FROM posts WHERE id = $1`, w.posts["first"]) },
		rules:  []string{"write lost"}, says: "was acknowledged at 2026-01-01 12:00:10.05+00 and has no row",
	},
	{
		name:   "an acknowledged change has no event",
		change: func(w *world) { w.acknowledge("first", "post.status_changed", 30) },
		rules:  []string{"event lost"}, says: "was acknowledged 1 times and has 0 events",
	},
	{
		name: "of two acknowledged changes one has no event",
		change: func(w *world) {
			w.acknowledge("first", "post.created", 30)
		},
		rules: []string{"event lost"}, says: "was acknowledged 2 times and has 1 events",
	},
}

var deliveryMutations = []mutation{
	{
		name: "a delivery that never ended",
		change: func(w *world) {
			w.deliver("fourth", "healthy", 110)
			delivery("fourth to healthy", `UPDATE deliveries SET replay_of = id WHERE id = $1`)(w)
		},
		rules: []string{"pending"}, says: "has not ended after 0 attempts",
	},
	{
		name: "a success that was never received",
		change: func(w *world) {
			dropped("first to healthy")(w)
			delivery("first to healthy", `UPDATE attempts SET response_status = NULL, error = 'timeout' WHERE delivery_id = $1`)(w)
		},
		rules: []string{"success unproven", "state"}, says: "the receiver never answered it with 2xx",
	},
	{
		name: "a failure after four attempts",
		change: func(w *world) {
			delivery("first to dead", `DELETE FROM attempts WHERE delivery_id = $1 AND number = 5`)(w)
			delivery("first to dead", `UPDATE deliveries SET attempt_count = 4 WHERE id = $1`)(w)
		},
		rules: []string{"gave up early", "state", "receipt unrecorded"}, says: "failed with http_status after 4 attempts, not 5",
	},
	{
		name: "an end by a webhook that wasn't disabled",
		change: func(w *world) {
			w.exec(`UPDATE webhooks SET disabled_at = $2, updated_at = $2 WHERE id = $1`, w.hooks["dead"], at(109))
		},
		rules: []string{"end unexplained"}, says: "was disabled, which was disabled at 2026-01-01 12:01:49",
	},
	{
		name: "an end by a webhook that is enabled",
		change: func(w *world) {
			w.exec(`UPDATE webhooks SET enabled = true, disabled_at = NULL, updated_at = $2 WHERE id = $1`, w.hooks["dead"], at(0))
		},
		rules: []string{"delivery missing", "end unexplained"}, says: "has no delivery to webhook",
	},
	{
		name:   "an attempt is gone",
		change: delivery("first to dead", `DELETE FROM attempts WHERE delivery_id = $1 AND number = 3`),
		rules:  []string{"gave up early", "attempt numbers", "receipt unrecorded", "duplicates"}, says: "after 4 attempts, not 5",
	},
	{
		name:   "attempts with a gap",
		change: delivery("second to healthy", `UPDATE attempts SET number = 3 WHERE delivery_id = $1 AND number = 2`),
		rules:  []string{"attempt numbers"}, says: "counts 2 attempts and has 2, numbered 1 to 3",
	},
	{
		name: "an attempt that is there twice",
		change: func(w *world) {
			w.exec(`DROP INDEX attempt_delivery_id_number`)
			w.exec(`UPDATE attempts SET number = 4 WHERE delivery_id = $1 AND number = 3`, w.deliveries["first to dead"])
		},
		rules: []string{"attempt numbers"}, says: "counts 5 attempts and has 5, numbered 1 to 5",
	},
	{
		name:   "an attempt during another",
		change: delivery("second to healthy", `UPDATE attempts SET duration_ms = 1500 WHERE delivery_id = $1 AND number = 1`),
		rules:  []string{"attempt order"}, says: "attempt 2 of delivery",
	},
	{
		name:   "a success without its time",
		change: delivery("first to healthy", `UPDATE deliveries SET delivered_at = NULL WHERE id = $1`),
		rules:  []string{"state"}, says: "delivered at no time",
	},
	{
		name:   "a failure without its time",
		change: delivery("first to dead", `UPDATE deliveries SET failed_at = NULL WHERE id = $1`),
		rules:  []string{"state"}, says: "failed at no time",
	},
	{
		name:   "a failure without an error",
		change: delivery("first to dead", `UPDATE deliveries SET last_error = NULL WHERE id = $1`),
		rules:  []string{"state"}, says: "it failed without an error",
	},
	{
		name: "a success that is called a failure",
		change: delivery("first to healthy", `UPDATE deliveries SET status = 'failed', failed_at = delivered_at, delivered_at = NULL,
			last_error = 'given_up' WHERE id = $1`),
		rules: []string{"state"}, says: "1 attempts succeeded",
	},
	{
		name: "a failure that is called a success",
		change: delivery("first to dead", `UPDATE deliveries SET status = 'succeeded', delivered_at = failed_at, failed_at = NULL,
			last_error = NULL WHERE id = $1`),
		rules: []string{"success unproven", "state"}, says: "the receiver never answered it with 2xx",
	},
	{
		name:   "an end that is still due",
		change: delivery("first to healthy", `UPDATE deliveries SET next_attempt_at = delivered_at WHERE id = $1`),
		rules:  []string{"state"}, says: "it is due or leased, though it ended",
	},
	{
		name:   "a row that shows another attempt",
		change: delivery("second to healthy", `UPDATE deliveries SET last_response_status = 500 WHERE id = $1`),
		rules:  []string{"state"}, says: "its row doesn't show its last attempt",
	},
	{
		name:   "an end before the last attempt",
		change: delivery("first to dead", `UPDATE deliveries SET failed_at = failed_at - interval '1 s' WHERE id = $1`),
		rules:  []string{"state"}, says: "it ended before its last attempt did",
	},
	{
		name:   "an attempt that failed with 200",
		change: delivery("second to dead", `UPDATE attempts SET response_status = 200 WHERE delivery_id = $1`),
		rules:  []string{"state", "answer made up"}, says: "got 200 and has the error http_status",
	},
}

var receiptMutations = []mutation{
	{
		name:   "a receipt is gone",
		change: dropped("first to healthy"),
		rules:  []string{"success unproven", "answer made up"}, says: "the receiver never answered it with 2xx",
	},
	{
		name:   "a failure that was never received",
		change: dropped("second to dead"),
		rules:  []string{"answer made up"}, says: "attempt 1 of delivery",
	},
	{
		name: "another answer than recorded",
		change: entries("second to healthy", func(_ int, e *ledger.Entry) {
			if e.Status == 500 {
				e.Status = 503
			}
		}),
		rules: []string{"answer made up"}, says: "got 500, and request 7 was answered 503",
	},
	{
		name: "a success that was answered 500",
		change: entries("first to healthy", func(_ int, e *ledger.Entry) {
			if e.Status == 200 {
				e.Status = 500
			}
		}),
		rules: []string{"success unproven", "answer made up"}, says: "the receiver never answered it with 2xx",
	},
	{
		name: "an answer that broke, though nothing was killed",
		change: entries("first to healthy", func(n int, e *ledger.Entry) {
			if n == 1 {
				e.Kind, e.Status = ledger.Broken, 0
			}
		}),
		rules: []string{"success unproven", "answer made up"}, says: "the receiver never answered it with 2xx",
	},
	{
		name: "a receipt of a delivery that was rolled back",
		change: func(w *world) {
			delivery("replay", `DELETE FROM deliveries WHERE id = $1`)(w)
		},
		rules: []string{"receipt of nothing"}, says: "which is not there",
	},
	{
		name:   "a receipt that names no delivery",
		change: entries("second to dead", func(_ int, e *ledger.Entry) { e.Delivery = "dlv_" }),
		rules:  []string{"answer made up", "receipt of nothing"}, says: "and nothing was received then",
	},
	{
		name:   "a receipt at another endpoint",
		change: entries("first to healthy", func(_ int, e *ledger.Entry) { e.Endpoint = "dead" }),
		rules:  []string{"receipt misdirected"}, says: "came to dead as post.created, and not to healthy as post.created",
	},
	{
		name:   "a receipt of another type",
		change: entries("first to healthy", func(_ int, e *ledger.Entry) { e.Event = "vote.created" }),
		rules:  []string{"receipt misdirected"}, says: "came to healthy as vote.created",
	},
	{
		name: "a byte that changed in one attempt",
		change: entries("second to healthy", func(n int, e *ledger.Entry) {
			if n < 2 {
				e.Sum = sumOf("{}")
			}
		}),
		rules: []string{"body"}, says: "has another body than event",
	},
	{
		name:   "a payload that changed afterwards",
		change: func(w *world) { w.exec(`UPDATE events SET payload = payload || ' ' WHERE id = $1`, w.events["fourth"]) },
		rules:  []string{"body"}, says: "has another body than event",
	},
	{
		name:   "a signature that doesn't check",
		change: entries("first to healthy", func(_ int, e *ledger.Entry) { e.Signed = false }),
		rules:  []string{"signature"}, says: "has a signature that doesn't check",
	},
	{
		name:   "a receipt too many",
		change: func(w *world) { w.receive("second to dead", 30, 503) },
		rules:  []string{"receipt unrecorded"}, says: "nothing was killed between its arrival and its record",
	},
	{
		name:   "an attempt that was sent twice",
		change: func(w *world) { w.receive("first to healthy", 10.11, 200) },
		rules:  []string{"receipt unrecorded", "repeated", "duplicates"}, says: "nothing was killed between its arrival and its record",
	},
	{
		name:   "a success that was sent again, even at a kill",
		change: func(w *world) { w.receive("first to healthy", 50.1, 200) },
		rules:  []string{"repeated"}, says: "was answered 200, and nothing was killed before that was recorded; it came again at 2026-01-01 12:00:50.1",
	},
	{
		name:   "two receipts for one kill",
		change: func(w *world) { w.receive("third to healthy", 50.16, 200) },
		rules:  []string{"interrupted too often"}, says: "was received 2 times without a record, and 1 kills were about",
	},
	{
		name:   "no kill",
		change: func(w *world) { w.in.Kills = nil },
		rules:  []string{"receipt unrecorded", "repeated", "duplicates"}, says: "nothing was killed",
	},
}
