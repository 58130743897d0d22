package interactions

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"
	"slices"
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
	// Links that are mailed to one mailbox within an hour, whoever asks for them and wherever: six, which is
	// more than somebody asks for who doesn't find the first one, and no flood for who didn't ask. Two of
	// them are kept for networks that have not asked for the mailbox within a day, so that a stranger who
	// uses up the others does not keep the owner from getting one.
	mailboxLinks, mailboxLinksKept, mailboxRefill = 4, 2, time.Hour
	// And within a day, twelve: somebody who goes on for weeks must not fill a stranger's mailbox.
	dayLinks, dayLinksKept, dayRefill = 8, 4, 24 * time.Hour
	// Links that all visitors of an organization ask for within ten minutes: as many as ten offices.
	organizationLinks, organizationRefill = 600, 10 * time.Minute
	// What somebody does without a link within ten minutes: faster than anybody reads.
	visitorActs, visitorRefill = 60, 10 * time.Minute
)

// MayTry counts a form from a network. Too many are problem.RateLimited.
func (s *Service) MayTry(ctx context.Context, from netip.Prefix) error {
	return s.take(ctx, s.bucket("network", networkName(from), networkForms, networkRefill))
}

// networkName is what a network is counted by. Who has a /64 of IPv6 mostly has more of them, up to a
// /56 at home.
func networkName(from netip.Prefix) []byte {
	if a := from.Addr(); a.Is6() && from.Bits() > networkBits {
		from = netip.PrefixFrom(a, networkBits).Masked()
	}
	return []byte(from.String())
}

const networkBits = 56

// mayMail counts a link for a visitor's mailbox, which all spellings of the address share.
func (s *Service) mayMail(ctx context.Context, to Visitor) (bool, error) {
	mailbox := s.mailboxHash(to.Email)
	// Every request is noted, so a network that has asked before has no part in what is kept for others.
	pair := append(slices.Clone(mailbox), networkName(to.From)...)
	fresh, err := s.store.TakeFrom(ctx, s.bucket("address from network", pair, 1, dayRefill))
	if err != nil {
		return false, err
	}
	ok, err := s.takeEach(ctx, s.bucket("address", mailbox, mailboxLinks, mailboxRefill), s.bucket("address a day", mailbox, dayLinks, dayRefill))
	if ok || err != nil || !fresh {
		return ok, err
	}
	return s.takeEach(ctx, s.bucket("address kept", mailbox, mailboxLinksKept, mailboxRefill),
		s.bucket("address kept a day", mailbox, dayLinksKept, dayRefill))
}

// takeEach takes a token out of each bucket, up to the first empty one.
func (s *Service) takeEach(ctx context.Context, all ...store.Bucket) (bool, error) {
	for _, b := range all {
		if ok, err := s.store.TakeFrom(ctx, b); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// mayAct counts what a visitor does, by the hash of the address.
func (s *Service) mayAct(ctx context.Context, by Visitor) error {
	return s.take(ctx, s.bucket("visitor", s.mailboxHash(by.Email), visitorActs, visitorRefill))
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
