package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADifferenceInManyOperationsIsOneLine(t *testing.T) {
	t.Parallel()
	var changes []change
	for _, path := range []string{"/v1/a", "/v1/b", "/v1/c", "/v1/d", "/v1/e"} {
		for _, status := range []string{"200", "201"} {
			changes = append(changes, change{
				Text: "added the required property `data/items/allOf[#/components/schemas/Thing]/public` to the response with the `" + status + "` status", Level: 1,
				Operation: "GET", Path: path, Section: "paths",
			})
		}
	}
	changes = append(changes,
		change{Text: "the response header `etag` was added for the status `200`", Level: 1, Operation: "GET", Path: "/v1/a", Section: "paths"},
		change{Text: "added the new optional property `data/public`", Level: 1, Operation: "POST", Path: "webhook:post.created", Section: "paths"},
		change{Text: "the max was decreased", Level: 3, Operation: "GET", Path: "/v1/a", Section: "paths"},
		change{Text: "a breaking change was detected but the version is still `1.0.0`", Level: 1, Section: "info"},
	)
	require.Equal(t, `### May require changes in your code

- the max was decreased: `+"`GET /v1/a`"+`

### Changed

- added the required property `+"`public` to the response: `GET /v1/a`, `GET /v1/b`, `GET /v1/c`, `GET /v1/d`"+` and 1 more
- the response header `+"`etag` was added: `GET /v1/a`"+`
- added the new optional property `+"`public`: the event `post.created`"+`
`, tell(changes))
}
