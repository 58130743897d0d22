package api

import (
	"log/slog"
	"time"

	"github.com/gin-gonic/gin"

	"earshot/internal/change"
)

// logAccess writes one line per request: the operation, the caller, the touched resources and the
// outcome. It never logs the body, the query or the key.
func (s *server) logAccess(c *gin.Context) {
	began := time.Now()
	ctx, touched := change.WithLoggedIDs(c.Request.Context())
	c.Request = c.Request.WithContext(ctx)
	c.Next()
	attrs := []slog.Attr{
		slog.String("requestId", requestID(c)),
		slog.String("method", c.Request.Method),
		slog.String("route", c.FullPath()),
		slog.Int("status", c.Writer.Status()),
		slog.Int("bytes", c.Writer.Size()),
		slog.Duration("duration", time.Since(began)),
	}
	if caller, ok := callerOf(c); ok {
		attrs = append(attrs, slog.String("organizationId", caller.Organization.ID.String()),
			slog.String("keyId", caller.Key.ID.String()))
	}
	if call := callOf(c); call != nil {
		attrs = append(attrs, slog.String("tool", call.tool))
	}
	if c.Writer.Header().Get(replayedHeader) != "" {
		attrs = append(attrs, slog.Bool("replayed", true))
	}
	if c.Writer.Status() < 400 {
		for _, p := range c.Params {
			attrs = append(attrs, slog.String(p.Key, p.Value)) // ids, or the path of a page
		}
		attrs = append(attrs, touched.Attrs()...) // of committed changes
	}
	s.log.LogAttrs(c, slog.LevelInfo, "request", attrs...)
}
