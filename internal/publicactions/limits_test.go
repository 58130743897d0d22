package publicactions_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
)

var (
	theirs = netip.MustParsePrefix("198.51.100.7/32")
	ours   = netip.MustParsePrefix("203.0.113.7/32")
)

// letters requests a link from a network once for each spelling, and counts the e-mails.
func (s *stage) letters(t *testing.T, from netip.Prefix, spellings ...string) (sent int) {
	t.Helper()
	for _, email := range spellings {
		require.NoError(t, s.Ask(s.ctx, publicactions.Sender{Email: email, Name: "Quentin", From: from},
			publicactions.Wanted{Kind: publicactions.Vote, Post: s.post},
			publicactions.Mailing{Subject: "Confirm", Text: "Open {link} please", Page: "https://feedback.example.com/confirm"}))
		var id publicid.Interaction
		s.query(t, "SELECT id FROM interactions WHERE organization_id = $1 ORDER BY id DESC LIMIT 1", &id)
		letter, err := s.Letter(t.Context(), id)
		require.NoError(t, err)
		if letter != nil {
			sent++
		}
	}
	return sent
}

func TestAMailboxGetsSixLinksAnHourHoweverItsAddressIsSpelled(t *testing.T) {
	t.Parallel()
	s := newStageAlone(t)
	sent := 0
	for i, email := range []string{
		"abcd@gmail.com", "a.bcd@gmail.com", "ab.cd@gmail.com", "abc.d@gmail.com", "a.b.cd@gmail.com", "a.b.c.d@gmail.com",
		"abcd@googlemail.com", "a.bcd@googlemail.com", "abcd+x@gmail.com", "A.BCD+y@GoogleMail.com",
	} {
		sent += s.letters(t, netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 32), email)
	}
	require.Equal(t, 6, sent)
}

func TestAStrangerDoesntKeepAPersonFromGettingALink(t *testing.T) {
	t.Parallel()
	s := newStageAlone(t)
	const address = "quentin@example.com"
	require.Equal(t, 4, s.letters(t, theirs, address, address, address, address, address, address, address, address))
	require.Equal(t, 1, s.letters(t, ours, address, address, address), "of what is kept for others, each network gets one")
	require.Equal(t, 1, s.letters(t, netip.MustParsePrefix("2001:db8:1:200::/64"), address))
	require.Zero(t, s.letters(t, netip.MustParsePrefix("192.0.2.1/32"), address), "six in all")
	var left int
	s.query(t, "SELECT count(*) FROM interactions WHERE organization_id = $1", &left)
	require.Equal(t, 6, left, "what was too much is gone with the look at it")
	require.Equal(t, 1, s.letters(t, ours, "another@example.com"), "another mailbox")
}

func TestNetworksOfOneHomeAreOne(t *testing.T) {
	t.Parallel()
	s := newStageAlone(t)
	const address = "quentin@example.com"
	sent := 0
	for _, from := range []string{"2001:db8::/64", "2001:db8:0:1::/64", "2001:db8:0:2::/64", "2001:db8:0:ff::/64", "2001:db8:0:3::/64"} {
		sent += s.letters(t, netip.MustParsePrefix(from), address)
	}
	require.Equal(t, 4, sent)
}

func TestTheKnownBrowsersOfANetworkShareALimit(t *testing.T) {
	t.Parallel()
	s := newStageAlone(t)
	retract := func(from netip.Prefix, i int) error {
		return s.Retract(s.ctx, publicactions.Sender{Email: fmt.Sprintf("person%d@example.com", i), Name: "Person", From: from}, s.post)
	}
	// On a slow machine tokens flow in while the limit is used up, so more than 300 may be allowed.
	allowed, refused := 0, error(nil)
	for ; refused == nil && allowed < 600; allowed++ {
		refused = retract(theirs, allowed)
	}
	require.True(t, problem.Is(refused, problem.RateLimited), refused)
	require.Greater(t, allowed, 300)
	require.NoError(t, retract(ours, allowed))
}
