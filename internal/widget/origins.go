package widget

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
)

const (
	// maxOrigins is more than the sites of a product, and few enough for all to fit into a header.
	maxOrigins = 20
	// maxOrigin is the length of the longest host name with its scheme and port.
	maxOrigin = 267
)

// originPattern is the contract's pattern for an origin; checkOrigins is stricter.
var originPattern = regexp.MustCompile(`^https?://[a-z0-9.-]+(:[0-9]{1,5})?$`)

// label matches one label of a host name.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Origins returns the origins that may embed the widget of the organization in the context.
func (s *Service) Origins(ctx context.Context) ([]string, error) {
	of, err := s.store.Client().Organization.Query().Only(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the organization")
	}
	return of.WidgetOrigins, nil
}

// ReplaceOrigins replaces all origins. Only owners and admins may call it.
func (s *Service) ReplaceOrigins(ctx context.Context, origins []string, q change.Request[[]string]) ([]string, error) {
	wanted, err := checkOrigins(origins)
	if err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) ([]string, error) {
		if err := access.LockForAdmin(ctx, c); err != nil {
			return nil, err
		}
		of, err := c.Organization.Query().Only(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "load the organization")
		}
		if err := q.CheckIfMatch(c, of.WidgetOrigins); err != nil {
			return nil, err
		}
		if slices.Equal(of.WidgetOrigins, wanted) {
			return wanted, nil
		}
		if err := c.Organization.UpdateOne(of).SetWidgetOrigins(wanted).SetUpdatedAt(postgres.Now()).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "replace the widget's origins")
		}
		c.Audit("replaceWidgetOrigins", of.ID)
		return wanted, nil
	})
}

// checkOrigins validates the origins and converts each to the form that browsers send. It removes
// duplicates.
func checkOrigins(origins []string) ([]string, error) {
	var bad problem.Fields
	if len(origins) > maxOrigins {
		bad.Add("origins", "maxItems", "must have at most %d items", maxOrigins)
	}
	var wanted []string
	for i, o := range origins {
		field := fmt.Sprintf("origins[%d]", i)
		bad.Text(field, o, 1, maxOrigin)
		if !originPattern.MatchString(o) {
			bad.Add(field, "pattern", "must look like https://app.example.com: lower-case, without a path or a slash at its end")
			continue
		}
		normal, why := normalOrigin(o)
		if why != "" {
			bad.Add(field, "invalid_origin", "%s", why)
		} else if !slices.Contains(wanted, normal) {
			wanted = append(wanted, normal)
		}
	}
	return wanted, bad.Err()
}

// ports are the default ports, which browsers omit.
var ports = map[string]string{"http": "80", "https": "443"}

// normalOrigin returns an origin as browsers send it, or the reason why it is not allowed.
func normalOrigin(o string) (normal, why string) {
	u, err := url.Parse(o)
	if err != nil {
		return "", "is not an origin"
	}
	host, port := u.Hostname(), u.Port()
	if len(host) > 253 || slices.ContainsFunc(strings.Split(host, "."), func(part string) bool { return !label.MatchString(part) }) {
		return "", "must have the name of a host, in ASCII"
	}
	// Without encryption, an attacker in the network could replace the page.
	if u.Scheme == "http" && host != "localhost" && !strings.HasSuffix(host, ".localhost") && host != "127.0.0.1" {
		return "", "must be https; http is for localhost alone"
	}
	if port == "" {
		return o, ""
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return "", "must have a port from 1 to 65535"
	}
	if normal = u.Scheme + "://" + host; strconv.Itoa(n) != ports[u.Scheme] {
		normal += ":" + strconv.Itoa(n)
	}
	return normal, ""
}

// Allows reports whether pages of an origin may embed the organization's widget.
func Allows(of *db.Organization, origin string) bool {
	return origin != "" && slices.Contains(of.WidgetOrigins, origin)
}
