package feedback

import (
	"earshot/internal/problem"
	"earshot/internal/slug"
)

// withSlug inserts under the requested slug, or else under a free slug derived from base.
func withSlug(wanted *string, base string, high int, taken, insert func(string) (bool, error)) error {
	if wanted == nil {
		return slug.Free(base, high, taken, insert)
	}
	ok, err := insert(*wanted)
	if err == nil && !ok {
		return slugTaken()
	}
	return err
}

func slugTaken() error {
	return problem.New(problem.Conflict, "The slug is already taken.").With("field", "slug")
}
