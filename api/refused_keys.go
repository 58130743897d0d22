package api

import (
	"github.com/gin-gonic/gin"

	"earshot/internal/access"
	"earshot/internal/clientaddr"
)

// wrongKeys is how many of an address are refused by themselves a minute, and at once: a program
// that was given an old key shows, and nobody guesses 238 bits at this rate or any other.
const wrongKeys = 30

// refuseKey answers a key that isn't valid: 401, and 429 to whoever had many. Only a key that is
// refused is counted: many clients share one address, and one of them that guesses must not keep
// out those with valid keys.
func (s *server) refuseKey(c *gin.Context, err error) {
	taken := s.refusedKeys.Take(clientaddr.Network(clientaddr.Of(c.Request, s.proxies)))
	if taken.OK {
		s.refuse(c, err)
		return
	}
	s.refuseRate(c, access.RateLimit{PerMinute: wrongKeys, Left: taken.Left, At: taken.At}, refusedOnes,
		"Too many API keys that are not valid came from this address; try again later.")
}
