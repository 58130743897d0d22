package hostile

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"

	"github.com/go-faster/errors"
)

// The recorded errors of attempts.
const (
	timeout   = "timeout"
	reset     = "connection_reset"
	redirect  = "redirect"
	badTLS    = "tls_error"
	badStatus = "http_status"
)

const (
	// dripEvery is so short that no gap between two drops looks like the end.
	dripEvery = 100 * time.Millisecond
	// flood bounds the bytes of an answer that the sender should have given up long before.
	flood = 200 << 20
	body  = 1 << 30
)

// Kinds returns all kinds.
func Kinds() ([]Kind, error) {
	inflating, err := inflating()
	if err != nil {
		return nil, err
	}
	unknown, err := certificate(time.Now().Add(time.Hour))
	if err != nil {
		return nil, err
	}
	expired, err := certificate(time.Now().Add(-time.Minute))
	if err != nil {
		return nil, err
	}
	const ok, chunked = "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	const hint = "HTTP/1.1 103 Early Hints\r\n\r\n"
	fine := answers(ok + "Content-Length: 4\r\n\r\nfine")
	return []Kind{
		{Name: "never answers", Error: timeout, script: func(p *peer) { p.request(); p.untilGone() }},
		{Name: "headers that drip", Error: timeout, script: drips(ok+"X: ", "x")},
		{Name: "a body that drips", script: drips(ok+"\r\n", "x")},
		{Name: "headers without an end", Error: badStatus, script: floods(ok, "X: "+strings.Repeat("x", 8<<10)+"\r\n", flood)},
		{Name: "tiny headers without an end", Error: badStatus, script: floods(ok, strings.Repeat("a:\r\n", 16<<10), flood)},
		{Name: "one header without an end", Error: badStatus, script: floods(ok+"X: ", strings.Repeat("x", 64<<10), flood)},
		{Name: "a body of 1 GiB", script: floods(fmt.Sprintf("%sContent-Length: %d\r\n\r\n", ok, body), strings.Repeat("x", 64<<10), body)},
		{Name: "chunks of 1 GiB", script: floods(chunked, "8000\r\n"+strings.Repeat("x", 32<<10)+"\r\n", body)},
		{Name: "a gzip that inflates", script: answers(inflating)},
		{Name: "1,000 times 103", script: answers(strings.Repeat(hint, 1000) + ok + "Content-Length: 0\r\n\r\n")},
		{Name: "103 without an end", Error: badStatus, script: floods("", strings.Repeat(hint, 1<<10), flood)},
		{Name: "a length that is too long", script: answers(ok + "Content-Length: 100\r\n\r\nfine")},
		{Name: "a length that is too short", script: answers(ok + "Content-Length: 2\r\n\r\nfine")},
		{Name: "a 204 with a body", script: answers("HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nfine")},
		{Name: "no UTF-8, and NUL", script: answers(ok + "Content-Length: 2\r\n\r\n\xff\x00")},
		{Name: "the status 999", Error: badStatus, script: answers("HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n")},
		{Name: "another protocol", Error: badStatus, script: answers("SSH-2.0-OpenSSH_9.9\r\n\r\n")},
		{Name: "a 1xx and the end", Error: reset, script: answers("HTTP/1.1 102 Processing\r\n\r\n")},
		{Name: "a redirect to the inside", Error: redirect, script: answers(
			"HTTP/1.1 307 Away\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")},
		{Name: "a reset", Error: reset, script: func(p *peer) { p.request(); p.say(ok + "X: "); p.reset() }},
		{Name: "a self-signed certificate", Error: badTLS, script: fine, certificate: unknown},
		{Name: "an expired certificate", Error: badTLS, script: fine, certificate: expired},
		{Name: "a handshake that stalls", Error: timeout, script: (*peer).untilGone, mute: true},
	}, nil
}

// answers writes the same text to each request and closes the connection.
func answers(text string) func(*peer) {
	return func(p *peer) {
		if p.request() {
			p.say(text)
		}
	}
}

// drips writes the beginning, and then the same small piece for ever.
func drips(begin, drop string) func(*peer) {
	return func(p *peer) {
		p.request()
		tick := time.NewTicker(dripEvery)
		defer tick.Stop()
		for next := begin; p.say(next); next = drop {
			<-tick.C
		}
	}
}

// floods writes the beginning, and then the same chunk until the amount of bytes is reached.
func floods(begin, chunk string, amount int) func(*peer) {
	return func(p *peer) {
		if !p.request() || !p.say(begin) {
			return
		}
		for said := 0; said < amount && p.say(chunk); said += len(chunk) {
		}
	}
}

// inflating is an answer of 50 KB whose body inflates to 50 MiB.
func inflating() (string, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", errors.Wrap(err, "compress")
	}
	if _, err := w.Write(make([]byte, 50<<20)); err != nil {
		return "", errors.Wrap(err, "compress")
	}
	if err := w.Close(); err != nil {
		return "", errors.Wrap(err, "compress")
	}
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", packed.Len(), packed.String()), nil
}

// certificate returns a self-signed certificate for loopback.
func certificate(until time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errors.Wrap(err, "make a key")
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hostile"},
		NotBefore: until.Add(-time.Hour), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, errors.Wrap(err, "sign a certificate")
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
