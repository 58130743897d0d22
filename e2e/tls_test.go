package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
	"earshot/internal/testkit/production"
	"earshot/internal/testkit/tier"
)

// authority signs certificates for 127.0.0.1.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{
		Subject: pkix.Name{CommonName: "An authority of our own"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	a.file, _, a.key = a.sign(a.cert, "ca")
	return a
}

// issue makes a certificate for a server or a client, and returns the files of the certificate and
// its key.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	cert, key, _ = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, name)
	return cert, key
}

// sign signs with the authority's key. Without one yet, it signs with the certificate's own key.
func (a *authority) sign(c *x509.Certificate, name string) (certFile, keyFile string, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	signer := a.key
	if signer == nil {
		signer = key
	}
	c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(a.t, err)
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), signer)
	require.NoError(a.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	return a.write(name+".crt", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", secret), key
}

func (a *authority) write(name, kind string, der []byte) (path string) {
	a.t.Helper()
	path = filepath.Join(a.dir, name)
	require.NoError(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// client returns a client that trusts only this authority.
func (a *authority) client() *http.Client {
	a.t.Helper()
	text, err := os.ReadFile(a.file)
	require.NoError(a.t, err)
	roots := x509.NewCertPool()
	require.True(a.t, roots.AppendCertsFromPEM(text))
	return &http.Client{Timeout: waitLimit, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

// postgresWithTLS starts a Postgres with a certificate, and returns the URL of its database.
func (a *authority) postgresWithTLS() (databaseURL string) {
	t := a.t
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // The user postgres needs access.
	p, err := devstack.StartPostgres(t.Context(), devstack.PostgresOptions{Dir: dir, Report: t.Logf})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })
	require.NoError(t, p.CreateDatabase(t.Context(), "earshot"))
	conn, err := pgx.Connect(t.Context(), p.URL("earshot"))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	var data string
	require.NoError(t, conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&data))
	owner, err := os.Stat(data)
	require.NoError(t, err)
	cert, key := a.issue("postgres")
	for name, file := range map[string]string{"server.crt": cert, "server.key": key} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		its := filepath.Join(data, name)
		require.NoError(t, os.WriteFile(its, text, 0o600))
		stat := owner.Sys().(*syscall.Stat_t)
		require.NoError(t, os.Chown(its, int(stat.Uid), int(stat.Gid)))
	}
	for _, statement := range []string{"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"} {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	return a.verified(p.URL("earshot"))
}

// verified returns a URL with which a client verifies the database's certificate.
func (a *authority) verified(databaseURL string) string {
	return strings.Replace(databaseURL, "sslmode=disable", "sslmode=verify-full&sslrootcert="+url.QueryEscape(a.file), 1)
}

// temporalWithTLS starts a temporal-server that requires client certificates and has its databases
// in that Postgres. It returns the settings of a client.
func (a *authority) temporalWithTLS(databaseURL string) (settings []string) {
	t := a.t
	t.Helper()
	programs, err := production.BuildPrograms(t.Context(), repository, t.Logf)
	require.NoError(t, err)
	cert, key := a.issue("temporal")
	s, err := production.StartTemporal(t.Context(), production.TemporalOptions{
		Dir: t.TempDir(), Programs: programs, Database: databaseURL,
		TLS: &production.TemporalTLS{CA: a.file, Cert: cert, Key: key}, Report: t.Logf,
	})
	require.NoError(t, err)
	t.Cleanup(func() { s.Kill() })
	cert, key = a.issue("earshot")
	return []string{
		"TEMPORAL_ADDRESS=" + s.Address(), "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + a.file,
		"TEMPORAL_TLS_CLIENT_CERT_PATH=" + cert, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + key,
	}
}

// proxyWithTLS starts a proxy in front of a server. It adds its client to X-Forwarded-For.
func (a *authority) proxyWithTLS(to string) (address string) {
	t := a.t
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		r.SetXForwarded()
	}})
	pair, err := tls.LoadX509KeyPair(a.issue("proxy"))
	require.NoError(t, err)
	proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	return proxy.URL
}

