package contacts_test

import (
	"strings"
	"testing"

	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/internal/contacts"
	"earshot/internal/problem"
)

// A client can send back the traits that it read: they are accepted again and stay as they are.
func TestTraitsThatWereAcceptedAreAcceptedAgain(t *testing.T) {
	t.Parallel()
	check := func(t require.TestingT, address, name string) {
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
	}
	for name, text := range map[string]string{
		"capitals":                   "Ada@Example.com",
		"spaces around":              " a@b\u00a0",
		"capitals that become two":   "İ@ẞ.example",
		"a quoted local part":        "\"a b\"@x.example",
		"an address of a machine":    "a@[127.0.0.1]",
		"longer in bytes than limit": "x" + strings.Repeat("é", 330) + "@y",
		"letters of three cases":     "ǅ@Ω",
		"a separator of lines":       "\u2028",
	} {
		t.Run(name, func(t *testing.T) { check(t, text, text) })
	}
	letters := rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("aA1.-+\"\\ \u00a0\u2028İẞǅΩ[]()<>,:;@")))
	part := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9.+-]{1,20}`), rapid.StringOfN(letters, 1, 20, -1))
	rapid.Check(t, func(t *rapid.T) {
		address := part.Draw(t, "local part") + "@" + part.Draw(t, "domain")
		check(t, address, rapid.StringOf(letters).Draw(t, "name"))
	})
}
