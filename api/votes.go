package api

import (
	"context"
	"net/http"

	"github.com/oapi-codegen/nullable"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

func (s *server) CastVote(ctx context.Context, r gen.CastVoteRequestObject) (gen.CastVoteResponseObject, error) {
	on := publicid.Read[publicid.Post](r.PostID)
	v, err := s.Feedback.CastVote(ctx, on, voter(r.Body), requestOf(ctx, func(v *feedback.CastVote) (int, any) {
		if v.Fresh {
			return http.StatusCreated, cast(v)
		}
		return http.StatusOK, cast(v)
	}))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "voteId", v.ID)
	return cast(v), nil
}

// voter returns the contact that a request names, if any.
func voter(body *gen.CastVoteRequest) contacts.Person {
	if body == nil {
		return contacts.Person{}
	}
	return person(body.ContactID, body.ExternalUserID, body.CreateContact)
}

func person(id, externalUserID *string, create *bool) contacts.Person {
	return contacts.Person{ID: id, ExternalUserID: externalUserID, Create: create != nil && *create}
}

func cast(v *feedback.CastVote) gen.CastVoteResponseObject {
	if v.Fresh {
		return gen.CastVote201JSONResponse{Data: vote(v.Vote)}
	}
	return gen.CastVote200JSONResponse{Data: vote(v.Vote)}
}

func (s *server) RetractVote(ctx context.Context, r gen.RetractVoteRequestObject) (gen.RetractVoteResponseObject, error) {
	on := publicid.Read[publicid.Post](r.PostID)
	who := person(r.Params.ContactID, r.Params.ExternalUserID, nil)
	v, err := s.Feedback.RetractVote(ctx, on, who, request(ctx, http.StatusOK, retracted))
	if err != nil {
		return nil, err
	}
	return retracted(v), nil
}

func retracted(v feedback.RetractedVote) gen.RetractVote200JSONResponse {
	var id *publicid.Vote
	if v.Vote != nil {
		id = &v.ID
	}
	return gen.RetractVote200JSONResponse{Data: gen.RetractedVote{ID: idOrNull(id), PostID: v.From.String()}}
}

func (s *server) ListVotes(ctx context.Context, r gen.ListVotesRequestObject) (gen.ListVotesResponseObject, error) {
	on := publicid.Read[publicid.Post](r.PostID)
	p, err := s.Feedback.Votes(ctx, on, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListVotes200JSONResponse{Data: each(p.Items, listedVote), NextCursor: orNull(p.NextCursor)}, nil
}

func vote(v *db.Vote) gen.Vote {
	return gen.Vote{
		ID: v.ID.String(), PostID: v.PostID.String(), UserID: idOrNull(v.UserID), ContactID: idOrNull(v.ContactID), CreatedAt: v.CreatedAt,
	}
}

func listedVote(v *db.Vote) gen.ListedVote {
	out := gen.ListedVote{
		ID: v.ID.String(), PostID: v.PostID.String(), UserID: idOrNull(v.UserID), ContactID: idOrNull(v.ContactID), CreatedAt: v.CreatedAt,
		Contact: nullable.NewNullNullable[gen.Voter](),
	}
	if c := v.Edges.Contact; c != nil {
		out.Contact.Set(gen.Voter{
			ID: c.ID.String(), ExternalUserID: orNull(c.ExternalUserID), Email: orNull(c.Email), Name: orNull(c.Name),
			Plan: orNull(c.Plan), MRRCents: orNull(c.MrrCents), Currency: orNull(c.Currency),
		})
	}
	return out
}