func TestADeliveryArrivesOverTLSToTheProxyToPostgresAndToTemporal(t *testing.T) {
	tier.Slow(t, "starts Temporal and Postgres with TLS")
	t.Parallel()
	a, r := newAuthority(t), testkit.NewReceiver(t)
	database := a.postgresWithTLS()
	settings := append(a.temporalWithTLS(database), "EARSHOT_TRUSTED_PROXIES=127.0.0.0/8")
	migrated := &program{t: t, env: append(cleanEnviron(), append(settings, "DATABASE_URL="+database)...)}
	for _, args := range [][]string{{"migrate"}, {"temporal", "setup", "--file", filepath.Join(repository, "temporal-dev.yaml")}} {
		out, err := migrated.command(args...)
		require.NoError(t, err, "%s", out)
	}
	p := newProgramOn(t, database, settings...)
	p.url, p.client = a.proxyWithTLS(p.url), a.client()
	api := p.serveAlone()
	p.worker()
	p.subscribe(r)
	post := p.post()
	require.NotEmpty(t, post)
	require.NoError(t, r.Await(t, 1)[0].Invalid, "the signature")
	require.Equal(t, map[string]int{post: 1}, arrived(t, r))
	require.NotContains(t, api.log.String(), "start deliveries", "what was set up right before is known when it is needed")

	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	var plain, sealed int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE NOT s.ssl), count(*) FILTER (WHERE s.ssl)
		FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.client_addr IS NOT NULL`).Scan(&plain, &sealed))
	require.Zero(t, plain, "connections to Postgres in the clear, Temporal's among them")
	require.Greater(t, sealed, 2)
	p.requireGuessersToldApart()
	a.requireStrangersRefused(p, database)
}

// requireGuessersToldApart guesses keys from an address behind the proxies until the service
// answers 429. It checks that other addresses aren't affected, and that a forged address in front
// doesn't help.
func (p *program) requireGuessersToldApart() {
	p.t.Helper()
	guess := func(from string) int {
		r, err := http.NewRequest(http.MethodGet, p.url+"/v1/me", nil)
		require.NoError(p.t, err)
		r.Header.Set("Authorization", "Bearer nobody's")
		r.Header.Set("X-Forwarded-For", from)
		answer, err := p.client.Do(r)
		require.NoError(p.t, err)
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	require.Equal(p.t, http.StatusUnauthorized, guess("198.51.100.7"))
	for range 100 { // Three times the limit of an address.
		guess("198.51.100.7")
	}
	require.Equal(p.t, http.StatusTooManyRequests, guess("203.0.113.1, 198.51.100.7"))
	require.Equal(p.t, http.StatusUnauthorized, guess("198.51.100.8"))
}

// requireStrangersRefused checks that every component refuses a peer without a valid certificate.
func (a *authority) requireStrangersRefused(p *program, database string) {
	other := newAuthority(a.t)
	stranger := &program{t: a.t, env: append(append([]string{}, p.env...), "DATABASE_URL="+strings.ReplaceAll(database,
		url.QueryEscape(a.file), url.QueryEscape(other.file)))}
	out, err := stranger.command("migrate")
	require.Error(a.t, err)
	require.Contains(a.t, out, "certificate", "Postgres's isn't of that authority")

	setup := []string{"temporal", "setup", "--file", filepath.Join(repository, "temporal-dev.yaml")}
	cert, key := other.issue("stranger")
	stranger.env = append(append([]string{}, p.env...), "TEMPORAL_TLS_CLIENT_CERT_PATH="+cert, "TEMPORAL_TLS_CLIENT_KEY_PATH="+key)
	out, err = stranger.command(setup...)
	require.Error(a.t, err, "Temporal doesn't know that client")
	require.Contains(a.t, out, "reach Temporal")
	stranger.env = append(append([]string{}, p.env...), "TEMPORAL_TLS_SERVER_CA_CERT_PATH="+other.file)
	out, err = stranger.command(setup...)
	require.Error(a.t, err)
	require.Contains(a.t, out, "certificate", "Temporal's isn't of that authority")
}
