// Package apidocs holds the text of the guide to the API, as people read it in the
// repository. The package internal/guide makes pages of it.
package apidocs

import "embed"

// Pages are the files of the guide, one a page.
//
//go:embed *.md
var Pages embed.FS
