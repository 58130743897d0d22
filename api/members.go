package api

import (
	"context"
	"net/http"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/ent/db/user"
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
	role := user.RoleMember.String()
	if r.Body.Role != nil {
		role = string(*r.Body.Role)
	}
	m, err := s.Access.CreateMember(ctx, access.NewMember{Email: r.Body.Email, Name: r.Body.Name, Role: role})
	if err != nil {
		return nil, err
	}
	change.Touch(ctx, "memberId", m.ID)
	return gen.CreateMember201JSONResponse{Data: member(m)}, nil
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
	ctx = matching(ctx, foundMember)
	id := publicid.Read[publicid.User](r.MemberID)
	m, err := s.Access.UpdateMember(ctx, id, access.MemberInput{Name: r.Body.Name, Role: (*string)(r.Body.Role)})
	if err != nil {
		return nil, err
	}
	return gen.UpdateMember200JSONResponse{Data: member(m)}, nil
}

func (s *server) DeleteMember(ctx context.Context, r gen.DeleteMemberRequestObject) (gen.DeleteMemberResponseObject, error) {
	ctx = matching(ctx, foundMember)
	id := publicid.Read[publicid.User](r.MemberID)
	if err := s.Access.RemoveMember(ctx, id); err != nil {
		return nil, err
	}
	return gen.DeleteMember200JSONResponse{Data: deleted(id)}, nil
}

func (s *server) EraseMember(ctx context.Context, r gen.EraseMemberRequestObject) (gen.EraseMemberResponseObject, error) {
	id := publicid.Read[publicid.User](r.MemberID)
	erased := func(publicid.User) gen.EraseMember200JSONResponse {
		return gen.EraseMember200JSONResponse{Data: deleted(id)}
	}
	if err := s.Subjects.EraseMember(ctx, id, request(ctx, http.StatusOK, erased)); err != nil {
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
