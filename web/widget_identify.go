package web

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-faster/errors"

	"earshot/api"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/memory"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/ratelimit"
	"earshot/internal/widget"
	"earshot/web/pagecache"
)

const (
	// tokensOfNetwork limits the requests of one network per minute. An office may share one
	// address, and each opened page sends one request. A refused visitor is identified by the next
	// page.
	tokensOfNetwork = 120
	// tokensOfOrganization limits the requests of one organization per minute in each process. It
	// is a fiftieth of the capacity, so that the pages of one customer leave room for the others.
	tokensOfOrganization = 6000
	// preflightFor is the time in seconds for which a browser caches a preflight: Chromium's
	// maximum.
	preflightFor = "7200"
	// maxIdentify is the largest body that needs no reservation (internal/memory). It is several
	// times as long as a token.
	maxIdentify = memory.FreeBody
)

// identifier identifies end-users by tokens that their organization's server has signed.
type identifier struct {
	pages         *Pages
	networks      *ratelimit.Buckets[netip.Prefix]
	organizations *ratelimit.Buckets[publicid.Organization]
}

func newIdentifier(p *Pages) *identifier {
	return &identifier{p, ratelimit.NewBuckets[netip.Prefix](tokensOfNetwork), ratelimit.NewBuckets[publicid.Organization](tokensOfOrganization)}
}

func (i *identifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "Origin")
	ctx, cancel := context.WithTimeout(r.Context(), pagecache.MakeTimeout)
	defer cancel()
	if err := i.answer(ctx, w, r); err != nil {
		i.pages.refuse(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (i *identifier) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	if !i.networks.Take(i.pages.network(r)).OK {
		return errMany()
	}
	of, err := i.organization(ctx, r)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	if r.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", http.MethodPost)
		header.Set("Access-Control-Allow-Headers", "Content-Type")
		header.Set("Access-Control-Max-Age", preflightFor)
		return nil
	}
	token, err := readToken(w, r)
	if err != nil {
		return err
	}
	// Only tokens with a valid signature count towards the organization's limit, because any client
	// can send invalid ones.
	return told(i.pages.UseCases.Widget.Identify(change.WithCaller(ctx, &change.Caller{Organization: of}), token, func() error {
		if !i.organizations.Take(of.ID).OK {
			return errMany()
		}
		return nil
	}))
}

// organization loads the organization of the address and checks that it allows the page's origin.
// An unknown organization gets the same refusal, so that its existence stays secret.
func (i *identifier) organization(ctx context.Context, r *http.Request) (*db.Organization, error) {
	of, err := i.pages.Access.Workspace(ctx, r.PathValue("workspace"))
	if problem.Is(err, problem.NotFound) {
		return nil, errOrigin()
	}
	if err != nil {
		return nil, err
	}
	if !widget.Allows(of, r.Header.Get("Origin")) {
		return nil, errOrigin()
	}
	return of, nil
}

func errOrigin() error {
	return problem.OriginNotAllowed.Problem()
}

func errMany() error {
	return problem.New(problem.RateLimited, "Too many tokens came from this address or for this organization; try again later.")
}

// readToken reads {"token": "…"}. Browsers send a preflight before a body of this media type.
func readToken(w http.ResponseWriter, r *http.Request) (string, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "", problem.New(problem.UnsupportedMedia, "The body has to be application/json.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxIdentify))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return "", problem.New(problem.PayloadTooLarge, "The body may have at most 8 KiB.")
	}
	if err != nil {
		return "", errors.Wrap(err, "read the token")
	}
	var in struct {
		Token string `json:"token"`
	}
	if json.Unmarshal(body, &in) != nil || strings.TrimSpace(in.Token) == "" {
		return "", problem.Invalid("token", "required", `the body must be {"token": "…"}`)
	}
	return in.Token, nil
}

// told reduces a refusal to the part that a browser may see. A plan's limit shows only that a limit
// exists, and nothing about billing.
func told(err error) error {
	if problem.Is(err, problem.PlanLimit) {
		return problem.New(problem.PlanLimit, "The organization has no room for further contacts.")
	}
	if problem.Is(err, problem.Forbidden) {
		return problem.New(problem.Forbidden, "The organization takes no contacts just now.")
	}
	return err
}

// refuse answers with an error in the API's format.
func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	_, known := problem.As(err)
	switch {
	case known:
	case change.Unavailable(err), errors.Is(err, context.DeadlineExceeded):
		p.log.WarnContext(r.Context(), "a request of the widget waited too long", "error", err, "route", r.Pattern)
		err = problem.New(problem.Unavailable, "The service is too busy with something else; try again later.")
	case r.Context().Err() != nil:
		err = problem.New(problem.Internal, "The request was given up.")
	default:
		p.log.ErrorContext(r.Context(), "a request of the widget failed", "error", err, "route", r.Pattern)
		err = problem.New(problem.Internal, "Something went wrong on our side.").With("requestId", w.Header().Get("X-Request-Id"))
	}
	refuse(w, err)
}

func refuse(w http.ResponseWriter, err error) {
	told, _ := problem.As(err)
	api.WriteProblem(w, told)
}
