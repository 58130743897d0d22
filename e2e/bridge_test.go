package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const listTools = `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}` + "\n"

// behindGateway prepares `earshot mcp` behind a gateway that answers the messages itself. The
// caller starts the command.
func behindGateway(t *testing.T, messages http.HandlerFunc) (p *program, cmd *exec.Cmd, stdin io.Writer) {
	t.Helper()
	p = newProgram(t, temporalSettings(t)...)
	p.serve()
	service, err := url.Parse(p.url)
	require.NoError(t, err)
	routes := http.NewServeMux()
	routes.Handle("/", httputil.NewSingleHostReverseProxy(service))
	routes.Handle("/mcp", messages)
	gateway := httptest.NewServer(routes)
	t.Cleanup(gateway.Close)
	p.env = append(cleanEnviron(), "EARSHOT_API_KEY="+p.key, "EARSHOT_BASE_URL="+gateway.URL)
	cmd = exec.Command(earshot(), "mcp")
	stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	return p, cmd, stdin
}

func TestTheBridgeEndsAtTheFirstSignalDuringARequest(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Otherwise the server doesn't notice that the bridge is gone.
		arrived <- struct{}{}
		<-r.Context().Done()
	}
	p, cmd, stdin := behindGateway(t, hang)
	s := p.run(cmd)
	_, err := io.WriteString(stdin, listTools)
	require.NoError(t, err)
	<-arrived // Now the bridge waits for an answer and for the next line.
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Eventually(t, func() bool {
		select {
		case <-s.ended:
			return true
		default:
			return false
		}
	}, waitLimit, pollInterval)
	require.Zero(t, cmd.ProcessState.ExitCode())
	require.Empty(t, s.log.String(), "nobody is told of what was given up")
}

func TestTheBridgeAnswersWhenAGatewaySaysByADateWhenToComeBack(t *testing.T) {
	t.Parallel()
	p, cmd, stdin := behindGateway(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s := p.run(cmd)
	_, err := io.WriteString(stdin, listTools)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "\n") }, waitLimit, pollInterval)
	require.Regexp(t, `"retry_after":3[56]\d\d\b`, s.log.String())
	require.Regexp(t, `Try again in 3[56]\d\d seconds\.`, s.log.String())
	require.Contains(t, s.log.String(), `"id":7`)
}
