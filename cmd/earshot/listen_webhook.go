package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/event"
)

const (
	// temporaryPath begins the path of each URL that `earshot listen` registers. The name of
	// the machine follows, and what tells this run from others.
	temporaryPath = "/earshot-listen/"
	// listenHeader tells a later run that the listener of a URL is still there.
	listenHeader = "Earshot-Listen"
	// lookTimeout is for a listener on this machine to say that it is there.
	lookTimeout = 2 * time.Second
)

// temporaryWebhook is what `earshot listen` registered for as long as it runs.
type temporaryWebhook struct {
	client *apiClient
	id     string
	secret string
	path   string
}

// register has the service send its events to the listener's address.
func register(ctx context.Context, o listenOptions, at net.Addr, errOut io.Writer) (*temporaryWebhook, error) {
	mine, err := temporaryPathOfThisMachine()
	if err != nil {
		return nil, err
	}
	w := &temporaryWebhook{client: o.client, path: mine + fmt.Sprint(os.Getpid(), "-", time.Now().UnixNano())}
	events := o.events
	if len(events) == 0 {
		events = eventNames()
	}
	var made struct{ ID, Secret string }
	// Not given up when the person does: what was made has to be known to be removed.
	err = o.client.call(context.WithoutCancel(ctx), http.MethodPost, "/v1/webhooks",
		map[string]any{"url": "http://" + reachable(at) + w.path, "events": events}, &made)
	if err != nil {
		return nil, err
	}
	w.id, w.secret = made.ID, made.Secret
	fmt.Fprintf(errOut, "Registered %s at %s for %s; it is removed at the end\n", w.id, o.client.url, strings.Join(events, ", "))
	fmt.Fprintf(errOut, "Its signing secret, for this run: %s\n", w.secret)
	return w, nil
}

// remove takes the webhook away, also when the person has asked for the end.
func (w *temporaryWebhook) remove(ctx context.Context) error {
	err := w.client.call(context.WithoutCancel(ctx), http.MethodDelete, "/v1/webhooks/"+w.id, nil, nil)
	if err != nil {
		return errors.Wrapf(err, "%s is still registered, and the next `%s listen --forward` removes it", w.id, program())
	}
	return nil
}

// temporaryPathOfThisMachine keeps a run from removing what runs on another machine that
// uses the same service: from here that can't be reached and looks as if it were gone.
func temporaryPathOfThisMachine() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", errors.Wrap(err, "find this machine's name")
	}
	return temporaryPath + url.PathEscape(host) + "/", nil
}

// removeLeftBehind removes the webhooks of runs on this machine that were killed before
// they could do so themselves.
func removeLeftBehind(ctx context.Context, client *apiClient, errOut io.Writer) error {
	mine, err := temporaryPathOfThisMachine()
	if err != nil {
		return err
	}
	var webhooks []struct{ ID, URL string }
	if err := client.call(ctx, http.MethodGet, "/v1/webhooks", nil, &webhooks); err != nil {
		return err
	}
	for _, w := range webhooks {
		at, err := url.Parse(w.URL)
		if err != nil || !strings.HasPrefix(at.EscapedPath(), mine) || listens(ctx, at) {
			continue
		}
		if err := client.call(ctx, http.MethodDelete, "/v1/webhooks/"+w.ID, nil, nil); err != nil {
			return err
		}
		fmt.Fprintf(errOut, "Removed %s, which an earlier run left behind\n", w.ID)
	}
	return nil
}

// listens reports whether the run that registered a URL may still be there. One that
// takes its time counts as there: to remove its webhook would be the greater harm.
func listens(ctx context.Context, at *url.URL) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = response.Body.Close()
	return response.Header.Get(listenHeader) == at.EscapedPath()
}

// reachable is the address at which the service on this machine finds the listener.
func reachable(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return at.String()
}

// eventNames are all events that a webhook can subscribe to.
func eventNames() (names []string) {
	for _, t := range event.Types {
		names = append(names, string(t))
	}
	return names
}
