package check_test

import (
	"slices"

	"earshot/e2e/faults/check"
	"earshot/e2e/faults/ledger"
)

// unrecordedDuring adds a receipt without an attempt, one second into a fault of three seconds.
func unrecordedDuring(what string, status int) func(*world) {
	return func(w *world) {
		w.in.Kills = slices.Concat(w.in.Kills, []check.Kill{{What: what, At: at(29), Back: at(32)}})
		w.receive("second to dead", 30, status)
	}
}

var receiptMutations = []mutation{
	{
		name:   "a word of somebody who was erased",
		change: func(w *world) { w.in.Erased.Texts = []string{"Second"} },
		rules:  []string{"erased"},
		says:   "rows of post_documents have 'second'",
	},
	{
		name: "the address of somebody who was erased, in bytes",
		change: func(w *world) {
			w.in.Erased.Texts = []string{"zoe@example.com"}
			w.exec(`UPDATE webhooks SET secret_sealed = 'for Zoe@example.com'::bytea`)
		},
		rules: []string{"erased"},
		says:  "2 rows of webhooks have 'zoe@example.com'",
	},
	{
		name: "the hash of such an address",
		change: func(w *world) {
			w.in.Erased.Hashes = [][]byte{[]byte("a hash")}
			w.exec(`INSERT INTO votes (id, organization_id, created_at, email_hash, post_id)
				VALUES (gen_random_uuid(), $1, now(), 'a hash', $2)`, w.organization, w.posts["first"])
		},
		rules: []string{"erased"},
		says:  "1 rows of votes have the hash of an address",
	},
	{
		name:   "a receipt is gone",
		change: dropped("first to healthy"),
		rules:  []string{"success unproven", "answer made up"},
		says:   "the receiver never answered it with 2xx",
	},
	{
		name:   "a failure that was never received",
		change: dropped("second to dead"),
		rules:  []string{"answer made up"},
		says:   "attempt 1 of delivery",
	},
	{
		name: "another answer than recorded",
		change: entries("second to healthy", func(_ int, e *ledger.Entry) {
			if e.Status == 500 {
				e.Status = 503
			}
		}),
		rules: []string{"answer made up"},
		says:  "got 500, and request 7 was answered 503",
	},
	{
		name: "a success that was answered 500",
		change: entries("first to healthy", func(_ int, e *ledger.Entry) {
			if e.Status == 200 {
				e.Status = 500
			}
		}),
		rules: []string{"success unproven", "answer made up"},
		says:  "the receiver never answered it with 2xx",
	},
	{
		name: "an answer that broke, though nothing was killed",
		change: entries("first to healthy", func(n int, e *ledger.Entry) {
			if n == 1 {
				e.Kind, e.Status = ledger.Broken, 0
			}
		}),
		rules: []string{"success unproven", "answer made up"},
		says:  "the receiver never answered it with 2xx",
	},
	{
		name: "a receipt of a delivery that was rolled back",
		change: func(w *world) {
			delivery("replay", `DELETE FROM deliveries WHERE id = $1`)(w)
		},
		rules: []string{"receipt of nothing"},
		says:  "which is not there",
	},
	{
		name:   "a receipt that names no delivery",
		change: entries("second to dead", func(_ int, e *ledger.Entry) { e.Delivery = "dlv_" }),
		rules:  []string{"answer made up", "receipt of nothing"},
		says:   "and nothing was received then",
	},
	{
		name:   "a receipt at another endpoint",
		change: entries("first to healthy", func(_ int, e *ledger.Entry) { e.Endpoint = "dead" }),
		rules:  []string{"receipt misdirected"},
		says:   "came to dead as post.created, and not to healthy as post.created",
	},
	{
		name:   "a receipt of another type",
		change: entries("first to healthy", func(_ int, e *ledger.Entry) { e.Event = "vote.created" }),
		rules:  []string{"receipt misdirected"},
		says:   "came to healthy as vote.created",
	},
	{
		name: "a byte that changed in one attempt",
		change: entries("second to healthy", func(n int, e *ledger.Entry) {
			if n < 2 {
				e.Sum = sumOf("{}")
			}
		}),
		rules: []string{"body"},
		says:  "has another body than event",
	},
	{
		name:   "a payload that changed afterwards",
		change: func(w *world) { w.exec(`UPDATE events SET payload = payload || ' ' WHERE id = $1`, w.events["fourth"]) },
		rules:  []string{"body"},
		says:   "has another body than event",
	},
	{
		name:   "a signature that doesn't check",
		change: entries("first to healthy", func(_ int, e *ledger.Entry) { e.Signed = false }),
		rules:  []string{"signature"},
		says:   "has a signature that doesn't check",
	},
	{
		name:   "a receipt too many",
		change: func(w *world) { w.receive("second to dead", 30, 503) },
		rules:  []string{"receipt unrecorded"},
		says:   "nothing was killed from its arrival to its record",
	},
	{
		name:   "an attempt that was sent twice",
		change: func(w *world) { w.receive("first to healthy", 10.11, 200) },
		rules:  []string{"receipt unrecorded", "repeated", "duplicates"},
		says:   "nothing was killed from its arrival to its record",
	},
	{
		name:   "a success that was sent again, even at a kill",
		change: func(w *world) { w.receive("first to healthy", 50.1, 200) },
		rules:  []string{"repeated"},
		says:   "came again at 2026-01-01 12:00:50.1+00, though nothing was killed meanwhile",
	},
	{
		name:   "two receipts for one kill",
		change: func(w *world) { w.receive("third to healthy", 50.16, 200) },
		rules:  []string{"interrupted too often"},
		says:   "was received 2 times without a record, and 1 kills were about",
	},
	{
		name:   "a receipt without a record while the API was away",
		change: unrecordedDuring("api", 503),
		rules:  []string{"receipt unrecorded"},
		says:   "nothing was killed from its arrival to its record",
	},
	{
		name:   "a receipt without a record while the API was cut off from Postgres",
		change: unrecordedDuring("cut api to postgres", 503),
		rules:  []string{"receipt unrecorded"},
		says:   "nothing was killed from its arrival to its record",
	},
	{
		name:   "an answer without a record while Temporal was away",
		change: unrecordedDuring("temporal", 503),
		rules:  []string{"receipt unrecorded"},
		says:   "nothing was killed from its arrival to its record",
	},
	{
		name:   "an attempt that began while Postgres was away",
		change: func(w *world) { w.receive("fourth to healthy", 112, 200) },
		rules:  []string{"receipt unrecorded", "repeated", "duplicates"},
		says:   "nothing was killed from its arrival to its record",
	},
	{
		name:   "no kill",
		change: func(w *world) { w.in.Kills = nil },
		rules:  []string{"receipt unrecorded", "repeated", "duplicates"},
		says:   "nothing was killed",
	},
}
