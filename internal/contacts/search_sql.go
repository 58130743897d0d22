package contacts

import (
	"context"

	"entgo.io/ent/dialect/sql"

	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// contactMatches selects the contacts whose e-mail address or name contains a text, without regard to
// case.
func contactMatches(q string) predicate.Contact {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(position(lower(").Arg(q).WriteString(") IN lower(").Ident(s.C(contact.FieldEmail)).
				WriteString(")) > 0 OR position(lower(").Arg(q).WriteString(") IN lower(").Ident(s.C(contact.FieldName)).
				WriteString(")) > 0)")
		}))
	}
}

const contactsHoldingSQL = `
WITH found AS MATERIALIZED (SELECT contact_id FROM contact_documents WHERE grams @> search_grams(lower($2), $1::uuid))
SELECT contact_id FROM found LIMIT $3`

// contactsHolding asks the index for the contacts of an organization that may
// match, in no order.
func contactsHolding(ctx context.Context, s *postgres.DB, q string, limit int) (postgres.UuidArray, error) {
	return page.Holding(ctx, s, contactsHoldingSQL, q, limit)
}

// contactRevenue is the first sort key of contacts. Contacts without revenue come last.
const contactRevenue = `coalesce(contacts.mrr_cents, -1)`

// byRevenue is the order of contacts by falling revenue.
const byRevenue = contactRevenue + ` DESC, contacts.id DESC`

// contactsBefore selects the contacts that follow a contact in the order of falling revenue.
func contactsBefore(revenue int64, last publicid.Contact) predicate.Contact {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(" + contactRevenue + ", ").Ident(s.C(contact.FieldID)).
				WriteString(") < (").Arg(revenue).WriteString(", ").Arg(last).WriteString(")")
		}))
	}
}
