package interactions

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"

	"earshot/internal/problem"
	"earshot/internal/store"
)

// The limits, in all processes together.
const (
	// Forms from one network within ten minutes, and at once: a whole office may be behind one
	// address, and reads the same announcement.
	networkForms, networkRefill = 60, 10 * time.Minute
	// Links that are mailed to one address within an hour, whoever asks for them and wherever: more
	// than somebody asks for who doesn't find the first one, and no flood for who didn't ask.
	addressLinks, addressRefill = 6, time.Hour
	// And within a day, for good: somebody who goes on for weeks must not fill a stranger's mailbox.
	dayLinks, dayRefill = 12, 24 * time.Hour
	// Links that all visitors of an organization ask for within ten minutes: as many as ten offices.
	organizationLinks, organizationRefill = 600, 10 * time.Minute
	// What somebody does without a link within ten minutes: faster than anybody reads.
	visitorActs, visitorRefill = 60, 10 * time.Minute
)

// MayTry counts a form from a network. Too many are problem.RateLimited.
func (s *Service) MayTry(ctx context.Context, from netip.Prefix) error {
	// Who has a /64 of IPv6 mostly has more of them, up to a /56 at home.
	if a := from.Addr(); a.Is6() && from.Bits() > networkBits {
		from = netip.PrefixFrom(a, networkBits).Masked()
	}
	return s.take(ctx, s.bucket("network", []byte(from.String()), networkForms, networkRefill))
}

const networkBits = 56

// mayMail counts a link for a mailbox. An address with a tag leads to the same one.
func (s *Service) mayMail(ctx context.Context, to string) (bool, error) {
	local, host, _ := strings.Cut(to, "@")
	local, _, _ = strings.Cut(local, "+")
	mailbox := s.emailHash(local + "@" + host)
	for _, b := range []store.Bucket{
		s.bucket("address", mailbox, addressLinks, addressRefill), s.bucket("address a day", mailbox, dayLinks, dayRefill),
	} {
		if ok, err := s.store.TakeFrom(ctx, b); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// mayAct counts what a visitor does, by the hash of the address.
func (s *Service) mayAct(ctx context.Context, by Visitor) error {
	return s.take(ctx, s.bucket("visitor", s.emailHash(by.Email), visitorActs, visitorRefill))
}

func (s *Service) take(ctx context.Context, b store.Bucket) error {
	ok, err := s.store.TakeFrom(ctx, b)
	if err == nil && !ok {
		err = problem.New(problem.RateLimited, "That was too much for now; try again in some minutes.")
	}
	return err
}

// bucket is one whose name nobody can choose: the key is in it.
func (s *Service) bucket(kind string, of []byte, size int, refill time.Duration) store.Bucket {
	mac := hmac.New(sha256.New, s.formKey)
	mac.Write([]byte("bucket " + kind + "\x00"))
	mac.Write(of)
	return store.Bucket{ID: uuid.UUID(mac.Sum(nil)[:16]), Size: size, Refill: refill}
}
