package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/store"
)

func TestTheSizesOfPayloadsAreKnownWithoutThePayloads(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	other := another(t, o.store, o.pool)
	got, err := o.store.PayloadSizes(t.Context(), []publicid.Delivery{other.delivery(), publicid.NewDelivery(), o.delivery()})
	require.NoError(t, err)
	require.Equal(t, []store.PayloadSize{
		{Organization: other.organization, Bytes: len(payload)}, {}, {Organization: o.organization, Bytes: len(payload)},
	}, got)
}
