package send

import (
	"context"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/webhook"
)

func TestADeliveryCarriesTheSpecifiedHeadersAndThoseOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	r := receive(t, answering(response("200 OK", "thanks")))
	before := time.Now().Truncate(time.Second)
	out := post(t, newSender(t, opened()), r.url("/hook?token=t"))
	require.True(t, out.OK())

	got := r.got()
	require.Len(t, got, 1)
	require.Equal(t, "POST /hook?token=t HTTP/1.1", got[0].line)
	require.Equal(t, `{"event":"post.created"}`, got[0].body)
	signature := got[0].header.Get(webhook.HeaderSignature)
	require.Equal(t, textproto.MIMEHeader{
		"Host":                {r.addr},
		"Content-Length":      {"24"},
		"Content-Type":        {"application/json"},
		"User-Agent":          {"Service-Webhooks/1.0"},
		"X-Service-Event":     {"post.created"},
		"X-Service-Delivery":  {"dlv_1"},
		"X-Service-Signature": {signature},
		"Webhook-Id":          {"dlv_1"},
		"Webhook-Timestamp":   {strconv.FormatInt(out.StartedAt.Unix(), 10)},
		"Webhook-Signature":   {webhook.SignStandard(testSecret, "dlv_1", out.StartedAt, []byte(got[0].body))},
	}, got[0].header)
	require.NoError(t, webhook.Verify(testSecret, signature, []byte(got[0].body), out.StartedAt))
	require.False(t, out.StartedAt.Before(before))
}

func TestASecretThatIsNoBase64SignsByOurSchemeOnly(t *testing.T) {
	t.Parallel()
	r := receive(t, answering(response("200 OK", "")))
	out := newSender(t, opened()).Send(t.Context(), Request{URL: r.url("/"), Secret: "whsec_not base64", EventType: "e", DeliveryID: "d"})
	require.True(t, out.OK())
	header := r.got()[0].header
	require.NoError(t, webhook.Verify("whsec_not base64", header.Get(webhook.HeaderSignature), nil, out.StartedAt))
	for _, name := range []string{webhook.HeaderStandardID, webhook.HeaderStandardTimestamp, webhook.HeaderStandardSignature} {
		require.Empty(t, header.Values(name))
	}
}

func TestAnOutcomeTellsStatusBodyAndTimes(t *testing.T) {
	t.Parallel()
	r := receive(t, answering(response("201 Created", "not\x00utf8\xff")))
	before := time.Now()
	out := post(t, newSender(t, opened()), r.url("/"))
	require.Equal(t, 201, out.Status)
	require.Equal(t, "not\x00utf8\xff", string(out.Body))
	require.Empty(t, out.Error)
	require.Equal(t, time.UTC, out.StartedAt.Location())
	require.WithinRange(t, out.StartedAt, before.Round(0), time.Now())
	require.Positive(t, out.Duration)
}

func TestPayloadsArriveByteForByte(t *testing.T) {
	t.Parallel()
	r := receive(t, serving(response("204 No Content", "")))
	s := newSender(t, opened())
	payloads := []string{
		`{"zebra":1,"alpha":2}`,
		`{"n":9007199254740993,"e":1e400,"s":"` + "\u2028" + `<&>"}`,
		`{"text":"` + strings.Repeat("漢", 50_000) + `"}`,
		"\x00\xff\r\n\r\n",
		"",
	}
	for _, payload := range payloads {
		out := s.Send(t.Context(), Request{URL: r.url("/"), Secret: testSecret, EventType: "e", DeliveryID: "d", Body: []byte(payload)})
		require.True(t, out.OK())
	}
	for i, got := range r.got() {
		require.Equal(t, payloads[i], got.body)
		header := got.header.Get(webhook.HeaderSignature)
		require.NoError(t, webhook.Verify(testSecret, header, []byte(payloads[i]), time.Now()))
	}
	require.Len(t, r.got(), len(payloads))
}

func TestARedirectIsAFailureAndIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := receive(t, answering(response("200 OK", "")))
	s := newSender(t, opened())
	for _, status := range []string{"300 Multiple", "301 Moved", "302 Found", "303 See Other", "304 Not Modified", "307 Temporary", "308 Permanent", "399 Odd"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			r := receive(t, serving("HTTP/1.1 "+status+"\r\nLocation: "+elsewhere.url("/stolen")+"\r\nContent-Length: 0\r\n\r\n"))
			out := post(t, s, r.url("/"))
			require.Equal(t, Redirect, out.Error)
			require.Equal(t, status[:3], strconv.Itoa(out.Status))
			require.Len(t, r.got(), 1)
			require.Zero(t, elsewhere.conns.Load())
		})
	}
}

