package retention

import (
	"context"
	"time"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// This file removes the data about end-users that limits have noted, of all organizations. The
// retention that is configured for deliveries does not apply here.

const (
	// NetworkRetention is how long a submission keeps the hash of its network. It equals
	// interactions.Remembered. A moderator who looks at the queue once a month can still reject a
	// flood by its network.
	NetworkRetention = 30 * 24 * time.Hour
	// FirstMailRetention is how long an address counts as one that was mailed before. A year
	// later the next e-mail counts as a first one again, which only delays it.
	FirstMailRetention = 365 * 24 * time.Hour
)

// The limits are literals as in retention.go.
const (
	oldNetworksSQL = `
UPDATE submissions SET network_hash = NULL WHERE id IN (
  SELECT id FROM submissions WHERE id < $1 AND network_hash IS NOT NULL ORDER BY id LIMIT 500 FOR UPDATE SKIP LOCKED)`
	oldFirstMailsSQL = `
DELETE FROM first_mails WHERE (organization_id, email_hash) IN (
  SELECT organization_id, email_hash FROM first_mails WHERE slot_at <= $1 LIMIT 500 FOR UPDATE SKIP LOCKED)`
)

// ForgetNetworks is RemoveAuditEntries for the network hashes of submissions. The submissions stay.
func ForgetNetworks(ctx context.Context, s *postgres.DB) (removed int, whole bool, err error) {
	return removePage(ctx, s, oldNetworksSQL, publicid.SubmissionAt(postgres.Now().Add(-NetworkRetention)).UUID())
}

// RemoveFirstMails is RemoveAuditEntries for the slots of first e-mails.
func RemoveFirstMails(ctx context.Context, s *postgres.DB) (removed int, whole bool, err error) {
	return removePage(ctx, s, oldFirstMailsSQL, postgres.Now().Add(-FirstMailRetention))
}
