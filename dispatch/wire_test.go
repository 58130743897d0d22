package dispatch_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"earshot/dispatch"
	"earshot/internal/backfill"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/jobs"
	"earshot/internal/privacy"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/webhooks"
)

// wire records the requests that start and signal runs.
type wire struct {
	mu   sync.Mutex
	sent []any
}

func (w *wire) record(
	ctx context.Context, method string, request, reply any, c *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption,
) error {
	name := method[strings.LastIndex(method, "/")+1:]
	if strings.HasPrefix(name, "Start") || strings.HasPrefix(name, "Signal") {
		text, err := protojson.Marshal(request.(proto.Message))
		if err != nil {
			return err
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		for _, differs := range []string{"namespace", "requestId", "identity"} {
			delete(fields, differs)
		}
		w.mu.Lock()
		w.sent = append(w.sent, readable(map[string]any{name: fields}))
		w.mu.Unlock()
	}
	return call(ctx, method, request, reply, c, o...)
}

// readable decodes the payloads in a JSON value.
func readable(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = readable(v[i])
		}
	case map[string]any:
		for key, inner := range v {
			if text, ok := inner.(string); ok && (key == "data" || key == "encoding") {
				if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
					v[key] = string(raw)
				}
				continue
			}
			v[key] = readable(inner)
		}
	}
	return v
}

// Open runs, workers of other releases and operators depend on these requests.
func TestTheRequestsToTemporalStayTheSame(t *testing.T) {
	t.Parallel()
	var (
		of           = publicid.NewOrganization()
		hook         = publicid.NewWebhook()
		entry        = publicid.NewChangelogEntry()
		recovery     = publicid.NewRecovery()
		request      = publicid.NewSubjectRequest()
		backfilled   = publicid.NewContactBackfill()
		interaction  = publicid.NewInteraction()
		placeholders = strings.NewReplacer(of.String(), "<organization>", hook.String(), "<webhook>", entry.String(), "<entry>",
			recovery.String(), "<recovery>", request.String(), "<request>", backfilled.String(), "<backfill>", interaction.String(), "<interaction>")
		w       = &wire{}
		options = testkit.Namespace(t)
	)
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(w.record))
	connection := dispatch.NewConnection(options)
	t.Cleanup(connection.Close)
	d := dispatch.New(connection, 60, testkit.Log(t))
	d.Queue([]jobs.Request{
		feedback.PublishRun(entry, of), webhooks.RecoveryRun(recovery, hook, of), privacy.Run(request, of), backfill.Run(backfilled, of),
		webhooks.StreakEnded(hook), publicactions.Run(interaction, of), publicactions.ConfirmedRun(interaction), change.NotifySubscribers(of),
	})
	d.Drain(t.Context())
	require.NoError(t, d.Do(t.Context(), webhooks.StreakGrew(hook)))
	require.NoError(t, d.Do(t.Context(), webhooks.StreakEnded(hook)))
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	require.NoError(t, e.Encode(w.sent))
	golden := filepath.Join("testdata", "wire.json")
	got := placeholders.Replace(text.String())
	if os.Getenv("UPDATE_WIRE") != "" {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
