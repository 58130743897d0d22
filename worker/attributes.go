package worker

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/client"

	"earshot/internal/searchattributes"
	"earshot/workflows"
)

// NeededAttributes returns the search attributes that deliveries need to start.
func NeededAttributes() searchattributes.Attributes { return workflows.SearchAttributes() }

// checkNamespace returns an error that names the setup command if the namespace lacks a search
// attribute.
func checkNamespace(ctx context.Context, c client.Client, name string) error {
	missing, err := searchattributes.Missing(ctx, c, name, NeededAttributes())
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return errors.Errorf("namespace %s lacks the search attributes %s: run `earshot temporal setup`",
			name, strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return nil
}
