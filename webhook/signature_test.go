package webhook_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	stripe "github.com/stripe/stripe-go/v82/webhook"

	"earshot/webhook"
)

const (
	secret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	seconds = 1614265330
	body    = `{"test": 2432232314}`
	digits  = "2e37df5d4a028c51a7f3133d64ae1e300d2c2c900f1b1d49d4369ad2530f8964"
	header  = "t=1614265330,v1=" + digits
)

var at = time.Unix(seconds, 0)

func TestSignaturesMatchTheReferenceVectors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, v1 string }{
		"an object":                           {body, digits},
		"an empty body":                       {"", "efe43455f3b9613f149ea0bb700a7837d374d778e46ceed68c4c5e8ada127744"},
		"text beyond ASCII":                   {`{"name":"Zoë — 漢字 🚀"}`, "43732ed344e17b1599ca5a5220118379ef662dec599ceaf065e6ec1dde8968d8"},
		"keys that are not in sorted order":   {`{"b":1,"a":2}`, "6247cb71bf63066d651f4da22fb1a84b45734cfaf2f62eecb042f4a54704696c"},
		"the fraction of a second is cut off": {body, digits},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, "t=1614265330,v1="+c.v1, webhook.Sign(secret, at.Add(999*time.Millisecond), []byte(c.body)))
			require.NoError(t, webhook.Verify(secret, "t=1614265330,v1="+c.v1, []byte(c.body), at))
		})
	}
}

func TestAnIndependentVerifierAcceptsOurSignatures(t *testing.T) {
	t.Parallel()
	for _, body := range []string{body, "", `{"name":"Zoë — 漢字 🚀"}`, "\x00\xff", strings.Repeat("x", 1<<20)} {
		secret, now := webhook.NewSecret(), time.Now()
		header := webhook.Sign(secret, now, []byte(body))
		require.NoError(t, stripe.ValidatePayload([]byte(body), header, secret))
		require.NoError(t, stripe.ValidatePayloadIgnoringTolerance([]byte(body), webhook.Sign(secret, at, []byte(body)), secret))
		require.Error(t, stripe.ValidatePayload([]byte(body+" "), header, secret))
	}
}

func TestWeAcceptTheSignaturesOfAnIndependentSigner(t *testing.T) {
	t.Parallel()
	signed := stripe.GenerateTestSignedPayload(&stripe.UnsignedPayload{
		Payload: []byte(body), Secret: secret, Timestamp: at,
	})
	require.NoError(t, webhook.Verify(secret, signed.Header, []byte(body), at))
}

func TestGenuineSignaturesAreAccepted(t *testing.T) {
	t.Parallel()
	wrong := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		header string
		now    time.Time
	}{
		"made this second":                        {header, at},
		"made 300 seconds ago":                    {header, at.Add(300 * time.Second)},
		"made by a clock 300 seconds ahead":       {header, at.Add(-300 * time.Second)},
		"with the parts in the other order":       {"v1=" + digits + ",t=1614265330", at},
		"with the wrong one of two v1 first":      {"t=1614265330,v1=" + wrong + ",v1=" + digits, at},
		"with the wrong one of two v1 last":       {"t=1614265330,v1=" + digits + ",v1=" + wrong, at},
		"with a v1 that is no hex beside it":      {"t=1614265330,v1=zz,v1=,v1=" + digits, at},
		"with an unknown v0 beside it":            {"v0=" + wrong + "," + header, at},
		"with unknown parts of any name and text": {header + ",x=,=,v2=a=b", at},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, webhook.Verify(secret, c.header, []byte(body), c.now))
		})
	}
}

