package contacts

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/metadata"
	"earshot/internal/problem"
)

// The specification's limits for a contact.
const (
	maxExternalUserID = 255
	maxContactName    = 200
	maxContactPlan    = 100
	maxMRRCents       = 100_000_000
)

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

// Traits are the traits of a contact in a request. A member that isn't specified was left out of
// the request, which differs from null.
type Traits struct {
	Email    nullable.Nullable[string]
	Name     nullable.Nullable[string]
	Plan     nullable.Nullable[string]
	MRRCents nullable.Nullable[int64]
	Currency nullable.Nullable[string]
	// Metadata is nil if it was left out.
	Metadata json.RawMessage
}

// traits is the table of all traits. Creation, identify, PATCH and the payload of
// contact.updated use it.
var traits = []trait{
	scalar[string]{
		"email", contact.FieldEmail, func(t *Traits) *nullable.Nullable[string] { return &t.Email },
		func(c *db.Contact) **string { return &c.Email }, normalEmail, (*problem.Fields).Email,
	},
	scalar[string]{
		"name", contact.FieldName, func(t *Traits) *nullable.Nullable[string] { return &t.Name },
		func(c *db.Contact) **string { return &c.Name }, strings.TrimSpace, upTo(maxContactName),
	},
	scalar[string]{
		"plan", contact.FieldPlan, func(t *Traits) *nullable.Nullable[string] { return &t.Plan },
		func(c *db.Contact) **string { return &c.Plan }, strings.TrimSpace, upTo(maxContactPlan),
	},
	scalar[int64]{
		"mrrCents", contact.FieldMrrCents, func(t *Traits) *nullable.Nullable[int64] { return &t.MRRCents },
		func(c *db.Contact) **int64 { return &c.MrrCents }, asItIs[int64], revenue,
	},
	// Check requires mrrCents and currency together. Both are therefore null or neither is, and a
	// fill sets both or neither.
	scalar[string]{
		"currency", contact.FieldCurrency, func(t *Traits) *nullable.Nullable[string] { return &t.Currency },
		func(c *db.Contact) **string { return &c.Currency }, asItIs[string], currency,
	},
	document{},
}

// trait has the operations on one trait of any type. A nil value is null.
type trait interface {
	// key returns the trait's name in requests and events, and its column.
	key() (name, column string)
	// check normalizes the request's value and validates it.
	check(bad *problem.Fields, in *Traits)
	// told returns the value in a checked request. Specified is false if it was left out.
	told(in *Traits) (value any, specified bool)
	// known returns the value in a row.
	known(c *db.Contact) any
	// filled returns the value that identify stores, given the known and the new value.
	filled(known, told any) (any, error)
	same(a, b any) bool
}

// Check normalizes the traits of a request and validates them.
func (t *Traits) Check(bad *problem.Fields) {
	for _, tr := range traits {
		tr.check(bad, t)
	}
	if t.MRRCents.IsSpecified() != t.Currency.IsSpecified() || t.MRRCents.IsNull() != t.Currency.IsNull() {
		bad.Add("mrrCents", "paired", "mrrCents and currency must be set together, or both left out or null")
	}
}

// told returns the values in a request by column, without nulls.
func (t *Traits) told() map[string]any {
	all := map[string]any{}
	for _, tr := range traits {
		if value, _ := tr.told(t); value != nil {
			_, column := tr.key()
			all[column] = value
		}
	}
	return all
}

// put writes a trait's value, or null. With the e-mail address it also writes its hash.
func (s *Service) put(m *db.ContactMutation, column string, value any) error {
	if column == contact.FieldEmail {
		if address, ok := value.(string); ok {
			m.SetEmailHash(s.emailHash(address))
		} else {
			m.ClearEmailHash()
		}
	}
	var err error
	if value == nil {
		err = m.ClearField(column)
	} else {
		err = m.SetField(column, value)
	}
	if err != nil {
		return errors.Wrapf(err, "set %s", column)
	}
	return nil
}

