package subscribers

import (
	"context"
	"strings"

	"earshot/internal/problem"
)

// maxBounces is as many addresses as are told of at once: one statement of some seconds.
const maxBounces = 100_000

// Bounced has nobody mail the addresses any more, in no organization. It returns how many weren't known
// to bounce. What is no address is problem.Validation, and then none of them is kept.
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
	return s.store.Suppress(ctx, hashes...)
}

// SuppressHash is Bounced for one address, by its hash.
func (s *Service) SuppressHash(ctx context.Context, hash []byte) error {
	_, err := s.store.Suppress(ctx, hash)
	return err
}
