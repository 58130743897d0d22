package api

import "github.com/gin-gonic/gin"

const policyHeader = "Content-Security-Policy"

// secure tells browsers and caches what to do with answers, which is next to
// nothing: this is an API for servers, and what it answers is its caller's alone.
// There is no CORS, because a browser must not hold a key. Strict-Transport-Security
// belongs to whoever has the certificate, the proxy.
func secure(c *gin.Context) {
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Cache-Control", "no-store")
	c.Header(policyHeader, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	c.Header("Cross-Origin-Opener-Policy", "same-origin")
	c.Header("Cross-Origin-Resource-Policy", "same-origin")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// public is for what is everybody's: it may be kept, and is asked for again, so that
// a new version shows at once.
func public(c *gin.Context) { c.Header("Cache-Control", "no-cache") }
