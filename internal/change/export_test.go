package change

import "context"

// DoTogether passes inputs to one batch, as if their callers had arrived during the batch before.
func DoTogether[In, R any](ctx context.Context, b Batch[In, R], in []In, requests []Request[R]) (out []R, errs []error) {
	entries := make([]*entry[In, R], len(in))
	for i := range in {
		entries[i] = newEntry(ctx, in[i], Request[R]{})
		if requests != nil {
			entries[i].request = requests[i]
		}
	}
	for _, done := range b.(*writer[In, R]).do(ctx, entries) {
		out, errs = append(out, done.out), append(errs, done.err)
	}
	return out, errs
}

// These are for tests of the statement that inserts events.
type (
	EventRow  = eventRow
	AtCommit  = atCommit
	TakenKeys = takenKeys
)

var InTxWithRows = inTxWithRows
