package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"earshot/internal/problem"
)

// bouncesPath is the route by which the operator reports bounced addresses. It applies to all
// organizations. It is therefore no operation of the contract and accepts no API key.
const bouncesPath = "/mail/bounces"

// bounced takes {"addresses": […]} from a request with the operator's secret.
func (s *server) bounced(secret string) gin.HandlerFunc {
	// All hashes have the same length, so the comparison doesn't reveal the length of the secret.
	wanted := sha256.Sum256([]byte(secret))
	return func(c *gin.Context) {
		given, bearer := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(given))
		if !bearer || subtle.ConstantTimeCompare(wanted[:], got[:]) != 1 {
			c.Header("WWW-Authenticate", "Bearer")
			s.refuseKey(c, problem.New(problem.Unauthorized, "The operator's secret is missing or wrong."))
			return
		}
		var in struct {
			Addresses []string `json:"addresses"`
		}
		body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
		switch {
		case err != nil && len(body) >= maxBody:
			s.refuse(c, problem.New(problem.PayloadTooLarge, "The body is too large."))
		case err != nil || json.Unmarshal(body, &in) != nil:
			var bad problem.Fields
			bad.Add("", "json", `must be an object such as {"addresses": ["ada@example.com"]}`)
			s.refuse(c, bad.Err())
		default:
			s.suppress(c, in.Addresses)
		}
	}
}

func (s *server) suppress(c *gin.Context, addresses []string) {
	n, err := s.Subscribers.Bounced(c.Request.Context(), addresses)
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"suppressed": n})
}
