package api

import (
	"context"
	"net/http"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/widget"
)

func (s *server) ListWidgetSecrets(ctx context.Context, r gen.ListWidgetSecretsRequestObject) (gen.ListWidgetSecretsResponseObject, error) {
	p, err := s.Widget.Secrets(ctx, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListWidgetSecrets200JSONResponse{Data: each(p.Items, widgetSecret), NextCursor: orNull(p.NextCursor)}, nil
}

func (s *server) CreateWidgetSecret(ctx context.Context, _ gen.CreateWidgetSecretRequestObject) (gen.CreateWidgetSecretResponseObject, error) {
	made, err := s.Widget.CreateSecret(ctx, request(ctx, http.StatusCreated, createdWidgetSecret))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "widgetSecretId", made.Secret.ID)
	return createdWidgetSecret(made), nil
}

func createdWidgetSecret(w *widget.MadeSecret) gen.CreateWidgetSecret201JSONResponse {
	return gen.CreateWidgetSecret201JSONResponse{
		Data: gen.WidgetSecretWithSecret{WidgetSecretFields: widgetSecret(w.Secret), Secret: w.Value},
	}
}

func (s *server) DeleteWidgetSecret(ctx context.Context, r gen.DeleteWidgetSecretRequestObject) (gen.DeleteWidgetSecretResponseObject, error) {
	id := publicid.Read[publicid.WidgetSecret](r.SecretID)
	gone := func(*db.WidgetSecret) gen.DeleteWidgetSecret200JSONResponse {
		return gen.DeleteWidgetSecret200JSONResponse{Data: deleted(id)}
	}
	if err := s.Widget.DeleteSecret(ctx, id, request(ctx, http.StatusOK, gone)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func (s *server) GetWidgetOrigins(ctx context.Context, _ gen.GetWidgetOriginsRequestObject) (gen.GetWidgetOriginsResponseObject, error) {
	origins, err := s.Widget.Origins(ctx)
	if err != nil {
		return nil, err
	}
	return foundOrigins(origins), nil
}

func foundOrigins(origins []string) gen.GetWidgetOrigins200JSONResponse {
	return gen.GetWidgetOrigins200JSONResponse{Data: widgetOrigins(origins)}
}

func (s *server) ReplaceWidgetOrigins(ctx context.Context, r gen.ReplaceWidgetOriginsRequestObject) (gen.ReplaceWidgetOriginsResponseObject, error) {
	origins, err := s.Widget.ReplaceOrigins(ctx, r.Body.Origins, conditional(ctx, http.StatusOK, replacedOrigins, foundOrigins))
	if err != nil {
		return nil, err
	}
	return replacedOrigins(origins), nil
}

func replacedOrigins(origins []string) gen.ReplaceWidgetOrigins200JSONResponse {
	return gen.ReplaceWidgetOrigins200JSONResponse{Data: widgetOrigins(origins)}
}

func widgetOrigins(origins []string) gen.WidgetOrigins {
	return gen.WidgetOrigins{Origins: append([]string{}, origins...)}
}

func widgetSecret(w *db.WidgetSecret) gen.WidgetSecretFields {
	return gen.WidgetSecretFields{ID: w.ID.String(), CreatedAt: w.CreatedAt}
}
