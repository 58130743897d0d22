package contract

import (
	"testing"

	"github.com/gin-gonic/gin/binding"
	"github.com/stretchr/testify/require"

	"earshot/api/gen"
	"earshot/internal/problem"
)

// BenchmarkJudgement measures the work on a valid body before its operation begins: the syntax
// check, the contract's schema, and the decoder.
func BenchmarkJudgement(b *testing.B) {
	c, err := theContract()
	require.NoError(b, err)
	for route, sent := range map[string]struct {
		body string
		into func() any
	}{
		"POST /v1/contacts/identify": {
			`{"externalUserId":"user-48213","email":"dana@example.com","name":"Dana Reyes","plan":"team","mrrCents":4900,` +
				`"currency":"EUR","metadata":{"seats":12,"region":"eu","beta":true}}`,
			func() any { return &gen.IdentifyContactRequest{} },
		},
		"POST /v1/boards/:boardId/posts": {
			`{"title":"Export dashboards as PDF","body":{"text":"I send a weekly report to people who have no login."},` +
				`"contactId":"ctc_01kkgt1eawez4varc6y4t8d910","tagIds":["tag_01kes9bqpve9gsbx8yyd8s4hkg"]}`,
			func() any { return &gen.CreatePostRequest{} },
		},
	} {
		b.Run(route, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var bad problem.Fields
				clean, _ := c.Operations[route].ValidateBody(&bad, []byte(sent.body))
				require.Empty(b, bad)
				require.NoError(b, binding.JSON.BindBody(clean, sent.into()))
			}
		})
	}
}
