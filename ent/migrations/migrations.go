// Package migrations holds the SQL that builds the database, oldest first, in the format of goose.
// `make migration name=…` writes the next file from the changes in ent/schema. A released migration
// is never edited.
package migrations

import (
	"embed"
	"slices"
)

// FS holds the migrations.
//
//go:embed *.sql
var FS embed.FS

// Effects lists the tables that each statement of the migrations locks, reads and rewrites.
// internal/migrate/authoring observes and records them on a real Postgres.
//
//go:embed effects.json
var Effects []byte

// beforeRules are the migrations that were released before the rules for migrations
// (docs/upgrading.md). They may hold locks that block requests for any length of time. The list
// never grows.
var beforeRules = []string{
	"20261121000000_initial.sql",
	"20261121094933_lists_and_search.sql",
	"20261121130825_streaks_and_recoveries.sql",
	"20261121160053_seal_webhook_urls.sql",
	"20261121201700_lighter_search_triggers.sql",
	"20261122053448_one_recovery_a_webhook.sql",
	"20261122054022_hash_members_addresses.sql",
}

// BeforeRules reports whether a migration is older than the rules.
func BeforeRules(name string) bool { return slices.Contains(beforeRules, name) }
