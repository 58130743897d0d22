package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// tolerance is how far a signature's time may be from now (specification, Signature rule 3).
const tolerance = 300 * time.Second

// genuine reports whether a request has exactly one signature header, made with the secret for this
// body at about this time (specification, Signature rules 1 to 3).
func genuine(secret string, headers []string, body []byte, now time.Time) bool {
	if secret == "" || len(headers) != 1 {
		return false
	}
	moment, signature, ok := strings.Cut(headers[0], ",v1=")
	seconds, isMoment := strings.CutPrefix(moment, "t=")
	if !ok || !isMoment {
		return false
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || now.Sub(time.Unix(at, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	return hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(signature))
}

// subjectOf returns the id of the payload's object, or "" if the payload has no known object.
func subjectOf(body []byte) string {
	type thing struct {
		ID string `json:"id"`
	}
	// A payload has one of these objects (specification, Payload shapes).
	var payload struct {
		Post, Vote, Comment, Entry, Contact, Webhook thing
	}
	if json.Unmarshal(body, &payload) != nil {
		return ""
	}
	for _, t := range []thing{
		payload.Post, payload.Vote, payload.Comment, payload.Entry, payload.Contact, payload.Webhook,
	} {
		if t.ID != "" {
			return t.ID
		}
	}
	return ""
}
