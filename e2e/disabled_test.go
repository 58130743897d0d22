package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// TestAKillBetweenTheDisablingAndTheMailLosesNeitherAndRepeatsNone puts a file in the mailbox's
// place, so that the e-mail can't be written before the kill.
func TestAKillBetweenTheDisablingAndTheMailLosesNeitherAndRepeatsNone(t *testing.T) {
	tier.Slow(t, "kills the process and waits for leases")
	t.Parallel()
	r := testkit.NewReceiver(t)
	r.Answer(func(int, testkit.Received) int { return http.StatusInternalServerError })
	mailbox := filepath.Join(t.TempDir(), "mail")
	require.NoError(t, os.WriteFile(mailbox, nil, 0o600))
	p := newProgram(t, append(temporalSettings(t),
		"EARSHOT_WEBHOOK_RETRY_DELAYS=0s,0s,0s,0s", "EARSHOT_MAIL_DIR="+mailbox)...)
	running := p.serve()
	p.subscribe(r)
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() { p.post() })
	}
	all.Wait()
	require.Eventually(t, func() bool { return p.first("/v1/webhooks")["disabledReason"] == "failures" }, waitLimit, pollInterval)
	running.kill()
	require.NoError(t, os.Remove(mailbox))
	p.serve()
	mails := func() int {
		files, err := filepath.Glob(filepath.Join(mailbox, "*.eml"))
		require.NoError(t, err)
		return len(files)
	}
	require.Eventually(t, func() bool { return mails() > 0 }, afterKill, pollInterval)
	require.Equal(t, 1, mails())
	require.Equal(t, false, p.first("/v1/webhooks")["enabled"])
}
