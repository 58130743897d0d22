package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strconv"
	"strings"
	"time"
)

// SignStandard returns the value of the header webhook-signature of Standard Webhooks for a body
// that is sent at the given time: "v1,<base64 of HMAC-SHA256>". The key is the secret without its
// prefix, decoded as base64, because the libraries of Standard Webhooks read a secret like that.
// The signed text is the delivery's id, a dot, the seconds, a dot and the body as it travels. For a
// secret that isn't base64 it returns "", because no library would accept that secret. NewSecret
// makes only base64.
func SignStandard(secret, deliveryID string, at time.Time, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, SecretPrefix))
	if err != nil || len(key) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, deliveryID+"."+strconv.FormatInt(at.Unix(), 10)+".")
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
