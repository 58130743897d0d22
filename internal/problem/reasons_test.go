package problem_test

import (
	"os"
	"slices"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"earshot/internal/problem"
)

// contract has the parts of the contract that repeat the reasons.
type contract struct {
	Components struct {
		Responses map[string]struct {
			Content map[string]struct {
				Example  answer
				Examples map[string]struct{ Value answer }
			}
		}
		Schemas struct {
			ErrorDetails struct {
				Properties struct {
					Reason struct {
						Values []string `yaml:"x-extensible-enum"`
					}
				}
			} `yaml:"ErrorDetails"`
		}
	}
}

type answer struct {
	Error struct {
		Code    problem.Code
		Message string
		Details map[string]any
	}
}

func readContract(t *testing.T) (c contract) {
	t.Helper()
	text, err := os.ReadFile("../../api/openapi.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &c))
	return c
}

func TestTheContractListsTheReasons(t *testing.T) {
	t.Parallel()
	var want []string
	for _, r := range problem.Reasons {
		if r.Cause != "" {
			want = append(want, r.Name)
		}
	}
	require.ElementsMatch(t, want, readContract(t).Components.Schemas.ErrorDetails.Properties.Reason.Values)
}

func TestEveryReasonOfTheAPIHasAnExampleInTheContract(t *testing.T) {
	t.Parallel()
	var shown []string
	for _, response := range readContract(t).Components.Responses {
		all := []answer{response.Content["application/json"].Example}
		for _, example := range response.Content["application/json"].Examples {
			all = append(all, example.Value)
		}
		for _, example := range all {
			e := example.Error
			name, ok := e.Details["reason"].(string)
			if !ok {
				continue
			}
			at := slices.IndexFunc(problem.Reasons, func(r *problem.Reason) bool { return r.Name == name })
			require.GreaterOrEqual(t, at, 0, "the example's reason %s isn't in the table", name)
			require.Equal(t, problem.Reasons[at].Code, e.Code, name)
			require.Equal(t, problem.Reasons[at].Message, e.Message, name)
			shown = append(shown, name)
		}
	}
	for _, r := range problem.Reasons {
		require.True(t, r.Cause == "" || slices.Contains(shown, r.Name), "%s has no example under components/responses", r.Name)
	}
}

func TestAReasonIsFoundInAWrappedError(t *testing.T) {
	t.Parallel()
	err := errors.Wrap(problem.TagLimit.Problem().With("limit", 500), "create the tag")
	require.Equal(t, problem.TagLimit, problem.ReasonOf(err))
	require.True(t, problem.TagLimit.Is(err))
	require.False(t, problem.LastOwner.Is(err))
	require.Nil(t, problem.ReasonOf(problem.Missing("tag")))
	require.Nil(t, problem.ReasonOf(errors.New("the database is away")))
}
