package privacy

import (
	"context"
	"encoding/json"

	"github.com/go-faster/errors"

	"earshot/ent/db/predicate"
	"earshot/ent/db/subjectrecord"
	"earshot/ent/db/subjectrequest"
	"earshot/internal/access"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Record is one item that an export has found.
type Record struct {
	Kind string
	JSON json.RawMessage
}

// Records lists the records of a completed export. It returns problem.Conflict while the export runs.
// It returns problem.NotFound if the request is no export, has stopped, or has expired.
func (s *Service) Records(ctx context.Context, of publicid.SubjectRequest, q page.Query) (page.Page[Record], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("subjectRecords", of)
	last := page.After[publicid.SubjectRecord](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[Record]{}, err
	}
	if err := s.mustHaveRecords(ctx, of); err != nil {
		return page.Page[Record]{}, err
	}
	where := []predicate.SubjectRecord{subjectrecord.RequestID(of)}
	if last != nil {
		where = append(where, subjectrecord.IDGT(*last))
	}
	read := func(limit, most int, where ...predicate.SubjectRecord) ([]*listedSubjectRecord, error) {
		return subjectRecordPages.Read(ctx, s.store, page.Selection[predicate.SubjectRecord]{
			Where: where, Order: "subject_records.id", Limit: limit, Most: most,
		})
	}
	rows, err := read(limit+1, page.FirstRead, where...)
	if err != nil {
		return page.Page[Record]{}, errors.Wrap(err, "list the records")
	}
	place := page.ByID(func(r *listedSubjectRecord) string { return r.ID.String() })
	found, err := page.Filled(ctx, page.LargeRows[publicid.SubjectRecord, *listedSubjectRecord]{
		List: list, Memory: q.Memory, Place: place, ID: func(r *listedSubjectRecord) publicid.SubjectRecord { return r.ID },
		Load: func(ids ...publicid.SubjectRecord) ([]*listedSubjectRecord, error) {
			return read(len(ids), page.All, subjectrecord.IDIn(ids...))
		},
		Size: func(r *listedSubjectRecord) int { return len(r.Sealed) }, // as long as its JSON
	}, page.Cut(list, rows, limit, place))
	if err != nil {
		return page.Page[Record]{}, err
	}
	for _, r := range found.Items {
		opened, err := s.secrets.OpenApart(r.ID.String(), r.Sealed)
		if err != nil {
			return page.Page[Record]{}, errors.Wrap(err, "open a record of an export")
		}
		r.Sealed = []byte(opened)
	}
	return page.Each(found, func(r *listedSubjectRecord) Record { return Record{string(r.Kind), r.Sealed} }), nil
}

func (s *Service) mustHaveRecords(ctx context.Context, id publicid.SubjectRequest) error {
	if err := access.MustAdminister(ctx, s.store.Client().APIKey); err != nil {
		return err
	}
	found, err := s.Request(ctx, id)
	switch {
	case err != nil:
		return err
	case found.Kind != subjectrequest.KindExport || found.Status == subjectrequest.StatusStopped:
		return problem.Missing("export")
	case found.Status == subjectrequest.StatusRunning:
		return problem.ExportRunning.Problem()
	case !found.ExpiresAt.After(postgres.Now()):
		return problem.Missing("export any more")
	}
	return nil
}
