// Package migrations holds the SQL that builds the database, oldest first, in
// the format of goose. `make migration name=…` writes the next file from what
// changed in ent/schema; a migration that has been released is never edited.
package migrations

import "embed"

// FS holds the migrations.
//
//go:embed *.sql
var FS embed.FS
