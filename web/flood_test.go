package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicactions"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// flood sends requests on 50 connections from one network until stop. The function served counts the
// requests that got their page.
func (n *tenant) flood(t *testing.T, paths []string, cookie string) (stop func(), served func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 50, MaxIdleConnsPerHost: 50}}
	var (
		all      sync.WaitGroup
		sent, ok atomic.Int64
	)
	for range 50 {
		all.Go(func() {
			for ctx.Err() == nil {
				i := sent.Add(1)
				path := fmt.Sprintf("%s?q=%d&status=%d", paths[int(i)%len(paths)], i, i)
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.App.URL+path, nil)
				if err != nil {
					return
				}
				r.Header.Set("X-Forwarded-For", "203.0.113.7")
				r.Header.Set("Cookie", cookie)
				a, err := client.Do(r)
				if err != nil {
					continue // the flood is over
				}
				_, _ = io.Copy(io.Discard, a.Body)
				_ = a.Body.Close()
				if a.StatusCode == http.StatusOK {
					ok.Add(1)
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		client.CloseIdleConnections()
	})
	t.Cleanup(stop)
	return stop, ok.Load
}

// One client requests many pages that are expensive to render. Some of its connections have the cookie
// of a visitor, so they use the slots of visitors who act.
func TestAFloodOfOneClientKeepsNoOtherOrganizationFromItsPages(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Worker: true, Environ: []string{
		"EARSHOT_MAIL_DIR=" + t.TempDir(), "EARSHOT_PUBLIC_ORIGIN=" + mailOrigin, proxies,
	}})
	theirs := newReader(t, app.Tenant(t))
	attacked := newTenant(app.Tenant(t)).public(t)
	var posts []string
	for i := range 3 {
		id := attacked.post(t, fmt.Sprint("Post ", i), object{"body": object{"text": strings.Repeat("> ", 5000)}})
		for range 3 {
			attacked.Make(t, http.MethodPost, "/v1/posts/"+id+"/comments", object{"body": object{"text": strings.Repeat("> ", 5000)}})
		}
		posts = append(posts, attacked.at+"/"+fmt.Sprint("post-", i))
	}
	paths := append(posts, attacked.at, attacked.at+"/-/image.png", attacked.home)
	cookie := "earshot_visitor=" + app.PublicActions.Remember(attacked.Organization.ID, publicactions.Sender{Email: "eve@example.com", Name: "Eve"})
	for name, header := range map[string]string{"as a reader": "", "as a visitor who acts": cookie} {
		t.Run(name, func(t *testing.T) {
			stop, served := attacked.flood(t, paths, header)
			require.Eventually(t, func() bool { return served() > 0 }, testkit.Wait, time.Millisecond)
			for i := range 10 {
				for _, path := range []string{theirs.home, theirs.at, fmt.Sprintf("%s?q=word%d", theirs.at, i), theirs.at + "/dark-mode", theirs.at + "/-/new", theirs.preferences} {
					a := theirs.do(t, http.MethodGet, path, nil)
					require.Equal(t, http.StatusOK, a.StatusCode, path)
				}
				a := theirs.do(t, http.MethodPost, theirs.unsubscribe, url.Values{"List-Unsubscribe": {"One-Click"}})
				require.Equal(t, http.StatusOK, a.StatusCode)
			}
			stop()
			t.Log(served(), "requests of the flood were served")
		})
	}
}
