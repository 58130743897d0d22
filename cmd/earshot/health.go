package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/config"
)

const (
	// healthTimeout exceeds the time that /readyz takes when every check hangs.
	healthTimeout = 5 * time.Second
	// answerLimit exceeds the size of any answer of /readyz.
	answerLimit = 4 << 10
)

func newHealthCommand() *cobra.Command {
	var (
		ready bool
		url   string
	)
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running service whether it lives, for checks of containers",
		Long: "Asks /healthz of the API at EARSHOT_LISTEN and, when nobody listens there, of a worker at\n" +
			"EARSHOT_HEALTH_LISTEN, and fails unless the answer is 200. With --ready it asks /readyz.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/healthz"
			if ready {
				path = "/readyz"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			answer, err := askHealth(ctx, os.Environ(), strings.TrimSuffix(url, "/"), path)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), answer)
			return nil
		},
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether it is ready, too: whether Postgres, Temporal and the worker are there")
	cmd.Flags().StringVar(&url, "url", "", "base address of the process, instead of the settings'")
	return cmd
}

// askHealth queries the given URL. Without one it tries the API's address in the settings, then the
// worker's.
func askHealth(ctx context.Context, environ []string, url, path string) (string, error) {
	if url != "" {
		return ask(ctx, url+path)
	}
	var tried []string
	for _, name := range []string{config.Listen, config.HealthListen} {
		address, err := config.Lookup(environ, name)
		if err != nil {
			return "", err
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return "", errors.Errorf("%s: wants host:port", name)
		}
		base := config.LocalURL(host, port)
		answer, err := ask(ctx, base+path)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return answer, err
		}
		tried = append(tried, fmt.Sprintf("%s (%s)", base, name))
	}
	return "", errors.Errorf("nobody listens at %s", strings.Join(tried, " or "))
}

// direct uses no proxy, because it only connects to this machine.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask returns the body of a 200 answer. Any other status is an error.
func ask(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", errors.Wrap(err, "ask for its health")
	}
	response, err := direct.Do(request)
	if err != nil {
		return "", errors.Wrap(err, "ask for its health")
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if response.StatusCode != http.StatusOK {
		return "", errors.Errorf("%s answers %d: %s", url, response.StatusCode, strings.TrimSpace(string(text)))
	}
	return strings.TrimSpace(string(text)), nil
}