func TestForgedAndBrokenHeadersAreRejected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header string
		want   error
	}{
		"an empty header":                         {"", webhook.ErrMissingHeader},
		"no t":                                    {"v1=" + digits, webhook.ErrMalformedHeader},
		"no v1":                                   {"t=1614265330", webhook.ErrNoMatch},
		"only a v0":                               {"t=1614265330,v0=" + digits, webhook.ErrNoMatch},
		"a digit changed":                         {"t=1614265330,v1=3" + digits[1:], webhook.ErrNoMatch},
		"a digit missing":                         {"t=1614265330,v1=" + digits[1:], webhook.ErrNoMatch},
		"an empty v1":                             {"t=1614265330,v1=", webhook.ErrNoMatch},
		"another second claimed":                  {"t=1614265331,v1=" + digits, webhook.ErrNoMatch},
		"hex in upper case":                       {"t=1614265330,v1=" + strings.ToUpper(digits), webhook.ErrNoMatch},
		"the name of v1 in upper case":            {"t=1614265330,V1=" + digits, webhook.ErrNoMatch},
		"t that is no number":                     {"t=abc,v1=" + digits, webhook.ErrMalformedHeader},
		"an empty t":                              {"t=,v1=" + digits, webhook.ErrMalformedHeader},
		"a negative t":                            {"t=-1,v1=" + digits, webhook.ErrMalformedHeader},
		"t with a plus sign":                      {"t=+1614265330,v1=" + digits, webhook.ErrMalformedHeader},
		"t with a leading zero":                   {"t=01614265330,v1=" + digits, webhook.ErrMalformedHeader},
		"t with a fraction":                       {"t=1614265330.0,v1=" + digits, webhook.ErrMalformedHeader},
		"t with a blank":                          {"t= 1614265330,v1=" + digits, webhook.ErrMalformedHeader},
		"t beyond the range of a clock":           {"t=9223372036854775807,v1=" + digits, webhook.ErrMalformedHeader},
		"t twice":                                 {"t=1614265330,t=1614265330,v1=" + digits, webhook.ErrMalformedHeader},
		"t twice, with the first empty":           {"t=,t=1614265330,v1=" + digits, webhook.ErrMalformedHeader},
		"a part without an equals sign":           {header + ",v1", webhook.ErrMalformedHeader},
		"a comma at the end":                      {header + ",", webhook.ErrMalformedHeader},
		"a header of more than 1 KiB":             {header + ",x=" + strings.Repeat("y", 1<<10), webhook.ErrMalformedHeader},
		"the key decoded from base64":             {"t=1614265330,v1=e96203c6" + digits[8:], webhook.ErrNoMatch},
		"the bare digits without any of the rest": {digits, webhook.ErrMalformedHeader},
	} {
		t.Run(name+" is rejected", func(t *testing.T) {
			t.Parallel()
			require.ErrorIs(t, webhook.Verify(secret, c.header, []byte(body), at), c.want)
		})
	}
}

func TestTheOtherReadingsOfTheSchemeAreNotOurs(t *testing.T) {
	t.Parallel()
	// The reference vectors name the first digits of other readings. These are:
	// the key decoded from base64, the prefix dropped, a comma instead of the
	// dot, the body alone.
	signed := webhook.Sign(secret, at, []byte(body))
	for _, beginning := range []string{"e96203c6", "fa563f29", "cde55f01", "80ec8a89"} {
		require.NotContains(t, signed, "v1="+beginning)
	}
	bare := strings.TrimPrefix(secret, webhook.SecretPrefix)
	require.Contains(t, webhook.Sign(bare, at, []byte(body)), "v1=fa563f29")
	require.ErrorIs(t, webhook.Verify(bare, signed, []byte(body), at), webhook.ErrNoMatch)
}

func TestStaleAndEarlySignaturesAreRejected(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]time.Time{
		"301 seconds old":                  at.Add(301 * time.Second),
		"a nanosecond over 300 seconds":    at.Add(300*time.Second + 1),
		"301 seconds ahead":                at.Add(-301 * time.Second),
		"read by a clock that was not set": {},
		"read at the end of time":          time.Unix(math.MaxInt32*1000, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorIs(t, webhook.Verify(secret, header, []byte(body), now), webhook.ErrTimestamp)
		})
	}
	for _, seconds := range []int64{0, 1, 999_999_999_999} {
		header := webhook.Sign(secret, time.Unix(seconds, 0), []byte(body))
		require.ErrorIs(t, webhook.Verify(secret, header, []byte(body), at), webhook.ErrTimestamp)
	}
}

func TestASecretThatWasNeverFilledInAcceptsNothing(t *testing.T) {
	t.Parallel()
	for _, empty := range []string{"", webhook.SecretPrefix, " ", "\n", webhook.SecretPrefix + "\n", " " + webhook.SecretPrefix + " "} {
		t.Run(strconv.Quote(empty), func(t *testing.T) {
			t.Parallel()
			forged := webhook.Sign(empty, at, []byte(body))
			require.ErrorIs(t, webhook.Verify(empty, forged, []byte(body), at), webhook.ErrMissingSecret)
		})
	}
}
