package api

import (
	"context"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/subjects"
)

func (s *server) ExportContact(ctx context.Context, r gen.ExportContactRequestObject) (gen.ExportContactResponseObject, error) {
	ctx = matching(ctx, foundContact)
	made, err := s.Subjects.Export(ctx, publicid.Read[publicid.Contact](r.ContactID))
	if err != nil {
		return nil, err
	}
	change.Touch(ctx, "subjectRequestId", made.ID)
	return gen.ExportContact202JSONResponse{Data: subjectRequest(made)}, nil
}

func (s *server) EraseContact(ctx context.Context, r gen.EraseContactRequestObject) (gen.EraseContactResponseObject, error) {
	ctx = matching(ctx, foundContact)
	blank := r.Body.Text != nil && *r.Body.Text == gen.ErasedTextBlank
	made, err := s.Subjects.Erase(ctx, publicid.Read[publicid.Contact](r.ContactID), blank)
	if err != nil {
		return nil, err
	}
	change.Touch(ctx, "subjectRequestId", made.ID)
	return gen.EraseContact202JSONResponse{Data: subjectRequest(made)}, nil
}

func (s *server) GetSubjectRequest(ctx context.Context, r gen.GetSubjectRequestRequestObject) (gen.GetSubjectRequestResponseObject, error) {
	found, err := s.Subjects.Request(ctx, publicid.Read[publicid.SubjectRequest](r.SubjectRequestID))
	if err != nil {
		return nil, err
	}
	return gen.GetSubjectRequest200JSONResponse{Data: subjectRequest(found)}, nil
}

func (s *server) ListSubjectRecords(ctx context.Context, r gen.ListSubjectRecordsRequestObject) (gen.ListSubjectRecordsResponseObject, error) {
	of := publicid.Read[publicid.SubjectRequest](r.SubjectRequestID)
	p, err := s.Subjects.Records(ctx, of, largePage(ctx, r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListSubjectRecords200JSONResponse{Data: each(p.Items, subjectRecord), NextCursor: orNull(p.NextCursor)}, nil
}

func subjectRequest(r *db.SubjectRequest) gen.SubjectRequest {
	return gen.SubjectRequest{
		ID: r.ID.String(), Kind: gen.SubjectRequestKind(r.Kind), ContactID: r.ContactID.String(),
		Text: orNull((*gen.ErasedText)(r.Text)), Status: gen.SubjectRequestStatus(r.Status), StoppedReason: orNull(r.StoppedReason),
		Records: r.Records, SameAddressContactIds: each(r.SameAddress, publicid.Contact.String),
		CreatedAt: r.CreatedAt, FinishedAt: orNull(r.FinishedAt), ExpiresAt: orNull(r.ExpiresAt),
	}
}

func subjectRecord(r subjects.Record) gen.SubjectRecord {
	return gen.SubjectRecord{Kind: r.Kind, Record: r.JSON}
}
