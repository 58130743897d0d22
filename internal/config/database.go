package config

import (
	"net/url"
	"slices"
	"strings"

	"github.com/go-faster/errors"
)

// parseURL reads a URL with several hosts, as Postgres allows. The net/url package rejects most
// such lists.
func parseURL(text string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return url.Parse(text)
	}
	end := strings.IndexAny(rest+"/", "/?#")
	from := strings.LastIndex(rest[:end], "@") + 1
	hosts := rest[from:end]
	for host := range strings.SplitSeq(hosts, ",") {
		if _, err := url.Parse("//" + host); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(scheme + "://" + rest[:from] + "hosts" + rest[end:])
	if err != nil {
		return nil, err
	}
	u.Host = hosts
	return u, nil
}

// databaseProblem describes the problem of the database's URL without quoting any part of it.
func databaseProblem(text string) error {
	if text == "" {
		return errors.New("is missing; set it to a postgres:// URL, or use `make up` for a private database")
	}
	u, err := parseURL(text)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return errors.New("is not a postgres:// URL")
	}
	if wanted := u.Query().Get("target_session_attrs"); slices.Contains([]string{"read-only", "standby", "prefer-standby"}, wanted) {
		return errors.New("must not ask for a server that takes no writes: set target_session_attrs=read-write")
	}
	return nil
}
