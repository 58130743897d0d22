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
	// maxWebhookURL is the specification's limit.
	maxWebhookURL = 2048
	// The same limits as for a board's description and a contact's metadata.
	maxDescription  = 500
	maxMetadataKeys = 100
	// The list of webhooks can return all 25 at once, with at most 400 KiB of metadata.
	maxMetadataBytes = 16 << 10
	// A receiver that answers in 60 ms gets about this many attempts a second through the 64 slots
	// of one process. A higher limit would rarely have an effect.
	highestPerSecond = 1000
)

// WebhookInput holds the members of a new webhook, or the changes to an existing one. A member that
// is nil or unset stays as it is.
type WebhookInput struct {
	URL         *string
	Events      *[]string
	Enabled     *bool
	Description nullable.Nullable[string]
	// Metadata replaces the stored metadata.
	Metadata map[string]string
	// MaxPerSecond limits the attempts; null removes the limit.
	MaxPerSecond nullable.Nullable[int]
}

// checkNewWebhook is checkWebhook for a new webhook, which needs a URL and events.
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

// isEvent checks that name is an event type to which a webhook can subscribe.
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

// jsonSize returns the size of texts as JSON, without the extra escapes of Go's encoder. By default
// the encoder writes <, > and & as six bytes, for HTML pages. It also escapes Unicode's line
// separators, for old JavaScript; in UTF-8 they have three bytes.
func jsonSize(texts map[string]string) int {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(texts)      // texts always encode
	size := text.Len() - len("\n") // Encode appends it to the value
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

// onlyDisables reports whether the change only disables the webhook, which is always allowed.
func (in WebhookInput) onlyDisables() bool {
	return in.URL == nil && in.Events == nil && in.Enabled != nil && !*in.Enabled &&
		!in.Description.IsSpecified() && in.Metadata == nil && !in.MaxPerSecond.IsSpecified()
}

// describe applies the changes of the description and the metadata.
func (in WebhookInput) describe(update *db.WebhookUpdateOne, old *db.Webhook) {
	if description := change.Value(in.Description); in.Description.IsSpecified() && !change.Same(description, old.Description) {
		change.OrEmpty(description, update.SetDescription, update.ClearDescription)
	}
	if in.Metadata != nil && !maps.Equal(in.Metadata, old.Metadata) {
		update.SetMetadata(in.Metadata)
	}
}

// throttle applies the change of the rate limit. Waiting attempts keep their turns under the old
// limit, and use the new limit when a turn comes. The next attempt that asks begins a new line.
func (in WebhookInput) throttle(update *db.WebhookUpdateOne, old *db.Webhook) {
	most := change.Value(in.MaxPerSecond)
	if !in.MaxPerSecond.IsSpecified() || change.Same(most, old.MaxPerSecond) {
		return
	}
	change.OrEmpty(most, update.SetMaxPerSecond, update.ClearMaxPerSecond)
}
