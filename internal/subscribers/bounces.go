package subscribers

import (
	"context"
	"strings"

	"earshot/internal/problem"
)

// maxBounces is the maximum number of addresses in one call. One statement handles them in some seconds.
const maxBounces = 100_000

// Bounced suppresses the addresses in all organizations. It returns the number of newly suppressed
// addresses. An invalid address is problem.Validation, and then no address is suppressed.
func (s *Service) Bounced(ctx context.Context, addresses []string) (int, error) {
	var bad problem.Fields
	bad.Items("addresses", addresses, maxBounces)
	hashes := make([][]byte, len(addresses))
	for i, address := range addresses {
		address = strings.TrimSpace(address)
		bad.Email(problem.Item("addresses", i), address)
		hashes[i] = s.emailHash(address)
	}
	if err := bad.Err(); err != nil {
		return 0, err
	}
	return suppress(ctx, s.store, hashes...)
}

// SuppressHash is Bounced for the hash of one address.
func (s *Service) SuppressHash(ctx context.Context, hash []byte) error {
	_, err := suppress(ctx, s.store, hash)
	return err
}
