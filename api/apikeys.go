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

func (s *server) ListAPIKeys(ctx context.Context, r gen.ListAPIKeysRequestObject) (gen.ListAPIKeysResponseObject, error) {
	p, err := s.Access.APIKeys(ctx, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListAPIKeys200JSONResponse{Data: each(p.Items, apiKey), NextCursor: orNull(p.NextCursor)}, nil
}

func (s *server) CreateAPIKey(ctx context.Context, r gen.CreateAPIKeyRequestObject) (gen.CreateAPIKeyResponseObject, error) {
	var actsAs *publicid.User
	if r.Body.MemberID != nil {
		id := publicid.Read[publicid.User](*r.Body.MemberID)
		actsAs = &id
	}
	made, err := s.Access.MintAPIKey(ctx, actsAs, access.NewAPIKey{
		Name: r.Body.Name, Scope: string(r.Body.Scope), ExpiresAt: valueOf(r.Body.ExpiresAt),
	}, request(ctx, http.StatusCreated, createdAPIKey))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "keyId", made.Key.ID)
	return createdAPIKey(made), nil
}

func createdAPIKey(k *access.IssuedKey) gen.CreateAPIKey201JSONResponse {
	return gen.CreateAPIKey201JSONResponse{Data: apiKeyWithSecret(k)}
}

func (s *server) RotateAPIKey(ctx context.Context, r gen.RotateAPIKeyRequestObject) (gen.RotateAPIKeyResponseObject, error) {
	id := publicid.Read[publicid.APIKey](r.KeyID)
	made, err := s.Access.RotateAPIKey(ctx, id, r.Body.OverlapSeconds, request(ctx, http.StatusCreated, rotatedAPIKey))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "keyId", made.Key.ID)
	return rotatedAPIKey(made), nil
}

func rotatedAPIKey(k *access.IssuedKey) gen.RotateAPIKey201JSONResponse {
	return gen.RotateAPIKey201JSONResponse{Data: apiKeyWithSecret(k)}
}

func (s *server) RevokeAPIKey(ctx context.Context, r gen.RevokeAPIKeyRequestObject) (gen.RevokeAPIKeyResponseObject, error) {
	id := publicid.Read[publicid.APIKey](r.KeyID)
	keepCreated := r.Params.KeepCreated != nil && *r.Params.KeepCreated
	gone := func(*db.APIKey) gen.RevokeAPIKey200JSONResponse {
		return gen.RevokeAPIKey200JSONResponse{Data: deleted(id)}
	}
	if err := s.Access.WithdrawAPIKey(ctx, id, keepCreated, request(ctx, http.StatusOK, gone)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func apiKeyWithSecret(k *access.IssuedKey) gen.APIKeyWithSecret {
	return gen.APIKeyWithSecret{APIKeyFields: apiKey(k.Key), Key: k.Secret}
}

func apiKey(k *db.APIKey) gen.APIKeyFields {
	return gen.APIKeyFields{
		ID: k.ID.String(), UserID: k.UserID.String(), CreatedByKeyID: idOrNull(k.CreatedByKeyID),
		Name: k.Name, Prefix: k.Prefix, Scope: gen.APIKeyScope(k.Scope),
		CreatedAt: k.CreatedAt, ExpiresAt: orNull(access.KeyEnds(k)), LastUsedAt: orNull(k.LastUsedAt), RevokedAt: orNull(k.RevokedAt),
	}
}
