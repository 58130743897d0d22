package send

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestURLsWithoutFaultAreAccepted(t *testing.T) {
	t.Parallel()
	for raw, host := range map[string]string{
		"https://example.com":                     "example.com",
		"https://example.com/hook?a=b&token=x%20": "example.com",
		"HTTPS://Example.COM/Hook":                "example.com",
		"https://example.com:8443/":               "example.com:8443",
		"https://example.com:00443/":              "example.com:443",
		"https://example.com:/":                   "example.com",
		"https://example.com.":                    "example.com.",
		"https://under_score.example.com":         "under_score.example.com",
		"https://bücher.example/":                 "xn--bcher-kva.example",
		"https://xn--bcher-kva.example/":          "xn--bcher-kva.example",
		"https://intranet/":                       "intranet",
		"https://localhost.example.com/":          "localhost.example.com",
		"https://notlocalhost/":                   "notlocalhost",
		"https://127.0.0.1.example.com/":          "127.0.0.1.example.com",
		"https://0xcafe.example/":                 "0xcafe.example",
		"https://face/":                           "face",
		"https://8.8.8.8/":                        "8.8.8.8",
		"https://[2606:4700::1111]/":              "[2606:4700::1111]",
		"https://[2606:4700::1111]:8443/":         "[2606:4700::1111]:8443",
		"https://[2606:4700:0:0::1111]/":          "[2606:4700::1111]",
		"https://[::ffff:8.8.8.8]/":               "8.8.8.8",
		"https://[64:ff9b::8.8.8.8]/":             "[64:ff9b::808:808]",
		"https://example.com/ünïcode":             "example.com",
	} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			target, verdict := Guard{}.target(raw)
			require.True(t, verdict.OK(), verdict.Reason)
			require.Equal(t, host, target.Host)
			require.Equal(t, Verdict{}, Guard{}.CheckURL(raw))
		})
	}
}

func TestURLsThatCannotBeSentToAreInvalid(t *testing.T) {
	t.Parallel()
	long := "https://example.com/" + strings.Repeat("é", maxURL)
	for name, raw := range map[string]string{
		"nothing":                         "",
		"a path only":                     "/hook",
		"a host only":                     "example.com/hook",
		"a URL relative to a scheme":      "//example.com/hook",
		"the scheme http":                 "http://example.com/",
		"the scheme ftp":                  "ftp://example.com/",
		"the scheme file":                 "file:///etc/passwd",
		"the scheme gopher":               "gopher://example.com/_x",
		"no host":                         "https:///hook",
		"a port without a host":           "https://:443/",
		"no slashes":                      "https:example.com",
		"a user":                          "https://user@example.com/",
		"a user and a password":           "https://user:pass@example.com/",
		"an empty user":                   "https://@example.com/",
		"a fragment":                      "https://example.com/#top",
		"an empty fragment":               "https://example.com/#",
		"port 0":                          "https://example.com:0/",
		"port 65536":                      "https://example.com:65536/",
		"a port that is no number":        "https://example.com:https/",
		"a negative port":                 "https://example.com:-1/",
		"two ports":                       "https://example.com:1:2/",
		"a line break":                    "https://example.com/\r\nX: y",
		"a tab":                           "https://exam\tple.com/",
		"a NUL":                           "https://example.com/\x00",
		"a DEL":                           "https://example.com/\x7f",
		"a C1 control":                    "https://example.com/\u0085",
		"a blank":                         "https://example.com/a b",
		"a blank before":                  " https://example.com/",
		"a no-break space":                "https://example.com/\u00a0",
		"a line separator":                "https://example.com/\u2028",
		"a backslash":                     `https://example.com\@10.0.0.1/`,
		"bytes that are not UTF-8":        "https://example.com/\xff",
		"2049 characters":                 long[:maxURL*2],
		"a percent sign alone":            "https://example.com/%",
		"a percent sign in the host":      "https://exa%6dple.com/",
		"an empty label":                  "https://example..com/",
		"a dot in front":                  "https://.example.com/",
		"two dots at the end":             "https://example.com../",
		"a label of 64 characters":        "https://" + strings.Repeat("a", 64) + ".com/",
		"a name of more than 253":         "https://" + strings.Repeat("abcdefg.", 32) + "com/",
		"an asterisk":                     "https://*.example.com/",
		"several hosts":                   "https://a.example,b.example/",
		"a name that IDNA refuses":        "https://xn--a\u200d.example/",
		"a broken IPv6 address":           "https://[::1/",
		"an IPv4 address in brackets":     "https://[8.8.8.8]/",
		"an address of a later version":   "https://[v1.fe80::a]/",
		"a zone":                          "https://[2606:4700::1111%25eth0]/",
		"a public address as a number":    "https://134744072/",
		"a public address in hex":         "https://0x08.8.8.8/",
		"a public address in octal":       "https://010.8.8.8/",
		"a public address of three parts": "https://8.8.8/",
		"a public address with a dot":     "https://8.8.8.8./",
		"five numbers":                    "https://1.2.3.4.5/",
		"a number that is too large":      "https://4294967296/",
		"a part that is too large":        "https://256.8.8.8/",
		"a digit that is not octal":       "https://8.8.8.08/",
		"a name that ends in a number":    "https://example.123/",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict := Guard{}.CheckURL(raw)
			require.Equal(t, InvalidURL, verdict.Class)
			require.NotEmpty(t, verdict.Reason)
		})
	}
}

