package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"earshot/web/preview"
)

// previewAge is an hour, because other sites keep their copy longer anyway.
const previewAge = time.Hour

func (p *Pages) workspaceImage(ctx context.Context, v *visit) (*answer, error) {
	if shows, err := p.Feedback.HasPublicBoard(ctx); err != nil || !shows {
		return nothingOr(err)
	}
	return v.draw(preview.Preview{Title: v.org.Name})
}

func (p *Pages) boardImage(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	return v.draw(preview.Preview{Above: v.org.Name, Title: b.Name})
}

func (p *Pages) postImage(ctx context.Context, v *visit) (*answer, error) {
	b, one, err := p.onPost(ctx, v)
	if err != nil {
		return nil, err
	}
	return v.draw(preview.Preview{
		Above: v.org.Name + " · " + b.Name, Title: one.Title,
		Below: v.words.Text("status."+string(one.Status)) + " · " + v.words.Count("votes", one.VoteCount),
	})
}

func (v *visit) draw(of preview.Preview) (*answer, error) {
	if v.org.Color != nil {
		of.Color = strings.TrimPrefix(*v.org.Color, "#")
	}
	picture, err := of.Draw()
	if err != nil {
		return nil, err
	}
	a := newAnswer(http.StatusOK, "image/png", picture)
	a.maxAge = previewAge
	return a, nil
}
