package seeding

import (
	"context"
	"strconv"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

var (
	firstNames = []string{"ada", "bo", "ines", "dana", "kim", "noor", "lars", "mei", "omar", "petra", "quinn", "rosa"}
	lastNames  = []string{"marques", "reyes", "okafor", "lindgren", "tanaka", "novak", "haddad", "silva", "moreau", "fischer", "costa"}
)

// nameOf returns the name and the e-mail address of contact n in lower case, as searches match
// them.
func nameOf(n int64) (first, last, email string) {
	first, last = firstNames[n%12], lastNames[n/12%11]
	if n%10_007 == 0 {
		last += "zyx" // a rare name
	}
	number := strconv.FormatInt(n, 10)
	return first, last, first + "." + last + number + "@company" + strconv.FormatInt(n%5000, 10) + ".example.com"
}

func capital(s string) string { return string(s[0]-'a'+'A') + s[1:] }

func (f *filling) contacts(ctx context.Context) error {
	columns := []string{
		"id", "organization_id", "created_at", "updated_at", "external_user_id", "email", "name", "plan", "mrr_cents", "currency",
		"metadata", "source", "consent_basis", "first_seen_at", "last_seen_at",
	}
	return f.copy(ctx, "contacts", columns, 1, f.size.Contacts, func(n int64) []any {
		var plan, revenue, currency any
		switch {
		case n%100_000 == 0:
			plan = "enterprise"
		case n%10 < 7:
			plan = "free"
		case n%10 < 9:
			plan = "team"
		}
		if n%10 >= 7 {
			revenue, currency = n*31%90_000, "EUR"
		}
		source, consent := "identify", "sdk_identify"
		if n%11 == 0 {
			source, consent = "admin", "admin_created"
		}
		first, last, email := nameOf(n)
		return []any{
			id(n, forContact), organizationID, at(n), at(n + n*7919%500_000), "user-" + strconv.FormatInt(n, 10), email,
			capital(first) + " " + capital(last), plan, revenue, currency, `{"role":"analyst","seats":12}`, source, consent,
			at(n), at(n + n*104_729%500_000),
		}
	})
}

// contactDocuments writes the same rows as the trigger: one row for each contact, with the numbers
// of all substrings of one to three characters. There are only a few distinct substrings, so one
// query returns all their numbers.
func (f *filling) contactDocuments(ctx context.Context) error {
	numbers := map[string]int32{}
	for n := range int64(f.size.Contacts) {
		first, last, email := nameOf(n + 1)
		for _, document := range []string{email, first + " " + last} {
			grams(document, func(gram string) { numbers[gram] = 0 })
		}
	}
	if err := f.number(ctx, numbers); err != nil {
		return err
	}
	return f.copy(ctx, "contact_documents", []string{"contact_id", "organization_id", "grams"}, 1, f.size.Contacts, func(n int64) []any {
		first, last, email := nameOf(n)
		all := make([]int32, 0, 3*(len(email)+len(first)+len(last)))
		for _, document := range []string{email, first + " " + last} {
			grams(document, func(gram string) { all = append(all, numbers[gram]) })
		}
		return []any{id(n, forContact), organizationID, all}
	})
}

func grams(document string, found func(gram string)) {
	for size := 1; size <= 3; size++ {
		for i := 0; i+size <= len(document); i++ {
			found(document[i : i+size])
		}
	}
}

func (f *filling) number(ctx context.Context, numbers map[string]int32) error {
	all := make([]string, 0, len(numbers))
	for gram := range numbers {
		all = append(all, gram)
	}
	rows, err := f.tx.Query(ctx, "SELECT g, gram_number(g, $2) FROM unnest($1::text[]) AS g", all, organizationID)
	if err != nil {
		return errors.Wrap(err, "number what contacts are searched by")
	}
	var gram string
	var number int32
	_, err = pgx.ForEachRow(rows, []any{&gram, &number}, func() error {
		numbers[gram] = number
		return nil
	})
	if err != nil {
		return errors.Wrap(err, "number what contacts are searched by")
	}
	return nil
}
