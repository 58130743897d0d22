package feedback

import (
	"context"
)

// HashAuthors sets the address hash of older votes and comments by members, which were written
// without it. The database cannot do this, because it does not have the key. HashAuthors can be
// stopped and repeated at any time, also in several processes concurrently.
func (s *Service) HashAuthors(ctx context.Context) error {
	hashed, err := s.store.HashAuthors(ctx, s.emailHash)
	if hashed > 0 {
		s.log.InfoContext(ctx, "hashed the addresses of votes' and comments' authors", "rows", hashed)
	}
	return err
}
