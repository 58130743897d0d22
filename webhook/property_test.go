package webhook_test

import (
	"bytes"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/require"
	stripe "github.com/stripe/stripe-go/v82/webhook"

	"earshot/webhook"
)

func TestASignatureVerifiesUnlessAByteIsFlipped(t *testing.T) {
	t.Parallel()
	holds := func(body []byte, seconds uint32, position uint, flip uint8) bool {
		secret, at := webhook.NewSecret(), time.Unix(int64(seconds), 0)
		header := webhook.Sign(secret, at, body)
		if webhook.Verify(secret, header, body, at) != nil {
			return false
		}
		if flip == 0 {
			flip = 1
		}
		changed := append(bytes.Clone(body), 0) // never empty
		changed[position%uint(len(changed))] ^= flip
		if webhook.Verify(secret, header, changed, at) == nil {
			return false
		}
		text := []byte(header)
		text[position%uint(len(text))] ^= flip
		if webhook.Verify(secret, string(text), body, at) == nil {
			return false
		}
		key := []byte(secret)
		key[position%uint(len(key))] ^= flip
		return webhook.Verify(string(key), header, body, at) != nil
	}
	require.NoError(t, quick.Check(holds, &quick.Config{MaxCount: 2000}))
}

func TestEveryBitOfTheHeaderMatters(t *testing.T) {
	t.Parallel()
	for i := range header {
		for bit := range 8 {
			changed := []byte(header)
			changed[i] ^= 1 << bit
			require.Error(t, webhook.Verify(secret, string(changed), []byte(body), at), "byte %d bit %d", i, bit)
		}
	}
}

// FuzzVerify looks for a header that we accept and that an independent verifier
// of the same scheme refuses. Ours may be stricter, but never laxer. Stripe's
// verifier is laxer about the digits of t and the case of hex.
func FuzzVerify(f *testing.F) {
	f.Add(header, []byte(body))
	f.Add("v1="+digits+",t=1614265330", []byte(body))
	f.Add("t=1614265330,v1=00,v1="+digits+",v0=1", []byte(body))
	f.Add("t=-1,v1="+digits, []byte(body))
	f.Add("t=,v1=", []byte{})
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		if webhook.Verify(secret, header, body, at) != nil {
			return
		}
		if bytes.Count([]byte(header), []byte("=")) != bytes.Count([]byte(header), []byte(","))+1 {
			return // a part of unknown name with several equals signs, which Stripe refuses
		}
		require.NoError(t, stripe.ValidatePayloadIgnoringTolerance(body, header, secret))
	})
}
