package api

import (
	"context"
	"net/http"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/publicid"
)

func (s *server) ListMembers(ctx context.Context, r gen.ListMembersRequestObject) (gen.ListMembersResponseObject, error) {
	p, err := s.Access.Members(ctx, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListMembers200JSONResponse{Data: each(p.Items, member), NextCursor: orNull(p.NextCursor)}, nil
}

func (s *server) CreateMember(ctx context.Context, r gen.CreateMemberRequestObject) (gen.CreateMemberResponseObject, error) {
	role := string(gen.MemberRoleMember)
	if r.Body.Role != nil {
		role = string(*r.Body.Role)
	}
	m, err := s.Access.CreateMember(ctx, access.NewMember{Email: r.Body.Email, Name: r.Body.Name, Role: role},
		request(ctx, http.StatusCreated, createdMember))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "memberId", m.ID)
	return createdMember(m), nil
}

func createdMember(m *db.User) gen.CreateMember201JSONResponse {
	return gen.CreateMember201JSONResponse{Data: member(m)}
}

func (s *server) GetMember(ctx context.Context, r gen.GetMemberRequestObject) (gen.GetMemberResponseObject, error) {
	m, err := s.Access.Member(ctx, publicid.Read[publicid.User](r.MemberID))
	if err != nil {
		return nil, err
	}
	return foundMember(m), nil
}

func foundMember(m *db.User) gen.GetMember200JSONResponse {
	return gen.GetMember200JSONResponse{Data: member(m)}
}

func (s *server) UpdateMember(ctx context.Context, r gen.UpdateMemberRequestObject) (gen.UpdateMemberResponseObject, error) {
	id := publicid.Read[publicid.User](r.MemberID)
	m, err := s.Access.UpdateMember(ctx, id, access.MemberInput{Name: r.Body.Name, Role: (*string)(r.Body.Role)},
		conditional(ctx, http.StatusOK, changedMember, foundMember))
	if err != nil {
		return nil, err
	}
	return changedMember(m), nil
}

func changedMember(m *db.User) gen.UpdateMember200JSONResponse {
	return gen.UpdateMember200JSONResponse{Data: member(m)}
}

func (s *server) DeleteMember(ctx context.Context, r gen.DeleteMemberRequestObject) (gen.DeleteMemberResponseObject, error) {
	id := publicid.Read[publicid.User](r.MemberID)
	gone := func(*db.User) gen.DeleteMember200JSONResponse {
		return gen.DeleteMember200JSONResponse{Data: deleted(id)}
	}
	if err := s.Access.RemoveMember(ctx, id, conditional(ctx, http.StatusOK, gone, foundMember)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func (s *server) EraseMember(ctx context.Context, r gen.EraseMemberRequestObject) (gen.EraseMemberResponseObject, error) {
	id := publicid.Read[publicid.User](r.MemberID)
	erased := func(publicid.User) gen.EraseMember200JSONResponse {
		return gen.EraseMember200JSONResponse{Data: deleted(id)}
	}
	if err := s.Privacy.EraseMember(ctx, id, request(ctx, http.StatusOK, erased)); err != nil {
		return nil, err
	}
	return erased(id), nil
}

func member(u *db.User) gen.Member {
	return gen.Member{
		ID: u.ID.String(), Email: u.Email, Name: u.Name, Role: gen.MemberRole(*u.Role),
		CreatedAt: u.CreatedAt, UpdatedAt: u.UpdatedAt,
	}
}
