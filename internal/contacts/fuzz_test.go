package contacts_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/require"

	"earshot/internal/contacts"
	"earshot/internal/problem"
)

// FuzzTraitsThatWereTakenAreTakenAgain checks that a client can send back the values that it read.
func FuzzTraitsThatWereTakenAreTakenAgain(f *testing.F) {
	for _, text := range []string{
		"Ada@Example.com", " a@b\u00a0", "İ@ẞ.example", "\"a b\"@x.example", "a@[127.0.0.1]", "x" + strings.Repeat("é", 330) + "@y", "ǅ@Ω", "\u2028",
	} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, address, name string) {
		if !utf8.ValidString(address) || !utf8.ValidString(name) {
			return // JSON can't hold it
		}
		traits := contacts.Traits{Email: nullable.NewNullableWithValue(address), Name: nullable.NewNullableWithValue(name), Plan: nullable.NewNullableWithValue(name)}
		var bad problem.Fields
		if traits.Check(&bad); len(bad) > 0 {
			return
		}
		again := contacts.Traits{
			Email: nullable.NewNullableWithValue(traits.Email.MustGet()), Name: nullable.NewNullableWithValue(traits.Name.MustGet()),
			Plan: nullable.NewNullableWithValue(traits.Plan.MustGet()),
		}
		again.Check(&bad)
		require.Empty(t, bad)
		require.Equal(t, traits, again)
	})
}
