package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
)

func TestADisposableDomainIsMeantWithAllBelowIt(t *testing.T) {
	t.Parallel()
	c, err := config.Load(with("EARSHOT_DISPOSABLE_DOMAINS=Mailinator.example, throw.away.example\nbücher.example\r\n"))
	require.NoError(t, err)
	for name, disposable := range map[string]bool{
		"mailinator.example": true, "MAILINATOR.EXAMPLE": true, "mailinator.example.": true, "a.b.mailinator.example": true,
		"throw.away.example": true, "xn--bcher-kva.example": true, "BÜCHER.example": true,
		"example": false, "away.example": false, "notmailinator.example": false, "mailinator.example.org": false, "": false,
	} {
		require.Equal(t, disposable, c.DisposableDomains.Has(name), name)
	}
	require.False(t, config.Domains{}.Has("mailinator.example"))
	require.Contains(t, c.LogValue().String(), "EARSHOT_DISPOSABLE_DOMAINS=3 domains")
}

func TestAListOfDomainsWithSomethingElseInItIsRefused(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"mailinator", "# a comment", "a@b.example", "https://b.example", "a..example"} {
		_, err := config.Load(with("EARSHOT_DISPOSABLE_DOMAINS=" + list))
		require.ErrorContains(t, err, "EARSHOT_DISPOSABLE_DOMAINS: has ", list)
	}
}
