package config

import (
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-faster/errors"
)

// Encryption is the encryption of the connection to a mail server. Its text is the scheme of the
// URL.
type Encryption string

const (
	// STARTTLS starts unencrypted. It sends nothing further until the server has switched to TLS.
	STARTTLS Encryption = "smtp"
	// ImplicitTLS uses TLS from the first byte.
	ImplicitTLS Encryption = "smtps"
	// Plain is never encrypted. It is for a relay on this machine or in a private network.
	Plain Encryption = "smtp+plain"
)

// smtpPorts are the standard ports (RFC 6409, 8314 and 5321).
var smtpPorts = map[Encryption]string{STARTTLS: "587", ImplicitTLS: "465", Plain: "25"}

// SMTP is the mail server in EARSHOT_SMTP_URL. The zero value means no server.
type SMTP struct {
	Host, Port     string
	Encryption     Encryption
	User, Password string // empty without authentication
}

// UnmarshalText reads smtp://user:password@host:587. Its error describes all problems and quotes
// nothing, because the text contains a password.
func (s *SMTP) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	if err != nil {
		return errors.New("is not a URL; in user and password write : / ? # % as %3A %2F %3F %23 %25")
	}
	read := SMTP{Host: u.Hostname(), Port: u.Port(), Encryption: Encryption(u.Scheme), User: u.User.Username()}
	read.Password, _ = u.User.Password()
	if read.Port == "" {
		read.Port = smtpPorts[read.Encryption]
	}
	if read.Encryption == STARTTLS && isLoopback(read.Host) {
		// The traffic stays on this machine, and no certificate is valid for loopback.
		read.Encryption = Plain
	}
	wrong := read.problems()
	if u.Opaque != "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		wrong = append(wrong, "ends with the port; in user and password write / ? # as %2F %3F %23")
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	*s = read
	return nil
}

func (s SMTP) problems() (wrong []string) {
	if _, known := smtpPorts[s.Encryption]; !known {
		wrong = append(wrong, "must begin with smtp://, smtps:// or smtp+plain://")
	} else if port, err := strconv.ParseUint(s.Port, 10, 16); err != nil || port == 0 {
		wrong = append(wrong, "must name a port of 1 to 65535")
	}
	if s.Host == "" {
		wrong = append(wrong, "must name a host")
	}
	if (s.User == "") != (s.Password == "") {
		wrong = append(wrong, "must name both user and password, or neither")
	}
	if s.Encryption == Plain && s.User != "" && !isLoopback(s.Host) {
		wrong = append(wrong, "must not name a user with smtp+plain://, whose password anybody on the way could read")
	}
	return wrong
}

// String returns the URL without user and password, because the user names of mail servers are
// mostly e-mail addresses.
func (s SMTP) String() string {
	if s.Host == "" {
		return ""
	}
	u := url.URL{Scheme: string(s.Encryption), Host: net.JoinHostPort(s.Host, s.Port)}
	if s.User != "" {
		u.User = url.User("xxxxx")
	}
	return u.String()
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || (err == nil && ip.IsLoopback())
}

// MailAddress is an e-mail address with an optional name.
type MailAddress mail.Address

// UnmarshalText reads "Name <address>" or a plain address.
func (a *MailAddress) UnmarshalText(text []byte) error {
	read, err := mail.ParseAddress(string(text))
	if err != nil {
		return errors.New("is not an e-mail address such as Earshot <no-reply@example.com>")
	}
	*a = MailAddress(*read)
	return nil
}

// String returns an empty string or a mask, so that a list of all settings reveals no address.
func (a MailAddress) String() string {
	if a.Address == "" {
		return ""
	}
	return "***"
}
