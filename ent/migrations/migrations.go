// Package migrations holds the SQL that builds the database, oldest first, in
// the format of goose. `make migration name=…` writes the next file from what
// changed in ent/schema; a migration that has been released is never edited.
package migrations

import (
	"embed"
	"slices"
)

// FS holds the migrations.
//
//go:embed *.sql
var FS embed.FS

// Effects is what each of their statements locks, reads and writes anew, as
// internal/migration saw it on a real Postgres and writes it down.
//
//go:embed effects.json
var Effects []byte

// beforeRules are the migrations that were released before there were rules for them
// (docs/upgrading.md). They take the time that they take, with locks that requests wait
// for. None is ever added.
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
