package mail_test

import (
	"log/slog"
	netmail "net/mail"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"earshot/internal/config"
	"earshot/internal/mail"
)

func TestTheServiceMailsAsItsSettingsSay(t *testing.T) {
	t.Parallel()
	dir, office := t.TempDir(), open(t, options{encryption: config.Plain})
	from := config.MailAddress{Name: "Feedback", Address: "feedback@example.org"}
	for _, c := range []config.Config{{MailDir: dir, MailFrom: from}, {SMTP: office.server, MailFrom: from}} {
		var m *mail.Mailer
		app := fx.New(fx.NopLogger, fx.Supply(c, slog.New(slog.DiscardHandler)), mail.Module, fx.Populate(&m))
		require.NoError(t, app.Err())
		require.NoError(t, m.Send(t.Context(), message()))
	}
	raw, err := os.ReadFile(filepath.Join(dir, "whk_1-usr_1.eml"))
	require.NoError(t, err)
	for _, text := range []string{string(raw), office.only().text} {
		require.Equal(t, netmail.Address(from), read(t, text).address(t, "From"))
	}
}
