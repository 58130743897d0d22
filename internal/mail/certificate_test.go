package mail_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"

	"github.com/stretchr/testify/require"
)

// certify makes the server's certificate and the authority that clients trust.
func (f *office) certify() tls.Certificate {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(f.t, err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	require.NoError(f.t, err)
	root, err := x509.ParseCertificate(der)
	require.NoError(f.t, err)
	f.roots = x509.NewCertPool()
	f.roots.AddCert(root)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "office"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if f.spoil != nil {
		f.spoil(leaf)
	}
	der, err = x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, key)
	require.NoError(f.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
