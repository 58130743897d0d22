package send

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/quick"

	"github.com/stretchr/testify/require"
)

// proxyVariables are all proxy variables that programs read.
var proxyVariables = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUEST_METHOD",
}

// The test isn't parallel, because the variables belong to the whole process. net/http reads them
// only once per process. The attempts therefore test whichever values come first.
func TestProxyVariablesChangeNeitherTheRouteNorTheGuardOfAnAttempt(t *testing.T) {
	proxy := receive(t, answering(response("200 OK", "")))
	r := receive(t, serving(response("204 No Content", "")))
	values := []string{"", "*", "http://" + proxy.addr, "https://" + proxy.addr, "socks5://" + proxy.addr, proxy.addr, "10.0.0.1:3128", "receiver.test"}
	guards := []Guard{{}, NewGuard(prefixes("10.0.0.0/9"), false)}
	property := func(x [4]byte, y [16]byte, seed uint64) bool {
		four, six := netip.AddrFrom4(x), netip.AddrFrom16(y)
		before := []bool{guards[0].Allowed(four), guards[0].Allowed(six), guards[1].Allowed(four), guards[1].Allowed(six)}
		random := rand.New(rand.NewPCG(seed, 0))
		for _, name := range proxyVariables {
			t.Setenv(name, values[random.IntN(len(values))])
		}
		after := []bool{guards[0].Allowed(four), guards[0].Allowed(six), guards[1].Allowed(four), guards[1].Allowed(six)}
		o := opened()
		// The random addresses are tested, too, because net/http uses no proxy for loopback.
		o.Resolver = &names{table: map[string][]string{"receiver.test": {"127.0.0.1"}, "random.test": {four.String(), "10.128.0.1"}}}
		s := newSender(t, o)
		return post(t, s, "http://receiver.test:"+r.port()+"/").Status == 204 &&
			post(t, s, "http://random.test/").Error == BlockedAddress && // one of its addresses is inner
			post(t, s, "https://random.test/").Error == BlockedAddress &&
			before[0] == after[0] && before[1] == after[1] && before[2] == after[2] && before[3] == after[3]
	}
	require.NoError(t, quick.Check(property, &quick.Config{MaxCount: 200}))
	require.Zero(t, proxy.conns.Load())
}
