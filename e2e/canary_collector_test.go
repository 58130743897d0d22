package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// spanCollector receives spans as a collector does: OTLP over HTTP.
type spanCollector struct {
	url string
	// key is the key that senders must send.
	key string

	mu    sync.Mutex
	spans strings.Builder
}

func newSpanCollector(t *testing.T, key string) *spanCollector {
	t.Helper()
	s := &spanCollector{key: key}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		var sent collector.ExportTraceServiceRequest
		assert.NoError(t, proto.Unmarshal(body, &sent))
		assert.Equal(t, "/v1/traces", r.URL.Path)
		assert.Equal(t, s.key, r.Header.Get("X-Key"))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.spans.WriteString(protojson.Format(&sent))
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// settings returns the environment of a process that sends all of its spans here.
func (s *spanCollector) settings() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.url, "OTEL_EXPORTER_OTLP_HEADERS=x-key=" + s.key, "OTEL_TRACES_SAMPLER=always_on"}
}

// all returns all spans so far, as text.
func (s *spanCollector) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spans.String()
}
