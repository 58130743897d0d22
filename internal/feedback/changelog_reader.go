package feedback

import (
	"earshot/ent/db"
	"earshot/ent/db/changelogentry"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
)

// listedEntry is a changelog entry.
type listedEntry struct {
	db.ChangelogEntry
	page.Extent
}

// entryPages reads pages of changelog entries.
var entryPages = page.NewReader[listedEntry, predicate.ChangelogEntry](changelogentry.Table, changelogentry.Columns,
	[]string{changelogentry.FieldBodyText, changelogentry.FieldBodyJSON})
