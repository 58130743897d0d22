package delivery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/delivery"
	"earshot/internal/publicid"
	"earshot/internal/testkit/fixture"
)

func TestTheSizesOfPayloadsAreKnownWithoutThePayloads(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	other := another(t, o.Store, o.Pool)
	got, err := delivery.PayloadSizes(t.Context(), o.Store, []publicid.Delivery{other.Delivery(), publicid.NewDelivery(), o.Delivery()})
	require.NoError(t, err)
	require.Equal(t, []delivery.PayloadSize{
		{Organization: other.Organization, Bytes: len(fixture.Payload)}, {}, {Organization: o.Organization, Bytes: len(fixture.Payload)},
	}, got)
}
