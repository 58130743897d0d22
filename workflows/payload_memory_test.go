package workflows_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// payloadShare is half of the 128 MiB for payloads in a process: the share of one organization.
const payloadShare = 64 << 20

// hoard counts the bytes that were sent to hanging receivers and are not yet answered.
type hoard struct {
	mu         sync.Mutex
	held, most int
	end        <-chan struct{}
}

func (h *hoard) answer(_ int, got testkit.Received) int {
	h.add(len(got.Body))
	defer h.add(-len(got.Body))
	select {
	case <-h.end:
	case <-time.After(9 * time.Second): // an attempt ends after 10 s and frees its memory
	}
	return http.StatusOK
}

func (h *hoard) add(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held += n
	h.most = max(h.most, h.held)
}

func (h *hoard) peak() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most
}

func TestLargePayloadsToHangingReceiversLeaveMemoryForOtherOrganizations(t *testing.T) {
	tier.Slow(t, "fills the memory for payloads while receivers hang")
	t.Parallel()
	b := newBundle(t, alone(t, apptest.Options{Worker: true}))
	hanging := &hoard{end: t.Context().Done()}
	// Each has enough slots for all. On a slow machine, eight changes in 9 s fill the memory.
	const receivers, changes = 12, 30
	for range receivers {
		r := testkit.NewReceiver(t)
		r.Answer(hanging.answer)
		b.tenant.Register(t, r, "contact.updated")
	}
	// An update of all metadata of a contact is the largest event: 768 KiB.
	large := func(fill string) map[string]any {
		return map[string]any{"metadata": map[string]any{"k": strings.Repeat(fill, 255<<10)}}
	}
	contact := b.tenant.ID(t, "/v1/contacts", large("a"))
	for i := range changes {
		b.tenant.Make(t, http.MethodPatch, "/v1/contacts/"+contact, large(string(rune('b'+i%20))))
	}
	b.rows(t, "attempt_count = 0 AND next_attempt_at > created_at + interval '5 seconds'", 1, receivers*changes)

	healthy, neighbour := testkit.NewReceiver(t), b.app.Tenant(t)
	neighbour.Register(t, healthy, "contact.updated")
	contact = neighbour.ID(t, "/v1/contacts", large("a"))
	neighbour.Make(t, http.MethodPatch, "/v1/contacts/"+contact, large("b"))
	require.Greater(t, len(healthy.Await(t, 1)[0].Body), 700<<10)

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Greater(c, hanging.peak(), payloadShare*9/10)
	}, testkit.Wait, testkit.Tick)
	require.LessOrEqual(t, hanging.peak(), payloadShare)
}
