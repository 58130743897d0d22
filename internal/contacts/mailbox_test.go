package contacts_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/contacts"
)

func TestTheSpellingsOfAMailboxHaveOnePlainSpelling(t *testing.T) {
	t.Parallel()
	for plain, spellings := range map[string][]string{
		"quentin@gmail.com":        {"Q.u.entin@gmail.com", "quentin+news@googlemail.com", " quentin@GoogleMail.com ", "ｑuentin@gmail.com"},
		"quentin@outlook.com":      {"quentin+news@outlook.com"},
		"quentin@icloud.com":       {"quentin@me.com", "quentin@mac.com", "quentin+a@icloud.com"},
		"quentinw@proton.me":       {"quentin.w@protonmail.com", "quentin-w+x@pm.me", "Quentin_W@protonmail.ch"},
		"quentin@yahoo.com":        {"quentin-shop@yahoo.com", "quentin+a@yahoo.com"},
		"quentin@fastmail.com":     {"quentin+news@fastmail.com", "news@quentin.fastmail.com"},
		"quentin-w@yandex.ru":      {"quentin.w@ya.ru", "quentin-w@yandex.com"},
		"quentin@example.com":      {"quentin+a@example.com", "quentin+a+b@EXAMPLE.com"},
		"quentin@xn--bcher-kva.de": {"quentin@bücher.de", "quentin@BÜCHER.de", "quentin@xn--bcher-kva.de"},
	} {
		require.Equal(t, plain, contacts.Mailbox(plain))
		for _, spelling := range spellings {
			require.Equal(t, plain, contacts.Mailbox(spelling), spelling)
		}
	}
}

func TestAddressesThatMayBeTwoMailboxesStayTwo(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"quentin.w@example.com", "quentin.w@outlook.com", "quentin-w@outlook.com", "quentin-w@gmail.com", "quentin.w@yahoo.com",
		"quentin.w@icloud.com", "quentin@mail.gmail.com", "quentin@gmail.com.example.com", "quentin@live.com", "quentin@fastmail.fm",
		"...@gmail.com", "+a@example.com", "-a@yahoo.com", "nobody", "",
	} {
		require.Equal(t, address, contacts.Mailbox(address))
	}
}
