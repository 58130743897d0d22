package api

import (
	"context"
	"net/http"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/privacy"
	"earshot/internal/publicid"
)

func (s *server) ExportContact(ctx context.Context, r gen.ExportContactRequestObject) (gen.ExportContactResponseObject, error) {
	exports := func(made privacy.SubjectRequest) gen.ExportContact202JSONResponse {
		return gen.ExportContact202JSONResponse{Data: subjectRequest(made.SubjectRequest)}
	}
	id := publicid.Read[publicid.Contact](r.ContactID)
	made, err := s.Privacy.Export(ctx, id, conditional(ctx, http.StatusAccepted, exports, contactBefore))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "subjectRequestId", made.ID)
	return exports(made), nil
}

// contactBefore is the GET of the contact of an export or an erasure.
func contactBefore(made privacy.SubjectRequest) gen.GetContact200JSONResponse {
	return foundContact(made.Of)
}

func (s *server) EraseContact(ctx context.Context, r gen.EraseContactRequestObject) (gen.EraseContactResponseObject, error) {
	erases := func(made privacy.SubjectRequest) gen.EraseContact202JSONResponse {
		return gen.EraseContact202JSONResponse{Data: subjectRequest(made.SubjectRequest)}
	}
	id := publicid.Read[publicid.Contact](r.ContactID)
	blank := r.Body.Text != nil && *r.Body.Text == gen.ErasedTextBlank
	made, err := s.Privacy.Erase(ctx, id, blank, conditional(ctx, http.StatusAccepted, erases, contactBefore))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "subjectRequestId", made.ID)
	return erases(made), nil
}

func (s *server) GetSubjectRequest(ctx context.Context, r gen.GetSubjectRequestRequestObject) (gen.GetSubjectRequestResponseObject, error) {
	found, err := s.Privacy.Request(ctx, publicid.Read[publicid.SubjectRequest](r.SubjectRequestID))
	if err != nil {
		return nil, err
	}
	return gen.GetSubjectRequest200JSONResponse{Data: subjectRequest(found)}, nil
}

func (s *server) ListSubjectRecords(ctx context.Context, r gen.ListSubjectRecordsRequestObject) (gen.ListSubjectRecordsResponseObject, error) {
	of := publicid.Read[publicid.SubjectRequest](r.SubjectRequestID)
	p, err := s.Privacy.Records(ctx, of, largePage(ctx, r.Params.Cursor, r.Params.Limit))
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

func subjectRecord(r privacy.Record) gen.SubjectRecord {
	return gen.SubjectRecord{Kind: r.Kind, Record: r.JSON}
}
