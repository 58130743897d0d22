package publicactions

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"

	"earshot/internal/problem"
	"earshot/internal/ratelimit"
)

// The limits apply across all processes.
const (
	// Forms from one network within ten minutes, which may also come all at once. A whole office may
	// share one address and read the same announcement.
	networkForms, networkRefill = 60, 10 * time.Minute
	// Links that are mailed to one mailbox within an hour, across all senders and organizations: six.
	// That is enough for an owner who does not find the first e-mail, and no flood for a victim. Two of
	// the six are reserved for networks that have not asked for the mailbox within a day. A stranger who
	// uses up the other four therefore cannot lock out the owner.
	mailboxLinks, mailboxLinksKept, mailboxRefill = 4, 2, time.Hour
	// Links to one mailbox within a day: twelve. This limit protects a stranger's mailbox from a slow flood
	// over weeks.
	dayLinks, dayLinksKept, dayRefill = 8, 4, 24 * time.Hour
	// Links for all visitors of an organization within ten minutes, as many as ten offices need.
	organizationLinks, organizationRefill = 600, 10 * time.Minute
	// Actions of a remembered visitor within ten minutes, more than a reading person needs.
	visitorActs, visitorRefill = 60, 10 * time.Minute
	// Actions of all remembered visitors of one network within ten minutes, as many as five busy people
	// need.
	networkActs, networkActsRefill = 300, 10 * time.Minute
)

// MayTry counts a form from a network. Too many are problem.RateLimited.
func (s *Service) MayTry(ctx context.Context, from netip.Prefix) error {
	return s.take(ctx, s.bucket("network", networkName(from), networkForms, networkRefill))
}

// networkName returns the name under which a network is counted. It shortens IPv6 networks to a /56,
// because a home connection often has up to 256 networks of /64.
func networkName(from netip.Prefix) []byte {
	if a := from.Addr(); a.Is6() && from.Bits() > networkBits {
		from = netip.PrefixFrom(a, networkBits).Masked()
	}
	return []byte(from.String())
}

const networkBits = 56

// mayMail counts a link against the visitor's mailbox. All spellings of the address share the mailbox.
func (s *Service) mayMail(ctx context.Context, to Sender) (bool, error) {
	mailbox := s.mailboxHash(to.Email)
	// Every request is counted here, so a network that has asked before gets no share of the reserve.
	pair := append(slices.Clone(mailbox), networkName(to.From)...)
	fresh, err := ratelimit.TakeFrom(ctx, s.store, s.bucket("address from network", pair, 1, dayRefill))
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

// takeEach takes a token from each bucket and stops at the first empty one.
func (s *Service) takeEach(ctx context.Context, all ...ratelimit.Bucket) (bool, error) {
	for _, b := range all {
		if ok, err := ratelimit.TakeFrom(ctx, s.store, b); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// mayAct counts a visitor's action, by the hash of the mailbox and then by the network. A visitor over
// the limit takes nothing from the network.
func (s *Service) mayAct(ctx context.Context, by Sender) error {
	err := s.take(ctx, s.bucket("visitor", s.mailboxHash(by.Email), visitorActs, visitorRefill))
	if err != nil || !by.From.IsValid() {
		return err
	}
	return s.take(ctx, s.bucket("acts of network", networkName(by.From), networkActs, networkActsRefill))
}

func (s *Service) take(ctx context.Context, b ratelimit.Bucket) error {
	ok, err := ratelimit.TakeFrom(ctx, s.store, b)
	if err == nil && !ok {
		err = problem.New(problem.RateLimited, "That was too much for now; try again in some minutes.")
	}
	return err
}

// bucket returns a bucket with a keyed id, so that clients cannot choose the id of a bucket.
func (s *Service) bucket(kind string, of []byte, size int, refill time.Duration) ratelimit.Bucket {
	mac := hmac.New(sha256.New, s.formKey)
	mac.Write([]byte("bucket " + kind + "\x00"))
	mac.Write(of)
	return ratelimit.Bucket{ID: uuid.UUID(mac.Sum(nil)[:16]), Size: size, Refill: refill}
}
