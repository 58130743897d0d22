// Package architecture has the list of all packages. Its tests enforce the imports of the list, and the
// recipes of docs/adding.md.
package architecture

// Package is an entry of the list.
type Package struct {
	// Path is below the module. If it ends in /..., the entry also stands for all packages below it.
	Path string
	// Owns describes the package's purpose, as a line of docs/architecture.md. An empty one has no line.
	Owns string
	// MayImport are the packages of this module that the package may import, without its tests.
	MayImport []string
}

// Layer is a part of the list.
type Layer struct {
	Name     string
	Packages []Package
}

// Layers is the list of all packages. A new package needs an entry. `make generate` writes the list in
// docs/architecture.md from it.
var Layers = []Layer{
	{"Program", []Package{
		{"cmd/...", "commands of the program: flags and output", []string{"..."}},
		{"internal/app", "list of the parts below the edges, for the program and the tests", []string{
			"dispatch", "internal/access", "internal/backfill", "internal/change", "internal/contacts", "internal/delivery",
			"internal/feedback", "internal/migrate", "internal/postgres", "internal/privacy", "internal/publicactions", "internal/ratelimit",
			"internal/subscribers", "internal/telemetry", "internal/webhooks", "internal/widget",
		}},
	}},
	{"Edges: they import features and the rows of `ent/db`, but no SQL and no Temporal", []Package{
		{"api", "HTTP: middleware, handlers, mapping of errors to statuses", []string{
			"api/contract", "api/gen", "ent/db", "internal/access", "internal/change", "internal/clientaddr", "internal/config",
			"internal/contacts", "internal/etag", "internal/feedback", "internal/guide", "internal/keyring", "internal/memory",
			"internal/page", "internal/privacy", "internal/problem", "internal/publicactions", "internal/publicid", "internal/ratelimit",
			"internal/subscribers", "internal/telemetry", "internal/webhooks", "internal/widget",
		}},
		{"api/contract", "checks requests against `openapi.yaml`", []string{"internal/jsonscan", "internal/problem"}},
		{"api/gen", "", nil},
		{"internal/keyring", "remembers valid API keys for a moment", []string{"internal/access", "internal/change"}},
		{"docs/api", "text of the API guide", nil},
		{"internal/guide", "pages of the API guide, and their search", []string{"docs/api"}},
		{"web", "public boards at `/b/`, the widget at `/w/`, forms of end-users", []string{
			"api", "ent/db", "internal/access", "internal/change", "internal/config", "internal/etag", "internal/feedback",
			"internal/memory", "internal/page", "internal/problem", "internal/publicactions", "internal/publicid", "internal/ratelimit",
			"internal/subscribers", "internal/telemetry", "internal/widget", "web/markup", "web/messages", "web/pagecache", "web/palette",
			"web/preview",
		}},
		{"web/markup", "HTML from text that people write", []string{"web/messages", "web/pagecache"}},
		{"web/messages", "texts in English and German", []string{"internal/problem"}},
		{"web/pagecache", "limits the cost of anonymous readers", []string{"internal/inflight", "internal/memory"}},
		{"web/palette", "readable colours near an organization's colour", nil},
		{"web/preview", "Open Graph pictures", []string{"web/palette"}},
		// It knows operations only through the contract.
		{"mcp", "18 agent tools at `/mcp`, and the bridge `earshot mcp`", []string{"api", "internal/jsonscan", "internal/problem"}},
	}},
	{"Durable jobs", []Package{
		{"workflows", "deterministic workflow code and wire names", []string{"activities", "internal/publicid"}},
		{"activities", "side effects of workflows", []string{
			"internal/backfill", "internal/batch", "internal/change", "internal/delivery", "internal/delivery/fairness",
			"internal/failpoint", "internal/feedback", "internal/jobs", "internal/mail", "internal/postgres", "internal/privacy",
			"internal/problem", "internal/publicactions", "internal/publicid", "internal/ratelimit", "internal/retention", "internal/seal",
			"internal/send", "internal/subscribers", "internal/telemetry", "internal/webhooks",
		}},
		{"dispatch", "Temporal's client: starts, signals, queries, schedules", []string{
			"activities", "internal/change", "internal/config", "internal/delivery/fairness", "internal/failpoint", "internal/jobs",
			"internal/publicid", "internal/telemetry", "workflows",
		}},
		{"worker", "task queues, sizes, startup and draining", []string{
			"activities", "dispatch", "internal/config", "internal/machine", "internal/mail", "internal/postgres", "internal/seal",
			"internal/searchattributes", "internal/send", "internal/telemetry", "workflows",
		}},
		{"internal/jobs", "starts and signals of durable jobs, as values", []string{"internal/publicid"}},
		{"internal/searchattributes", "registers Temporal search attributes", nil},
	}},
	{"Features: they import no edge, `dispatch` or `workflows`", []Package{
		{"internal/feedback", "boards, posts, votes, comments, tags, changelog", []string{
			"ent/db/...", "internal/change", "internal/config", "internal/contacts", "internal/event", "internal/jobs", "internal/page",
			"internal/postgres", "internal/problem", "internal/publicid", "internal/slug", "internal/wordlist",
		}},
		{"internal/contacts", "contacts, traits, identify", []string{
			"ent/db/...", "internal/batch", "internal/change", "internal/config", "internal/event", "internal/metadata", "internal/page",
			"internal/postgres", "internal/problem", "internal/publicid",
		}},
		{"internal/publicactions", "votes, posts and comments of end-users: confirmation by e-mail, moderation", []string{
			"ent/db/...", "internal/change", "internal/config", "internal/contacts", "internal/failpoint", "internal/feedback",
			"internal/jobs", "internal/page", "internal/postgres", "internal/problem", "internal/publicid", "internal/ratelimit",
			"internal/seal", "internal/subscribers", "internal/wordlist",
		}},
		{"internal/subscribers", "e-mails to end-users: recipients, digests, choices, bounces", []string{
			"ent/db/...", "internal/change", "internal/config", "internal/contacts", "internal/jobs", "internal/page", "internal/postgres",
			"internal/problem", "internal/publicid", "internal/ratelimit",
		}},
		// It reads and erases all data of a person, across the other features.
		{"internal/privacy", "export and erasure of a person", []string{
			"ent/db/...", "internal/access", "internal/change", "internal/contacts", "internal/event", "internal/failpoint", "internal/jobs",
			"internal/page", "internal/postgres", "internal/problem", "internal/publicid", "internal/retention", "internal/seal",
		}},
		{"internal/backfill", "contacts from activity before the opt-in existed", []string{
			"ent/db/...", "internal/change", "internal/contacts", "internal/jobs", "internal/postgres", "internal/problem",
			"internal/publicid", "internal/seal",
		}},
		{"internal/webhooks", "webhooks, deliveries, replays, recoveries, feed of events", []string{
			"ent/db/...", "internal/batch", "internal/change", "internal/config", "internal/event", "internal/failpoint",
			"internal/inflight", "internal/jobs", "internal/page", "internal/postgres", "internal/problem", "internal/publicid",
			"internal/seal", "internal/send", "webhook",
		}},
		{"internal/delivery", "rows of attempts: claim, record, put off, throttle", []string{
			"internal/postgres", "internal/publicid", "internal/telemetry",
		}},
		{"internal/delivery/fairness", "shares of slots, queue and memory, without I/O", []string{
			"internal/change", "internal/inflight", "internal/memory", "internal/publicid", "internal/send", "webhook",
		}},
		{"internal/retention", "removes old rows", []string{"internal/change", "internal/postgres", "internal/publicid"}},
		{"internal/access", "organizations, members, roles, API keys", []string{
			"ent/db/...", "internal/batch", "internal/change", "internal/page", "internal/postgres", "internal/problem", "internal/publicid",
			"internal/wordlist",
		}},
		{"internal/widget", "origins, secrets and tokens of the widget", []string{
			"ent/db/...", "internal/access", "internal/change", "internal/contacts", "internal/page", "internal/postgres",
			"internal/problem", "internal/publicid", "internal/seal",
		}},
	}},
	{"Mechanisms: they know no feature", []Package{
		{"internal/change", "transaction of a use case, its events and deliveries, lock order, audit trail, port `Dispatcher`", []string{
			"ent/db/...", "internal/batch", "internal/config", "internal/event", "internal/failpoint", "internal/jobs", "internal/postgres",
			"internal/problem", "internal/publicid", "internal/seal", "internal/telemetry",
		}},
		{"internal/page", "cursors, page sizes, search in lists", []string{
			"internal/memory", "internal/postgres", "internal/problem", "internal/publicid",
		}},
		{"internal/ratelimit", "token buckets of keys, networks, addresses and e-mails", []string{
			"ent/db/...", "internal/batch", "internal/config", "internal/postgres", "internal/publicid",
		}},
		{"internal/postgres", "pool, transactions, Ent client, organization scope", []string{
			"ent/db/...", "internal/config", "internal/inflight", "internal/publicid", "internal/telemetry",
		}},
		{"internal/migrate", "applies migrations, checks the schema", []string{"ent/migrations", "internal/postgres"}},
		// No program of the service links it.
		{"internal/migrate/authoring", "writes migrations, and checks the rules for them", []string{
			"ent/db/...", "internal/migrate", "internal/postgres",
		}},
		{"ent", "", nil},
		{"ent/schema", "tables, as Ent declares them", []string{"internal/publicid"}},
		{"ent/db/...", "generated by Ent", []string{"ent/db/...", "ent/schema", "internal/publicid"}},
		{"ent/migrations", "migrations as SQL", nil},
		{"ent/generate", "", nil},
		{"ent/newmigration", "", []string{"ent/migrations", "internal/migrate", "internal/migrate/authoring", "internal/postgres"}},
		{"internal/event", "event catalogue and payloads", []string{"internal/publicid"}},
		{"internal/send", "one HTTP request to a receiver", []string{"webhook"}},
		{"internal/mail", "one e-mail, by SMTP or into a directory", []string{"internal/config"}},
		{"internal/batch", "joins concurrent calls into one", nil},
		{"internal/inflight", "limits work in flight per key", nil},
		{"internal/memory", "memory budget of a process", nil},
		{"internal/machine", "load of the machine or container", nil},
		{"internal/clientaddr", "address of the client behind proxies", nil},
		{"internal/etag", "ETags and conditional requests", nil},
		{"internal/metadata", "`metadata` object of a contact", []string{"internal/problem"}},
		{"internal/jsonscan", "splits valid JSON without copying it", nil},
		{"internal/slug", "readable names in URLs", []string{"internal/problem"}},
		{"internal/wordlist", "finds listed words in texts", nil},
		{"internal/problem", "errors of callers, with codes", nil},
		{"internal/publicid", "typed ids", nil},
		{"internal/seal", "encryption of secrets", nil},
		// webhook: the retry schedule
		{"internal/config", "settings", []string{"webhook"}},
		{"internal/telemetry", "metrics, traces", []string{"internal/config"}},
		// Empty in an ordinary build.
		{"internal/failpoint", "named lines for kills, only with the build tag `failpoints`", nil},
	}},
	{"For receivers and integrators", []Package{
		{"webhook", "signatures and header names, for receivers", nil},
		{"sdk/generate", "generator of the SDKs", nil},
	}},
	{"Development and tests", []Package{
		{"internal/needs", "tools that tests need, and their packages", nil},
		{"internal/devstack", "private Postgres and Temporal for development and tests", []string{"internal/devstack/process", "internal/needs"}},
		{"internal/devstack/process", "", nil},
		{"internal/devstack/withstack", "", []string{"internal/devstack", "internal/needs"}},
		{"internal/devstack/statedir", "", []string{"internal/config", "internal/devstack"}},
		{"internal/devstack/commands", "`earshot up`, `down` and `reset`", []string{
			"ent/db/...", "internal/access", "internal/change", "internal/config", "internal/devstack/...", "internal/migrate", "internal/postgres",
			"internal/problem", "internal/seal", "internal/searchattributes",
		}},
		{"internal/devstack/demo", "", []string{"internal/devstack", "sdk/go", "webhook"}},
		// Tests that need only the servers must not run again after an edit of the service.
		{"internal/testkit", "servers for tests: database, Temporal namespace, receiver", []string{
			"ent/migrations", "internal/devstack", "internal/migrate", "internal/postgres", "internal/searchattributes",
			"internal/telemetry", "internal/testkit/tier", "webhook",
		}},
		{"internal/testkit/fixture", "rows for tests of SQL", []string{
			"ent/db/...", "internal/contacts", "internal/delivery", "internal/postgres", "internal/publicid", "internal/ratelimit",
			"internal/testkit",
		}},
		// Tests that don't import the pages, the tools or the worker must not run again after an edit of those.
		{"internal/testkit/apptest", "the running service for tests", []string{
			"api", "dispatch", "ent/db/...", "internal/access", "internal/app", "internal/backfill", "internal/change", "internal/config",
			"internal/event", "internal/postgres", "internal/publicactions", "internal/publicid", "internal/send", "internal/telemetry",
			"internal/testkit",
		}},
		{"internal/testkit/production", "servers as in production", []string{"internal/devstack", "internal/devstack/process"}},
		{"internal/testkit/tier/...", "marks slow tests", []string{"internal/needs", "internal/testkit/tier"}},
		{"internal/architecture", "this list, and the tests of it and of [adding.md](adding.md)", nil},
		{"docs/generate", "parts of the docs that follow from code", []string{"internal/architecture", "internal/config", "internal/problem"}},
		{"bench/...", "measurements under load", []string{"..."}},
		{"e2e/...", "tests of the built program; kills (`make faults`)", []string{"..."}},
		// The checks of the service contain no code of the service.
		{"e2e/faults/ledger", "", nil},
		{"e2e/faults/hostile", "", nil},
		{"e2e/faults/outside", "", nil},
		{"e2e/faults/receiver", "", []string{"e2e/faults/ledger"}},
		{"e2e/faults/check", "", []string{"e2e/faults/ledger"}},
	}},
}
