package web

import (
	"net/http"
	"time"

	"earshot/internal/etag"
	"earshot/internal/publicid"
	"earshot/internal/telemetry"
	"earshot/web/pagecache"
)

// answer is a page or a file that belongs to one.
type answer struct {
	status    int
	mediaType string
	body      []byte
	tag       string
	// maxAge is how long a cache may use the answer without revalidation.
	maxAge time.Duration
	// policy is the answer's own Content-Security-Policy; empty means the policy of all pages.
	policy string
	// readers are the origins of other sites that may read the answer; nil if it is not meant for
	// other sites.
	readers []string
	// of is the organization that the page belongs to.
	of publicid.Organization
	// private marks an answer for one visitor. Only a private answer has a location and a cookie.
	private  bool
	location string
	cookie   *http.Cookie
}

// newAnswer returns an answer with the ETag of its body.
func newAnswer(status int, mediaType string, body []byte) *answer {
	return &answer{status: status, mediaType: mediaType, body: body, tag: etag.Of(body)}
}

// newCache makes the cache that bounds the cost of readers.
func newCache(o Options) *pagecache.Cache[*answer] {
	refused := o.Meter.Counter("earshot_pages_refused", "Requests for pages of public boards that were refused because too many were being made.",
		telemetry.Labels())
	return pagecache.New(o.Slots, o.Wait, refused, func(a *answer) int { return len(a.body) })
}
