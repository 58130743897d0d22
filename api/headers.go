package api

import "github.com/gin-gonic/gin"

const policyHeader = "Content-Security-Policy"

// secure sets the headers for browsers and caches. They forbid almost everything, because this is
// an API for servers, and each answer is private to its caller. There is no CORS, because a browser
// must not hold a key. The proxy sets Strict-Transport-Security, because it has the certificate.
func secure(c *gin.Context) {
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Cache-Control", "no-store")
	c.Header(policyHeader, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	c.Header("Cross-Origin-Opener-Policy", "same-origin")
	c.Header("Cross-Origin-Resource-Policy", "same-origin")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// public is for answers that are the same for everybody. Caches may store them but must revalidate
// them, so that a new version shows immediately.
func public(c *gin.Context) { c.Header("Cache-Control", "no-cache") }
