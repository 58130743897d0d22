package interactions

import "earshot/internal/publicid"

// Token is what stands in a link, which nobody but the e-mail has.
func (s *Service) Token(id publicid.Interaction) string { return s.token(id) }
