package send

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority issues the certificates for the tests.
type authority struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	roots *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{roots: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.roots.AddCert(a.cert)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// issue returns a certificate for 127.0.0.1 and receiver.test, which change may make invalid. The
// authority signs it, or with self the certificate itself.
func (a *authority) issue(t *testing.T, self bool, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "receiver"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"receiver.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	key := newKey(t)
	parent, signer := a.cert, a.key
	if self {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func over(config *tls.Config) func(net.Listener) net.Listener {
	return func(l net.Listener) net.Listener { return tls.NewListener(l, config) }
}

func TestATrustedReceiverIsReachedOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert := a.issue(t, false, nil)
	for name, config := range map[string]*tls.Config{
		"by TLS 1.2":                             {Certificates: []tls.Certificate{cert}, MaxVersion: tls.VersionTLS12},
		"by TLS 1.3":                             {Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13},
		"by HTTP/1.1, where HTTP/2 is preferred": {Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, serving(response("200 OK", "fine")), over(config))
			o := trusting(a.roots)
			o.Resolver = &names{table: map[string][]string{"receiver.test": {"127.0.0.1"}}}
			s := newSender(t, o)
			for _, host := range []string{"127.0.0.1", "127.0.0.1", "receiver.test", "receiver.test."} {
				out := post(t, s, "https://"+host+":"+r.port()+"/")
				require.True(t, out.OK(), "%s: %s", host, out.Error)
				require.Equal(t, "fine", string(out.Body))
			}
			require.EqualValues(t, 3, r.conns.Load(), "one connection for each spelling of the host")
		})
	}
}

func TestAReceiverThatCannotProveItselfGetsNoDelivery(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for name, config := range map[string]*tls.Config{
		"an expired certificate": {Certificates: []tls.Certificate{a.issue(t, false, func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-time.Minute)
		})}},
		"a certificate of tomorrow": {Certificates: []tls.Certificate{a.issue(t, false, func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(30 * time.Minute)
		})}},
		"a self-signed certificate": {Certificates: []tls.Certificate{a.issue(t, true, nil)}},
		"a certificate of another host": {Certificates: []tls.Certificate{a.issue(t, false, func(c *x509.Certificate) {
			c.DNSNames, c.IPAddresses = []string{"other.test"}, nil
		})}},
		"a certificate for clients": {Certificates: []tls.Certificate{a.issue(t, false, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})}},
		"an unknown authority":    {Certificates: []tls.Certificate{newAuthority(t).issue(t, false, nil)}},
		"no protocol above 1.1":   {Certificates: []tls.Certificate{a.issue(t, false, nil)}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"a wish for our identity": {Certificates: []tls.Certificate{a.issue(t, false, nil)}, ClientAuth: tls.RequireAnyClientCert},
		"the same wish in TLS 1.2": {Certificates: []tls.Certificate{a.issue(t, false, nil)}, ClientAuth: tls.RequireAnyClientCert,
			MaxVersion: tls.VersionTLS12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, serving(response("200 OK", "")), over(config))
			out := post(t, newSender(t, trusting(a.roots)), "https://"+r.addr+"/")
			require.Equal(t, TLSError, out.Error)
			require.Empty(t, r.got())
		})
	}
}

func TestAHandshakeThatGoesWrongIsATLSError(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]func(*peer){
		"an answer in plain HTTP":         answering(response("400 Bad", "")),
		"the end in place of a handshake": func(p *peer) { _, _ = p.in.Peek(1) },
		"a reset in its middle": func(p *peer) {
			_, _ = p.in.Peek(1)
			p.say("\x16\x03\x03\x00\x40\x02")
			_ = p.Conn.(*net.TCPConn).SetLinger(0)
		},
		"garbage": func(p *peer) { p.say("SSH-2.0-OpenSSH_9.9\r\n"); p.untilGone() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, script)
			require.Equal(t, TLSError, post(t, newSender(t, opened()), "https://"+r.addr+"/").Error)
		})
	}
}

func TestAHandshakeThatStallsCostsTheAttemptsTime(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]func(*peer){
		"at once":       (*peer).untilGone,
		"in its middle": func(p *peer) { p.say("\x16\x03\x03\x00\x40\x02"); p.untilGone() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, script)
			o := opened()
			o.Timeout = short
			require.Equal(t, Timeout, post(t, newSender(t, o), "https://"+r.addr+"/").Error)
		})
	}
}

func TestAReceiverThatStopsReadingBelowTLSCostsTheAttemptsTime(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	gone := make(chan struct{})
	r := receive(t, func(p *peer) {
		_ = p.Conn.(*tls.Conn).HandshakeContext(t.Context())
		<-gone
	}, over(&tls.Config{Certificates: []tls.Certificate{a.issue(t, false, nil)}}))
	o := trusting(a.roots)
	o.Timeout = short
	out := newSender(t, o).Send(t.Context(), Request{
		URL: "https://" + r.addr + "/", Secret: testSecret, EventType: "e", DeliveryID: "d", Body: make([]byte, 32<<20),
	})
	close(gone)
	require.Equal(t, Timeout, out.Error)
}
