package api

import (
	"context"
	"net/http"

	"github.com/oapi-codegen/nullable"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
)

func (s *server) ListSubmissions(ctx context.Context, r gen.ListSubmissionsRequestObject) (gen.ListSubmissionsResponseObject, error) {
	var on *publicid.Board
	if r.Params.BoardID != nil {
		id := publicid.Read[publicid.Board](*r.Params.BoardID)
		on = &id
	}
	p, err := s.PublicActions.Submissions(ctx, on, largePage(ctx, r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListSubmissions200JSONResponse{Data: each(p.Items, waiting), NextCursor: orNull(p.NextCursor)}, nil
}

func (s *server) GetSubmission(ctx context.Context, r gen.GetSubmissionRequestObject) (gen.GetSubmissionResponseObject, error) {
	found, err := s.PublicActions.Submission(ctx, publicid.Read[publicid.Submission](r.SubmissionID))
	if err != nil {
		return nil, err
	}
	return foundSubmission(found), nil
}

func foundSubmission(w *db.Submission) gen.GetSubmission200JSONResponse {
	return gen.GetSubmission200JSONResponse{Data: waiting(w)}
}

func (s *server) ApproveSubmission(ctx context.Context, r gen.ApproveSubmissionRequestObject) (gen.ApproveSubmissionResponseObject, error) {
	id := publicid.Read[publicid.Submission](r.SubmissionID)
	done, err := s.PublicActions.Approve(ctx, id, conditional(ctx, http.StatusCreated, approved, submissionBefore))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "postId", done.Post.ID)
	if done.Comment != nil {
		change.LogIDs(ctx, "commentId", done.Comment.ID)
	}
	return approved(done), nil
}

func approved(done publicactions.Decision) gen.ApproveSubmission201JSONResponse {
	out := gen.ApprovedSubmission{Post: nullable.NewNullNullable[gen.Post](), Comment: nullable.NewNullNullable[gen.Comment]()}
	if done.Comment != nil {
		out.Comment.Set(comment(done.Comment))
	} else {
		out.Post.Set(post(&feedback.Post{Post: done.Post}))
	}
	return gen.ApproveSubmission201JSONResponse{Data: out}
}

// submissionBefore is the GET of a submission that is decided.
func submissionBefore(done publicactions.Decision) gen.GetSubmission200JSONResponse {
	return foundSubmission(done.Submission)
}

func (s *server) RejectSubmission(ctx context.Context, r gen.RejectSubmissionRequestObject) (gen.RejectSubmissionResponseObject, error) {
	id := publicid.Read[publicid.Submission](r.SubmissionID)
	also := publicactions.None
	if r.Params.AlsoFrom != nil {
		also = publicactions.Also(*r.Params.AlsoFrom)
	}
	rejected := func(done publicactions.Decision) gen.RejectSubmission200JSONResponse {
		return gen.RejectSubmission200JSONResponse{Data: gen.RejectedSubmission{ID: id.String(), RejectedCount: done.Rejected}}
	}
	done, err := s.PublicActions.Reject(ctx, id, also, conditional(ctx, http.StatusOK, rejected, submissionBefore))
	if err != nil {
		return nil, err
	}
	return rejected(done), nil
}

// waiting leaves out the author of the submission.
func waiting(w *db.Submission) gen.Submission {
	out := gen.Submission{
		ID: w.ID.String(), Kind: gen.SubmissionKind(w.Kind), Reason: gen.SubmissionReason(w.Reason), BoardID: w.BoardID.String(),
		PostID: idOrNull(w.PostID), Title: nullable.NewNullNullable[string](), Body: richText(nil, w.BodyText), CreatedAt: w.CreatedAt,
	}
	if out.Kind == gen.SubmissionKindPost {
		out.Title.Set(w.Title)
	}
	return out
}
