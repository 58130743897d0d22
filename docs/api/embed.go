// Package apidocs holds the text of the guide to the API. The package internal/guide turns it into
// web pages.
package apidocs

import "embed"

// Pages are the files of the guide, one for each page.
//
//go:embed *.md
var Pages embed.FS