func TestAReceiverThatCannotBeReachedIsNamedByItsReason(t *testing.T) {
	t.Parallel()
	hangsUp := receive(t, func(*peer) {})
	o := opened()
	o.Resolver = &names{table: map[string][]string{
		"inside.test":  {"10.0.0.1"},
		"nowhere.test": {},
		"refused.test": {"127.0.0.1"},
	}}
	s := newSender(t, o)
	for name, c := range map[string]struct {
		url  string
		want Class
	}{
		"an unknown name is a DNS error":               {"http://unknown.test/", DNSError},
		"a name without an address is a DNS error":     {"http://nowhere.test/", DNSError},
		"a port without a listener refuses":            {"http://refused.test:1/", ConnectionRefused},
		"a private address is blocked":                 {"http://10.0.0.1/", BlockedAddress},
		"a name with a private address is blocked":     {"http://inside.test/", BlockedAddress},
		"a URL that is none is invalid":                {"mailto:a@b.test", InvalidURL},
		"a receiver that closes at once resets":        {hangsUp.url("/"), ConnectionReset},
		"an address that only looks public is blocked": {"http://[64:ff9b::a00:1]/", BlockedAddress},
		"the wildcard address is blocked":              {"http://0.0.0.0/", BlockedAddress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := post(t, s, c.url)
			require.Equal(t, c.want, out.Error)
			require.Zero(t, out.Status)
			require.Empty(t, out.Body)
			require.False(t, out.OK())
		})
	}
}

func TestAnAttemptEndsWhenItsCallerGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := receive(t, func(p *peer) {
		p.request()
		cancel()
		p.untilGone()
	})
	out := newSender(t, opened()).Send(ctx, Request{URL: r.url("/"), Secret: testSecret, EventType: "e", DeliveryID: "d"})
	require.Equal(t, Timeout, out.Error)
}

func TestADeliveryThatHTTPCannotCarryIsNotSent(t *testing.T) {
	t.Parallel()
	r := receive(t, answering(response("200 OK", "")))
	out := newSender(t, opened()).Send(t.Context(), Request{URL: r.url("/"), Secret: testSecret, EventType: "a\r\nX-Injected: b", DeliveryID: "d"})
	require.Equal(t, ConnectionRefused, out.Error)
	require.Zero(t, r.conns.Load())
}

func TestTheProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	// The test isn't parallel, because the variables belong to the whole process.
	proxy := receive(t, answering(response("200 OK", "")))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://"+proxy.addr)
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	r := receive(t, answering(response("204 No Content", "")))
	o := opened()
	// The URL has a name, because net/http uses no proxy for loopback addresses.
	o.Resolver = &names{table: map[string][]string{"receiver.test": {"127.0.0.1"}}}
	out := post(t, newSender(t, o), "http://receiver.test:"+r.port()+"/")
	require.Equal(t, 204, out.Status)
	require.Zero(t, proxy.conns.Load())
}

func TestNoOutcomeHoldsAPathAQueryOrAToken(t *testing.T) {
	t.Parallel()
	known := []Class{
		DNSError, ConnectionRefused, ConnectionReset, Timeout, TLSError,
		Redirect, HTTPStatus, BlockedAddress, InvalidURL,
	}
	s := newSender(t, opened())
	r := receive(t, func(*peer) {})
	for _, url := range []string{
		r.url("/path?token=t0ken"), "http://127.0.0.1:1/path?token=t0ken", "https://" + r.addr + "/path?token=t0ken",
		"http://10.0.0.1/path?token=t0ken", "http://user:t0ken@a.test/", "http://a.test/%zz?t0ken", "http://a b/t0ken",
	} {
		require.Contains(t, known, post(t, s, url).Error)
		require.NotContains(t, s.CheckURL(url).Reason, "t0ken")
		require.NotContains(t, s.CheckURL(url).Reason, "path")
	}
}

func TestClosingTheSenderEndsIdleConnections(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	r := receive(t, func(p *peer) {
		defer close(gone)
		serving(response("200 OK", "ok"))(p)
	})
	s := New(opened())
	require.True(t, post(t, s, r.url("/")).OK())
	s.Close()
	<-gone // the receiver sees the end of its only connection
}
