package check_test

var eventMutations = []mutation{
	{
		name:   "a delivery was never made",
		change: func(w *world) { unmade(w, "fourth to healthy") },
		rules:  []string{"delivery missing"},
		says:   "(post.created) has no delivery to webhook",
	},
	{
		name:   "a test has no delivery",
		change: func(w *world) { unmade(w, "test to healthy") },
		rules:  []string{"delivery missing"},
		says:   "(webhook.test) has no delivery",
	},
	{
		name: "two deliveries of one event",
		change: func(w *world) {
			w.delivery("again", "first", "healthy", 10)
			w.attempt("again", 1, 10.1, 200)
			w.succeed("again", 10.13)
		},
		rules: []string{"delivery twice"},
		says:  "has 2 deliveries to webhook",
	},
	{
		name: "a delivery to a webhook that doesn't subscribe",
		change: func(w *world) {
			w.exec(`UPDATE webhooks SET events = '["vote.created"]' WHERE id = $1`, w.hooks["dead"])
		},
		rules: []string{"delivery uncalled for"},
		says:  "the webhook doesn't subscribe",
	},
	{
		name:   "a delivery to a webhook that was disabled",
		change: func(w *world) { w.fail(w.deliver("fourth", "dead", 110), 111, "webhook_disabled") },
		rules:  []string{"delivery uncalled for"},
		says:   "the webhook was disabled at 2026-01-01 12:01:40",
	},
	{
		name: "a delivery to a webhook that is younger than the event",
		change: func(w *world) {
			w.exec(`UPDATE webhooks SET created_at = $2 WHERE id = $1`, w.hooks["dead"], at(30))
		},
		rules: []string{"delivery uncalled for"},
		says:  "the event is older than the webhook",
	},
	{
		name:   "a delivery of another type than its event",
		change: delivery("second to dead", `UPDATE deliveries SET event_type = 'vote.created' WHERE id = $1`),
		rules:  []string{"delivery uncalled for", "receipt misdirected"},
		says:   "its type is vote.created",
	},
	{
		name: "a replay of another event",
		change: func(w *world) {
			w.exec(`UPDATE deliveries SET replay_of = $2 WHERE id = $1`,
				w.deliveries["replay"], w.deliveries["second to healthy"])
		},
		rules: []string{"replay"},
		says:  "which is of another event or webhook",
	},
	{
		name:   "a number of an event is missing",
		change: func(w *world) { w.exec(`UPDATE event_sequences SET last = last + 1`) },
		rules:  []string{"event numbers"},
		says:   "of the numbers 1 to ",
	},
	{
		name: "an event has no number",
		change: func(w *world) {
			w.exec(`UPDATE events SET sequence = NULL WHERE sequence = 1`)
			w.exec(`UPDATE event_sequences SET removed = 1`)
		},
		rules: []string{"event numbers"},
		says:  "has no number",
	},
	{
		name: "two events of one post",
		change: func(w *world) {
			w.event("again", 10, "post.created", w.bodies["first"])
			d := w.deliver("again", "healthy", 10)
			w.attempt(d, 1, 10.1, 200)
			w.succeed(d, 10.13)
			w.fail(w.deliver("again", "dead", 10), 101, "webhook_disabled")
		},
		rules: []string{"event twice"},
		says:  "has 2 events",
	},
	{
		name: "a post that was made twice though it has a key",
		change: func(w *world) {
			w.exec(`UPDATE posts SET title = 'Once 7' WHERE id IN ($1, $2)`, w.posts["first"], w.posts["second"])
		},
		rules: []string{"took effect twice"},
		says:  "Once 7 with an Idempotency-Key took effect 2 times",
	},
	{
		name: "two replays of one delivery",
		change: func(w *world) {
			w.delivery("another", "first", "healthy", 131)
			w.exec(`UPDATE deliveries SET replay_of = $2 WHERE id = $1`,
				w.deliveries["another"], w.deliveries["first to healthy"])
			w.attempt("another", 1, 131.1, 200)
			w.succeed("another", 131.13)
		},
		rules: []string{"replay twice"},
		says:  "was replayed 2 times",
	},
	{
		name:   "a recovery that left something out",
		change: func(w *world) { w.recovery("completed", 40) },
		rules:  []string{"replay missing"},
		says:   "has not replayed it",
	},
	{
		name:   "a recovery that stopped",
		change: func(w *world) { w.recovery("stopped", 11) },
		rules:  []string{"recovery"},
		says:   "is stopped",
	},
	{
		name:   "an acknowledged post is gone",
		change: func(w *world) { w.exec(`DELETE FROM posts WHERE id = $1`, w.posts["first"]) },
		rules:  []string{"write lost"},
		says:   "was acknowledged at 2026-01-01 12:00:10.05+00 and has no row",
	},
	{
		name:   "an acknowledged change has no event",
		change: func(w *world) { w.acknowledge("first", "post.status_changed", 30) },
		rules:  []string{"event lost"},
		says:   "was acknowledged 1 times and has 0 events",
	},
	{
		name: "of two acknowledged changes one has no event",
		change: func(w *world) {
			w.acknowledge("first", "post.created", 30)
		},
		rules: []string{"event lost"},
		says:  "was acknowledged 2 times and has 1 events",
	},
}
