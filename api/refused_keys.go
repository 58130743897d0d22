package api

import (
	"github.com/gin-gonic/gin"

	"earshot/internal/clientaddr"
	"earshot/internal/ratelimit"
)

// wrongKeys is the number of invalid keys from one address that get a 401: 30 in a burst, and 30 a
// minute after that. A program with an old key still sees the 401. Keys have 238 bits, so guessing
// is hopeless at any rate.
const wrongKeys = 30

// refuseKey answers an invalid key with 401, or with 429 if its address has sent too many. Only
// invalid keys count. Many clients can share an address, and one that guesses must not lock out the
// clients with valid keys.
func (s *server) refuseKey(c *gin.Context, err error) {
	taken := s.refusedKeys.Take(clientaddr.Network(clientaddr.Of(c.Request, s.proxies)))
	if taken.OK {
		s.refuse(c, err)
		return
	}
	s.refuseRate(c, ratelimit.Decision{PerMinute: wrongKeys, Left: taken.Left, At: taken.At}, refusedOnes,
		"Too many API keys that are not valid came from this address; try again later.")
}
