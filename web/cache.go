package web

import (
	"net/http"
	"time"

	"earshot/internal/etag"
	"earshot/internal/publicid"
	"earshot/internal/telemetry"
	"earshot/web/pagecache"
)

// answer is a page, or what belongs to one.
type answer struct {
	status    int
	mediaType string
	body      []byte
	tag       string
	// maxAge is how long it may be kept without asking again.
	maxAge time.Duration
	// policy is its own Content-Security-Policy; empty is that of all pages.
	policy string
	// readers are the origins of the pages of others that may read it; nil is that it isn't for them.
	readers []string
	// of is whose page it is.
	of publicid.Organization
	// private is for one reader. Only such an answer has what follows: where to go, and what the
	// browser keeps.
	private  bool
	location string
	cookie   *http.Cookie
}

// newAnswer is what was found.
func newAnswer(status int, mediaType string, body []byte) *answer {
	return &answer{status: status, mediaType: mediaType, body: body, tag: etag.Of(body)}
}

// newCache bounds what readers cost.
func newCache(o Options) *pagecache.Cache[*answer] {
	refused := o.Meter.Counter("earshot_pages_refused", "Requests for pages of public boards that were refused because too many were being made.",
		telemetry.Labels())
	return pagecache.New(o.Slots, o.Wait, refused, func(a *answer) int { return len(a.body) })
}
