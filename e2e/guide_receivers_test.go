package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
	"earshot/webhook"
)

// runner starts a receiver of a language: the file for its code, the tools that run it
// (internal/needs), and the command.
type runner struct {
	file    string
	tools   []string
	command func(t *testing.T, file, port string) *exec.Cmd
}

var runners = map[string]runner{
	"go": {"main.go", nil, func(t *testing.T, file, _ string) *exec.Cmd {
		binary := file + ".bin"
		build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, file)
		build.Dir = repository // Its go.mod has the library.
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return exec.Command(binary)
	}},
	"js": {"main.mjs", []string{"node", "npm"}, func(t *testing.T, file, _ string) *exec.Cmd {
		program := filepath.Join(newNodeProject(t, "guide").dir, filepath.Base(file))
		require.NoError(t, os.Rename(file, program))
		return exec.Command("node", program)
	}},
	"python": {"main.py", []string{"python3"}, func(_ *testing.T, file, _ string) *exec.Cmd { return exec.Command("python3", file) }},
	"ruby":   {"main.rb", []string{"ruby"}, func(_ *testing.T, file, _ string) *exec.Cmd { return exec.Command("ruby", file) }},
	"php": {"hook.php", []string{"php"}, func(_ *testing.T, file, port string) *exec.Cmd {
		return exec.Command("php", "-S", "127.0.0.1:"+port, file)
	}},
}

const (
	guideSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newerSecret = "whsec_9sTq4VxB2LmN7pRkD1fHc6YwZ0gJu3Ea"
)

// runReceiver starts a receiver and sends it genuine and forged requests.
func runReceiver(t *testing.T, s sample) {
	r, known := runners[s.language]
	require.True(t, known, "the guide has a block of %q, which nobody runs", s.language)
	tier.Needs(t, r.tools...)
	file := filepath.Join(t.TempDir(), r.file)
	require.NoError(t, os.WriteFile(file, []byte(s.code), 0o600))
	port, err := devstack.FreePort()
	require.NoError(t, err)
	cmd := r.command(t, file, fmt.Sprint(port))
	cmd.Env = append(cleanEnviron(), "WEBHOOK_SECRET="+guideSecret, fmt.Sprintf("PORT=%d", port))
	output := testkit.NewLogs()
	cmd.Stdout, cmd.Stderr = output, output
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	url := fmt.Sprintf("http://127.0.0.1:%d/hook", port)
	now, old := time.Now(), time.Now().Add(-webhook.Tolerance-time.Minute)
	body := []byte(`{"event":"post.created","post":{"title":"Grüße, \"PDF\""}}`)
	require.Eventually(t, func() bool { return attempt(url, now, body, body, guideSecret) == http.StatusNoContent }, waitLimit, pollInterval,
		"a genuine delivery: %s", output)
	require.Equal(t, http.StatusNoContent, attempt(url, now, body, body, newerSecret, guideSecret), "while the secret is rotated: %s", output)
	require.Equal(t, http.StatusBadRequest, attempt(url, now, body, append(body, ' '), guideSecret), "another body")
	require.Equal(t, http.StatusBadRequest, attempt(url, now, body, body, newerSecret), "another secret")
	require.Equal(t, http.StatusBadRequest, attempt(url, old, body, body, guideSecret), "a recorded one")
	require.Equal(t, http.StatusBadRequest, attempt(url, now, body, body), "no signature")
	require.Contains(t, output.String(), "dlv_01kkgt5hn2erzvjxkz0sqk7qdt")
}

// attempt sends a body with the signatures of another body, made with the secrets. It returns the
// status, or 0 if there is no answer.
func attempt(url string, at time.Time, signed, body []byte, secrets ...string) int {
	const id = "dlv_01kkgt5hn2erzvjxkz0sqk7qdt"
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body)) //nolint:noctx // a test's own server
	if err != nil {
		return 0
	}
	r.Header.Set(webhook.HeaderEvent, "post.created")
	r.Header.Set(webhook.HeaderDelivery, id)
	r.Header.Set(webhook.HeaderStandardID, id)
	r.Header.Set(webhook.HeaderStandardTimestamp, fmt.Sprint(at.Unix()))
	if len(secrets) > 0 {
		var standard []string
		parts := []string{fmt.Sprintf("t=%d", at.Unix())}
		for _, secret := range secrets {
			_, v1, _ := strings.Cut(webhook.Sign(secret, at, signed), ",")
			parts = append(parts, v1)
			standard = append(standard, webhook.SignStandard(secret, id, at, signed))
		}
		r.Header.Set(webhook.HeaderSignature, strings.Join(parts, ","))
		r.Header.Set(webhook.HeaderStandardSignature, strings.Join(standard, " "))
	}
	answer, err := httpClient.Do(r)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}
