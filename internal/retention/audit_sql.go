package retention

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// This file removes old lines of the audit trail, and old receipts and records of data-subject
// requests, of all organizations. The retention that is configured for deliveries does not apply
// here.

const (
	// AuditRetention is how long the audit trail goes back, and how long receipts are kept.
	auditRetention = 365 * 24 * time.Hour
	// ExportRetention is how long the records of an export are kept. They are a copy of all data
	// about a person, and are there to be downloaded and passed on.
	ExportRetention = 7 * 24 * time.Hour
)

// The limits are literals as in retention.go.
const (
	oldAuditEntriesSQL = `
DELETE FROM audit_entries WHERE id IN (
  SELECT id FROM audit_entries WHERE id < $1 ORDER BY id LIMIT 500 FOR UPDATE SKIP LOCKED)`
	oldSubjectRecordsSQL = `
DELETE FROM subject_records WHERE id IN (
  SELECT r.id FROM subject_requests q JOIN subject_records r ON r.request_id = q.id
  WHERE q.expires_at <= $1 LIMIT 500 FOR UPDATE OF r SKIP LOCKED)`
	oldSubjectRequestsSQL = `
DELETE FROM subject_requests WHERE id IN (
  SELECT id FROM subject_requests WHERE finished_at <= $1 LIMIT 500 FOR UPDATE SKIP LOCKED)`
)

// RemoveAuditEntries removes one page of lines that are too old, and returns how many. Whole is true
// if there may be more.
func RemoveAuditEntries(ctx context.Context, s *postgres.DB) (removed int, whole bool, err error) {
	return removePage(ctx, s, oldAuditEntriesSQL, publicid.AuditEntryAt(postgres.Now().Add(-auditRetention)).UUID())
}

// RemoveSubjectRecords is RemoveAuditEntries for the records of exports.
func RemoveSubjectRecords(ctx context.Context, s *postgres.DB) (removed int, whole bool, err error) {
	return removePage(ctx, s, oldSubjectRecordsSQL, postgres.Now())
}

// RemoveSubjectRequests is RemoveAuditEntries for receipts.
func RemoveSubjectRequests(ctx context.Context, s *postgres.DB) (removed int, whole bool, err error) {
	return removePage(ctx, s, oldSubjectRequestsSQL, postgres.Now().Add(-auditRetention))
}

func removePage(ctx context.Context, s *postgres.DB, statement string, before any) (removed int, whole bool, err error) {
	done, err := s.Across(ofAll).Exec(ctx, statement, before)
	if err != nil {
		return 0, false, errors.Wrap(err, "remove expired rows")
	}
	removed = int(done.RowsAffected())
	return removed, removed == 500, nil
}
