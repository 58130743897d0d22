// Package searchattributes registers the search attributes of the service's runs with a Temporal
// namespace.
package searchattributes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.yaml.in/yaml/v3"
)

// Attributes are the types of search attributes, by name.
type Attributes map[string]enumspb.IndexedValueType

// Read reads the list in temporal-dev.yaml.
func Read(file string) (Attributes, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Wrap(err, "read the search attributes")
	}
	var content struct {
		SearchAttributes struct {
			EachNamespace map[string]string `yaml:"each-namespace"`
		} `yaml:"searchAttributes"`
	}
	if err := yaml.Unmarshal(text, &content); err != nil {
		return nil, errors.Wrapf(err, "read %s", file)
	}
	wanted := Attributes{}
	for name, word := range content.SearchAttributes.EachNamespace {
		t, err := enumspb.IndexedValueTypeFromString(word)
		if err != nil {
			return nil, errors.Errorf("%s: search attribute %s has the unknown type %q", file, name, word)
		}
		wanted[name] = t
	}
	if len(wanted) == 0 {
		return nil, errors.Errorf("%s lists no search attributes", file)
	}
	return wanted, nil
}

// SetUp registers the search attributes that a namespace lacks and returns their names. It waits
// until runs can have them. It can be repeated. An existing attribute with another type is an
// error, because Temporal can't change it and doesn't report it.
func SetUp(ctx context.Context, c client.Client, namespace string, wanted Attributes) ([]string, error) {
	missing, err := Missing(ctx, c, namespace, wanted)
	if err != nil {
		return nil, err
	}
	if len(missing) == 0 {
		return nil, await(ctx, c, namespace, wanted)
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	if err != nil {
		return nil, errors.Wrap(err, "register search attributes")
	}
	// The server may accept an attribute and not register it, for example because it has room for
	// only three keyword lists.
	left, err := Missing(ctx, c, namespace, wanted)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return nil, errors.Errorf("namespace %s has no room for the search attributes %s",
			namespace, strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
	return slices.Sorted(maps.Keys(missing)), await(ctx, c, namespace, wanted)
}

const (
	// knownAfter limits the wait. By default, each process of a server reads the registered
	// attributes within two seconds.
	knownAfter = 30 * time.Second
	// askAgain is the time between two queries.
	askAgain = 100 * time.Millisecond
)

// await returns when the server can find runs by the attributes. Until then it refuses runs that
// have them, and deliveries would wait for a sweep.
func await(ctx context.Context, c client.Client, namespace string, wanted Attributes) error {
	ctx, cancel := context.WithTimeout(ctx, knownAfter)
	defer cancel()
	query := strings.Join(slices.Sorted(maps.Keys(wanted)), " IS NULL AND ") + " IS NULL"
	for {
		_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: namespace, Query: query,
		})
		var unknown *serviceerror.InvalidArgument
		if err == nil {
			return nil
		}
		if !errors.As(err, &unknown) {
			return errors.Wrap(err, "look for runs by the search attributes")
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(err, "the search attributes are registered, but after %s the server doesn't look for runs by them", knownAfter)
		case <-time.After(askAgain):
		}
	}
}

// Missing returns the wanted attributes that a namespace lacks. An existing attribute with another
// type is an error.
func Missing(ctx context.Context, c client.Client, namespace string, wanted Attributes) (Attributes, error) {
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{
		Namespace: namespace,
	})
	if err != nil {
		return nil, errors.Wrapf(err, "list the search attributes of namespace %s", namespace)
	}
	missing := Attributes{}
	var wrong []string
	for name, t := range wanted {
		has, ok := known.GetCustomAttributes()[name]
		switch {
		case !ok:
			missing[name] = t
		case has != t:
			wrong = append(wrong, fmt.Sprintf("%s is %s and must be %s", name, has, t))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return nil, errors.Errorf("namespace %s has search attributes of another type: %s; use another namespace (TEMPORAL_NAMESPACE)",
			namespace, strings.Join(wrong, ", "))
	}
	return missing, nil
}
