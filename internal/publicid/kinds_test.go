package publicid_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// anyID has the methods of every kind of id. anyPointer adds those of its pointer.
type anyID interface {
	comparable
	fmt.Stringer
	driver.Valuer
	encoding.TextMarshaler
}

type anyPointer[T any] interface {
	*T
	sql.Scanner
	encoding.TextUnmarshaler
}

// kind is one kind of id, with checks that are bound to its type.
type kind struct {
	prefix    string
	text      func() string
	roundTrip func(t *testing.T)
	refuses   func(t *testing.T, text string)
}

func kindOf[T anyID, P anyPointer[T]](prefix string, fresh func() T) kind {
	return kind{
		prefix: prefix,
		text:   func() string { return fresh().String() },
		roundTrip: func(t *testing.T) {
			id := fresh()
			back, err := publicid.Parse[T, P](id.String())
			require.NoError(t, err)
			require.Equal(t, id, back)

			value, err := id.Value()
			require.NoError(t, err)
			var scanned T
			require.NoError(t, P(&scanned).Scan(value))
			require.Equal(t, id, scanned)
		},
		refuses: func(t *testing.T, text string) {
			_, err := publicid.Parse[T, P](text)
			require.ErrorIs(t, err, publicid.ErrMalformed)
		},
	}
}

// kinds lists all kinds with their prefixes.
var kinds = []kind{
	kindOf("org", publicid.NewOrganization),
	kindOf("usr", publicid.NewUser),
	kindOf("key", publicid.NewAPIKey),
	kindOf("brd", publicid.NewBoard),
	kindOf("tag", publicid.NewTag),
	kindOf("pst", publicid.NewPost),
	kindOf("vot", publicid.NewVote),
	kindOf("cmt", publicid.NewComment),
	kindOf("chg", publicid.NewChangelogEntry),
	kindOf("ctc", publicid.NewContact),
	kindOf("whk", publicid.NewWebhook),
	kindOf("evt", publicid.NewEvent),
	kindOf("dlv", publicid.NewDelivery),
	kindOf("att", publicid.NewAttempt),
	kindOf("ixn", publicid.NewInteraction),
	kindOf("rcv", publicid.NewRecovery),
	kindOf("aud", publicid.NewAuditEntry),
	kindOf("dsr", publicid.NewSubjectRequest),
	kindOf("rec", publicid.NewSubjectRecord),
	kindOf("wgs", publicid.NewWidgetSecret),
	kindOf("bkf", publicid.NewContactBackfill),
	kindOf("bka", publicid.NewBackfillAddress),
	kindOf("sub", publicid.NewSubmission),
	kindOf("sup", publicid.NewSubscriberUpdate),
	kindOf("sml", publicid.NewSubscriberMail),
	kindOf("sbs", publicid.NewSubscription),
}

func TestEveryKindSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.prefix, func(t *testing.T) {
			t.Parallel()
			k.roundTrip(t)
		})
	}
}

func TestEveryIDSaysItsKind(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		require.Regexp(t, "^"+k.prefix+"_[0-9a-hjkmnp-tv-z]{26}$", k.text())
	}
}

func TestAnIDOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, other := range kinds {
			if other.prefix != k.prefix {
				k.refuses(t, other.text())
			}
		}
	}
}

func TestAnInvalidIDOrOneOfAnotherKindIsReadAsZero(t *testing.T) {
	t.Parallel()
	id := publicid.NewPost()
	require.Equal(t, id, publicid.Read[publicid.Post](id.String()))
	for _, text := range []string{"", "nonsense", id.String() + "0", publicid.NewBoard().String()} {
		require.True(t, publicid.Read[publicid.Post](text).IsZero(), text)
	}
}