// mergeTraits returns the changes of a contact's traits by their names. Becomes returns the next value of a
// trait. Specified is false if the trait stays as it is.
func mergeTraits(old *db.Contact, becomes func(t trait) (value any, specified bool, err error)) (map[string]event.Change, error) {
	changes := map[string]event.Change{}
	for _, t := range traits {
		next, specified, err := becomes(t)
		if err != nil {
			return nil, err
		}
		known := t.known(old)
		if specified && !t.same(known, next) {
			name, _ := t.key()
			changes[name] = event.Change{From: known, To: next}
		}
	}
	return changes, nil
}

// putTraits writes the changes of traits into a mutation.
func (s *Service) putTraits(m *db.ContactMutation, changes map[string]event.Change) error {
	for _, t := range traits {
		name, column := t.key()
		if c, changed := changes[name]; changed {
			if err := s.put(m, column, c.To); err != nil {
				return err
			}
		}
	}
	return nil
}

// scalar is a trait with a single value.
type scalar[T comparable] struct {
	name, column string
	in           func(*Traits) *nullable.Nullable[T]
	of           func(*db.Contact) **T
	normal       func(T) T
	valid        func(bad *problem.Fields, name string, value T)
}

func (s scalar[T]) key() (name, column string) { return s.name, s.column }

func (s scalar[T]) check(bad *problem.Fields, in *Traits) {
	member := s.in(in)
	change.Given(*member, func(v T) {
		member.Set(s.normal(v))
		s.valid(bad, s.name, s.normal(v))
	})
}

func (s scalar[T]) told(in *Traits) (any, bool) {
	return orNil(change.Value(*s.in(in))), s.in(in).IsSpecified()
}

func (s scalar[T]) known(c *db.Contact) any { return orNil(*s.of(c)) }

// Identify never overwrites (specification, Identify rule 2).
func (s scalar[T]) filled(known, told any) (any, error) {
	if known != nil {
		return known, nil
	}
	return told, nil
}

func (s scalar[T]) same(a, b any) bool { return a == b }

// document is the metadata. It is never null, and identify fills it key by key.
type document struct{}

func (document) key() (name, column string) { return "metadata", contact.FieldMetadata }

func (document) check(bad *problem.Fields, in *Traits) {
	if in.Metadata == nil {
		return
	}
	m, err := metadata.Parse(in.Metadata)
	if err != nil {
		bad.Add("metadata", "type", "must be an object")
		return
	}
	m.Check(bad)
	in.Metadata = m.Text()
}

func (document) told(in *Traits) (any, bool) {
	if in.Metadata == nil {
		return nil, false
	}
	return in.Metadata, true
}

func (document) known(c *db.Contact) any { return c.Metadata }

func (document) filled(known, told any) (any, error) {
	old, err := metadata.Parse(known.(json.RawMessage))
	if err != nil {
		return nil, errors.Wrap(err, "read the stored metadata")
	}
	more, err := metadata.Parse(told.(json.RawMessage))
	if err != nil {
		return nil, errors.Wrap(err, "read the metadata")
	}
	if next, changed := old.Filled(more); changed {
		return next.Text(), nil
	}
	return known, nil
}

func (document) same(a, b any) bool { return change.SameJSON(a.(json.RawMessage), b.(json.RawMessage)) }

func orNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func asItIs[T any](v T) T { return v }

func upTo(high int) func(bad *problem.Fields, name, value string) {
	return func(bad *problem.Fields, name, value string) { bad.Text(name, value, 1, high) }
}

func revenue(bad *problem.Fields, name string, cents int64) {
	if cents < 0 {
		bad.Add(name, "minimum", "must be at least 0")
	}
	if cents > maxMRRCents {
		bad.Add(name, "maximum", "must be at most %d", maxMRRCents)
	}
}

func currency(bad *problem.Fields, name, code string) {
	if !currencyPattern.MatchString(code) {
		bad.Add(name, "pattern", "must be three upper-case letters (ISO 4217)")
	}
}
