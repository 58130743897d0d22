package contacts

import (
	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
)

// ListedContact is a contact.
type ListedContact struct {
	db.Contact
	page.Extent
}

// contactPages reads pages of contacts.
var contactPages = page.NewReader[ListedContact, predicate.Contact](contact.Table, contact.Columns, []string{contact.FieldMetadata})
