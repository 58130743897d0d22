package api

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/swaggest/swgui/v5emb"
)

// serveDocs shows the contract, for programs and for people, without a key and
// without a network: the viewer is part of the binary.
func (s *server) serveDocs(r gin.IRouter) {
	r.GET("/v1/openapi.json", func(c *gin.Context) {
		c.Data(http.StatusOK, "application/json", s.contract.json)
	})
	page := gin.WrapH(v5emb.New("Feedback API", "/v1/openapi.json", "/v1/docs"))
	r.GET("/v1/docs", page)
	r.GET("/v1/docs/*file", page)
}
