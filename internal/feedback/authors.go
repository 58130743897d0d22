package feedback

import (
	"context"
)

// HashAuthors gives votes and comments the hash of their author's address that members
// wrote before they carried it. The database can't: it doesn't have the key. It may be
// stopped and run again at any moment, also in several processes at once.
func (s *Service) HashAuthors(ctx context.Context) error {
	hashed, err := s.store.HashAuthors(ctx, s.emailHash)
	if hashed > 0 {
		s.log.InfoContext(ctx, "hashed the addresses of votes' and comments' authors", "rows", hashed)
	}
	return err
}
