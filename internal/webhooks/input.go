package webhooks

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/problem"
)

const (
	// maxWebhookURL is the specification's.
	maxWebhookURL = 2048
	// Those of a board's description and of a contact's metadata.
	maxDescription  = 500
	maxMetadataKeys = 100
	// The list of webhooks comes whole, 25 of them, so it has 400 KiB of metadata at most.
	maxMetadataBytes = 16 << 10
	// As many as a receiver of one process takes that answers in 60 ms, by its 64 slots: a higher
	// limit would rarely be one.
	highestPerSecond = 1000
)

// WebhookInput is what a webhook is made of, or what is changed of it; nil, or a member that
// isn't set, leaves it as it is.
type WebhookInput struct {
	URL         *string
	Events      *[]string
	Enabled     *bool
	Description nullable.Nullable[string]
	// Metadata replaces what was there.
	Metadata map[string]string
	// MaxPerSecond are attempts; null is no limit.
	MaxPerSecond nullable.Nullable[int]
}

// checkNewWebhook is checkWebhook for one that is to be made.
func (s *Service) checkNewWebhook(in WebhookInput) error {
	var bad problem.Fields
	if in.URL == nil {
		bad.Add("url", "required", "is required")
	}
	if in.Events == nil {
		bad.Add("events", "required", "is required")
	}
	s.checkMembers(&bad, in)
	return bad.Err()
}

func (s *Service) checkWebhook(in WebhookInput) error {
	var bad problem.Fields
	s.checkMembers(&bad, in)
	return bad.Err()
}

func (s *Service) checkMembers(bad *problem.Fields, in WebhookInput) {
	if in.URL != nil {
		bad.Text("url", *in.URL, 1, maxWebhookURL)
		if verdict := s.guard.CheckURL(*in.URL); !verdict.OK() && *in.URL != "" {
			bad.Add("url", string(verdict.Class), "%s", verdict.Reason)
		}
	}
	if in.Events != nil {
		checkEvents(bad, *in.Events)
	}
	change.Given(in.Description, func(text string) { bad.Text("description", text, 0, maxDescription) })
	checkMetadata(bad, in.Metadata)
	change.Given(in.MaxPerSecond, func(most int) {
		if most < 1 {
			bad.Add("maxPerSecond", "minimum", "must be at least 1")
		}
		if most > highestPerSecond {
			bad.Add("maxPerSecond", "maximum", "must be at most %d", highestPerSecond)
		}
	})
}

func checkEvents(bad *problem.Fields, events []string) {
	if len(events) == 0 {
		bad.Add("events", "minItems", "must have at least 1 item")
	}
	for i, name := range events {
		isEvent(bad, problem.Item("events", i), name)
	}
}

// isEvent judges the name of an event that can be subscribed to.
func isEvent(bad *problem.Fields, field, name string) {
	if !slices.Contains(event.Types, event.Type(name)) {
		bad.Add(field, "enum", "is not an event; the events are %s", eventNames(event.Types))
	}
}

func checkMetadata(bad *problem.Fields, metadata map[string]string) {
	if len(metadata) > maxMetadataKeys {
		bad.Add("metadata", "maxProperties", "must have at most %d keys, not %d", maxMetadataKeys, len(metadata))
		return
	}
	if size := jsonSize(metadata); size > maxMetadataBytes {
		bad.Add("metadata", "maxBytes", "must have at most %d bytes as JSON, not %d", maxMetadataBytes, size)
	}
}

// jsonSize is how many bytes texts have as JSON. The encoder counts more: it writes six bytes for
// each of <, > and &, which pages in HTML need, and for the line separators of Unicode, which
// old JavaScript needs. Those have three bytes of UTF-8.
func jsonSize(texts map[string]string) int {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(texts)      // texts always encode
	size := text.Len() - len("\n") // which Encode puts behind the value
	for key, value := range texts {
		for _, separator := range []string{"\u2028", "\u2029"} {
			size -= strings.Count(key+value, separator) * (len(`\u2028`) - len(separator))
		}
	}
	return size
}

func eventNames(types []event.Type) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// distinct drops repeated events: a subscription is a set.
func distinct(events []string) []string {
	var out []string
	for _, e := range events {
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

// onlyDisables is a change that is always possible.
func (in WebhookInput) onlyDisables() bool {
	return in.URL == nil && in.Events == nil && in.Enabled != nil && !*in.Enabled &&
		!in.Description.IsSpecified() && in.Metadata == nil && !in.MaxPerSecond.IsSpecified()
}

// describe changes what the owner says about the webhook.
func (in WebhookInput) describe(update *db.WebhookUpdateOne, old *db.Webhook) {
	if description := change.Value(in.Description); in.Description.IsSpecified() && !change.Same(description, old.Description) {
		change.OrEmpty(description, update.SetDescription, update.ClearDescription)
	}
	if in.Metadata != nil && !maps.Equal(in.Metadata, old.Metadata) {
		update.SetMetadata(in.Metadata)
	}
}

// throttle changes the limit. What waits under the one before has its turns still, and goes by
// the new one when they come; a new line begins with the next who asks.
func (in WebhookInput) throttle(update *db.WebhookUpdateOne, old *db.Webhook) {
	most := change.Value(in.MaxPerSecond)
	if !in.MaxPerSecond.IsSpecified() || change.Same(most, old.MaxPerSecond) {
		return
	}
	change.OrEmpty(most, update.SetMaxPerSecond, update.ClearMaxPerSecond)
}
