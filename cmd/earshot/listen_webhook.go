package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/devstack/statedir"
	"earshot/internal/event"
	"earshot/internal/problem"
)

const (
	// temporaryPath is the start of the path of each URL that `earshot listen` registers. The id of
	// the stack's directory and an id of the run follow.
	temporaryPath = "/earshot-listen/"
	// listenHeader tells a later run that the listener of a URL still runs.
	listenHeader = "Earshot-Listen"
	// lookTimeout bounds the probe of a listener on this machine.
	lookTimeout = 2 * time.Second
)

// temporaryWebhook is the webhook that `earshot listen` registers for the duration of its run.
type temporaryWebhook struct {
	client *apiClient
	id     string
	secret string
	path   string
	// found reports whether a later run can find the webhook if this run fails to remove it.
	found bool
}

// register registers a webhook that sends events to the listener's address.
func register(ctx context.Context, o listenOptions, at net.Addr, errOut io.Writer) (*temporaryWebhook, error) {
	owner, found := o.owner, o.owner != ""
	if !found {
		owner = rand.Text()
	}
	w := &temporaryWebhook{client: o.client, found: found}
	w.path = temporaryPath + owner + "/" + fmt.Sprint(os.Getpid(), "-", time.Now().UnixNano())
	events := o.events
	if len(events) == 0 {
		events = eventNames()
	}
	var made struct{ ID, Secret string }
	// Ctrl-C doesn't interrupt the request: the id of a created webhook is needed to remove it.
	err := o.client.call(context.WithoutCancel(ctx), http.MethodPost, "/v1/webhooks",
		map[string]any{"url": "http://" + reachable(at) + w.path, "events": events}, &made)
	if err != nil {
		return nil, err
	}
	w.id, w.secret = made.ID, made.Secret
	fmt.Fprintf(errOut, "Registered %s at %s for %s; it is removed at the end\n", w.id, o.client.url, strings.Join(events, ", "))
	fmt.Fprintf(errOut, "Its signing secret, for this run: %s\n", w.secret)
	return w, nil
}

// remove deletes the webhook, even after ctx has ended.
func (w *temporaryWebhook) remove(ctx context.Context) error {
	err := removeWebhook(context.WithoutCancel(ctx), w.client, w.id)
	switch {
	case err != nil && w.found:
		return errors.Wrapf(err, "%s is still registered, and the next `%s listen --forward` removes it", w.id, statedir.Program())
	case err != nil:
		return errors.Wrapf(err, "%s is still registered: delete it", w.id)
	default:
		return nil
	}
}

// removeWebhook deletes a webhook. It accepts that another run has deleted it: a starting run may
// mistake an ending listener for a killed one.
func removeWebhook(ctx context.Context, client *apiClient, id string) error {
	err := client.call(ctx, http.MethodDelete, "/v1/webhooks/"+id, nil, nil)
	var refused *refusal
	if errors.As(err, &refused) && refused.code == string(problem.NotFound) {
		return nil
	}
	return err
}

// removeLeftBehind deletes the webhooks of killed runs with this directory. Without a directory it
// deletes none, because it can't tell them from the webhooks of others.
func removeLeftBehind(ctx context.Context, o listenOptions, errOut io.Writer) error {
	if o.owner == "" {
		return nil
	}
	var webhooks []struct{ ID, URL string }
	if err := o.client.call(ctx, http.MethodGet, "/v1/webhooks", nil, &webhooks); err != nil {
		return err
	}
	for _, w := range webhooks {
		at, err := url.Parse(w.URL)
		if err != nil || !strings.HasPrefix(at.EscapedPath(), temporaryPath+o.owner+"/") || !onThisMachine(at.Hostname()) || listens(ctx, at) {
			continue
		}
		if err := removeWebhook(ctx, o.client, w.ID); err != nil {
			return err
		}
		fmt.Fprintf(errOut, "Removed %s, which an earlier run left behind\n", w.ID)
	}
	return nil
}

// onThisMachine reports whether a host is an address of this machine. URLs of `earshot listen`
// contain addresses and no host names.
func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	if ip == nil || ip.IsLoopback() {
		return ip != nil
	}
	own, _ := net.InterfaceAddrs() // if they can't be read, nothing is removed
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		return ok && network.IP.Equal(ip)
	})
}

// looker requests a URL of this machine directly, without a proxy and without following redirects.
var looker = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// listens reports whether the run that registered a URL may still be running. A slow listener
// counts as running, because removing its webhook would do more harm.
func listens(ctx context.Context, at *url.URL) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return true // unknown
	}
	response, err := looker.Do(request)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = response.Body.Close()
	return response.Header.Get(listenHeader) == at.EscapedPath()
}

// reachable returns the address at which a service on this machine reaches the listener.
func reachable(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return at.String()
}

// eventNames returns all events that a webhook can subscribe to.
func eventNames() (names []string) {
	for _, t := range event.Types {
		names = append(names, string(t))
	}
	return names
}