func TestInnerAddressesAreBlockedInEverySpelling(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"127.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "127.1.", "2130706433", "2130706433.", "017700000001", "0x7f000001", "0X7F000001",
		"0177.0.0.1", "0x7f.0.0.1", "0x7f.1", "0177.1", "127.000.000.001", "127.0x.0.1", "0", "0.", "0x", "0.0.0.0", "00.00",
		"169.254.169.254", "2852039166", "0xa9fea9fe", "0xa9.0376.43518", "168.63.129.16", "10.1", "192.168.257", "3232235521",
		"①②⑦.⓪.⓪.①", "１２７.0.0.1", "127。0。0。1", "127．1", "⑯⑨.254.169.254", "0Ⓧ7f.1", "%E2%91%A0%E2%91%A1%E2%91%A6.0.0.1", "127.0.0.\u00ad1",
		"localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.localhost.", "ⓛocalhost", "ｌocalhost",
		"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:127.0.0.1]",
		"[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[fe80::1]", "[fe80::1%25eth0]", "[fd00::1]", "[ff02::1]", "[::1%25lo]",
	} {
		for _, port := range []string{"", ":8443"} {
			t.Run(host+port, func(t *testing.T) {
				t.Parallel()
				require.Equal(t, blocked, Guard{}.CheckURL("https://"+host+port+"/"))
			})
		}
	}
}

func TestAnAddressOpenedByConfigurationIsAcceptedAtRegistration(t *testing.T) {
	t.Parallel()
	g := NewGuard(prefixes("127.0.0.0/8"), true)
	for raw, want := range map[string]Class{
		"http://127.0.0.1:8080/":  "",
		"http://localhost:8080/":  "",
		"http://a.localhost/":     "",
		"http://[::ffff:7f00:1]/": "",
		"http://example.com/":     "",
		"http://[::1]/":           BlockedAddress,
		"http://10.0.0.1/":        BlockedAddress,
		"http://127.1/":           InvalidURL, // not every resolver accepts it
	} {
		require.Equal(t, want, g.CheckURL(raw).Class, raw)
	}
	require.True(t, NewGuard(prefixes("::1/128"), true).CheckURL("http://localhost/").OK())
	require.Equal(t, InvalidURL, NewGuard(prefixes("127.0.0.0/8"), false).CheckURL("http://127.0.0.1/").Class)
}

// FuzzCheckURL searches for an accepted URL that breaks a rule when parsed independently, and for a
// reason that repeats the URL.
func FuzzCheckURL(f *testing.F) {
	for _, raw := range []string{
		"https://example.com/hook?x=y", "https://127.1/", "https://[::ffff:127.0.0.1]:80/", "https://①②⑦.1/",
		"https://localhost./", "https://a@b/", "https://0x7f.1:443", "https://[fe80::1%25eth0]/", "http://x\\@y/#",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var g Guard
		target, verdict := g.target(raw)
		require.Equal(t, verdict, g.CheckURL(raw))
		if !verdict.OK() {
			require.NotEmpty(t, verdict.Reason)
			require.Contains(t, []Class{InvalidURL, BlockedAddress}, verdict.Class)
			return
		}
		again, err := url.Parse(target.String())
		require.NoError(t, err)
		require.Equal(t, "https", again.Scheme)
		require.Nil(t, again.User)
		require.Empty(t, again.Fragment)
		require.NotEmpty(t, again.Hostname())
		require.Equal(t, strings.ToLower(again.Host), again.Host)
		require.True(t, isASCII(again.Host))
		if addr, err := netip.ParseAddr(again.Hostname()); err == nil {
			require.True(t, g.Allowed(addr))
		}
		_, isAddress := legacyIPv4(strings.TrimSuffix(again.Hostname(), "."))
		_, err = netip.ParseAddr(again.Hostname())
		require.Equal(t, isAddress && !strings.Contains(again.Host, "["), err == nil && !strings.Contains(again.Host, "["))
		// Checking the result again changes nothing.
		twice, verdict := g.target(target.String())
		require.True(t, verdict.OK() || len(target.String()) > maxURL, verdict.Reason)
		if verdict.OK() {
			require.Equal(t, target.Host, twice.Host)
		}
	})
}
